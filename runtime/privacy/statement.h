// The privacy statement: what may be said about a run, in words for people and in JSON for machines.
//
// What it is: everything a reader needs to judge an epsilon, in the order of the reporting checklist of Ponomareva et
// al., "How to DP-fy ML" (2023), section 5.3.3: the setting; the definition with every part named (what accesses to the
// data are covered, what is released, unit, adjacency); the accounting (accountant, assumptions and whether they hold,
// the formal statement); how to verify it. What it is not: an accountant. The figures come from one, and from the
// ledger.
//
// No epsilon appears anywhere, in neither form, where nothing is guaranteed: see WhyNoGuarantee.
//
//   PrivacyStatement s{.dataset = ledger.dataset(), .delta = delta, ...};
//   std::puts(ToText(s).c_str());     // `wisp privacy`
//   Write("privacy.json", ToJson(s));
#ifndef WISP_RUNTIME_PRIVACY_STATEMENT_H_
#define WISP_RUNTIME_PRIVACY_STATEMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::privacy {

// Of ToJson, its first key "statement_version": grows when a key is taken away or means something else, not when one is
// added.
inline constexpr uint64_t kStatementVersion = 1;

// How the records of a step were really chosen, whatever the mechanism assumes.
enum class SamplingDone { kPoisson, kFullBatch, kShuffled, kNone };  // kNone: no records were read, only weights

// exact is integers and a discrete Gaussian, fast is floating point on a power-of-two grid.
enum class NoiseMode { kExact, kFast };

// What a part of the spendings, all of one purpose, would cost alone, at the statement's delta.
struct SpendingPart {
  std::string purpose;
  uint64_t num_steps = 0;
  StatedEpsilon alone;
};

// Draws of a private decoder: both figures are stated.
struct DrawFigures {
  uint64_t num_draws = 0;
  double pure_epsilon = 0;  // at delta 0
  StatedEpsilon alone;
};

// A model file, for who checks the statement later.
struct StatedModel {
  std::string file, sha256;  // in hex
  std::string receipt;       // in hex, of the charge that its training ended with; empty: it has none of this ledger
};

struct PrivacyStatement {
  // The setting, and what is covered.
  std::string setting = "central: the device holds the records, computes on them and releases the output named below";
  std::string dataset;
  std::string run;
  std::vector<std::string> uncharged_tuning;  // what was chosen by looking at the same data without a charge
  std::string output = "the weights after every step, and all that is computed from them";
  PrivacyUnit unit = PrivacyUnit::kSession;
  bool unit_chosen = true;              // false: nobody did, it is what programs took from before there was a choice
  std::optional<RecordSpec> record;     // none: no charge says so
  uint64_t charges_without_record = 0;  // of programs that did not say what a record is
  Adjacency adjacency = Adjacency::kAddRemove;
  std::vector<std::string> protected_parts = {"whether a record took part, and everything in it"};
  std::vector<std::string> unprotected_parts = {"the number of steps", "the architecture", "the hyper-parameters"};

  // The accounting.
  std::string accountant = "PLD (connect the dots, Doroshenko et al. 2022), an upper bound";
  std::vector<Mechanism> mechanisms;
  uint64_t num_steps = 0;
  SamplingDone sampling = SamplingDone::kPoisson;
  NoiseKind noise = NoiseKind::kSecure;
  NoiseMode noise_mode = NoiseMode::kExact;
  double loss_slack = 0;  // as charged (ChargeRequest); its cost is part of epsilon
  double delta = 0;
  std::optional<double> epsilon;         // of the run; absent where nobody computed one
  std::optional<double> ledger_epsilon;  // of everything charged to the data set, at the same delta
  std::optional<Accountant> set_by;      // who set the figure, where that is known
  std::optional<LedgerFigures> basis;    // what the data set's figure stands on, and what holds of its limit
  std::vector<SpendingPart> parts;       // parts do not add up to the whole, which is less
  // What the figures of parts, and of draws at delta, take for granted.
  enum class Assumed {
    kNothing,
    kNoEarlyStop,      // a part of a plan: that what was released did not decide how much of it was run
    kFixedBeforehand,  // that their charges had been fixed before the first of them; some were not
  } parts_assume = Assumed::kNothing;
  bool is_of_one_run = true;  // false: of a whole ledger, whose figure is ledger_epsilon
  std::optional<DrawFigures> draws;
  // What draws were made from: weights that learned from the records, or the records themselves, in a prompt.
  bool draws_from_weights = false, draws_from_texts = false;
  std::optional<EpsilonDelta> limit;

  // How to verify it.
  std::string software = "wisp";
  std::string created_by;  // the program that wrote the statement, with its version; empty: not said
  std::string ledger_path;
  // Of the ledger as it was: how many charges, and the receipt of the newest, in hex (StatementOf).
  std::optional<uint64_t> num_charges;
  std::string receipt;
  std::vector<StatedModel> models;
};

// The name of a run for the ledger, with what its user declares to have chosen by looking at the same data without a
// charge (nothing where `tuning` is empty); and that declaration from such a name.
std::string WithTuning(const std::string& run, const std::string& tuning);
std::string TuningOf(const std::string& run);
// kInvalidArgument where that declaration cannot be part of a name; `what` names it in the sentence.
Status CheckTuning(std::string_view what, const std::string& tuning);

// Empty where the figures may be stated; else the reason why no epsilon is: "noise: reproducible, no guarantee", or
// shuffled batches accounted for as if they were drawn at random.
std::string WhyNoGuarantee(const PrivacyStatement& statement);

std::string ToText(const PrivacyStatement& statement);
std::string ToJson(const PrivacyStatement& statement);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_STATEMENT_H_
