// The privacy statement: what may be said about a run, in words for people and in JSON for machines.
//
// It contains everything a reader needs to evaluate an epsilon, in the order of the reporting checklist of Ponomareva
// et al., "How to DP-fy ML" (2023), section 5.3.3: the setting; the definition with every part named (what accesses to
// the data are covered, what is released, unit, adjacency); the accounting (accountant, assumptions and whether they
// hold, the formal statement); how to verify it. It computes no figures: they come from an accountant, and from the
// ledger.
//
// If nothing is guaranteed, no epsilon appears in either form: see ExplainNoGuarantee.
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

// The first key of ToJson, "statement_version". It grows when a key is removed or changes its meaning, not when one is
// added.
inline constexpr uint64_t kStatementVersion = 1;

// How the records of a step were really chosen, whatever the mechanism assumes. kPoisson: as the mechanisms of the
// statement say, each by its own sampling; Poisson sampling without mechanisms.
enum class SamplingDone { kPoisson, kFullBatch, kShuffled, kNone };  // kNone: no records were read, only weights

// exact is integers and a discrete Gaussian, fast is floating point on a power-of-two grid.
enum class NoiseMode { kExact, kFast };

// The cost of all spendings of one purpose alone, at the statement's delta.
struct SpendingPart {
  std::string purpose;
  uint64_t num_steps = 0;
  StatedEpsilon alone;
};

// Figures of a private decoder's samples; both are stated.
struct SampleFigures {
  uint64_t num_samples = 0;
  double pure_epsilon = 0;  // at delta 0
  StatedEpsilon alone;
};

// A model file, for somebody who checks the statement later.
struct StatedModel {
  std::string file, sha256;  // in hex
  std::string receipt;       // receipt of the last charge of its training, in hex; empty: it has none from this ledger
};

struct PrivacyStatement {
  // The setting, and what is covered.
  std::string setting = "central: the device holds the records, computes on them and releases the output named below";
  std::string dataset;
  std::string run;
  std::vector<std::string> uncharged_tuning;  // choices made by looking at the same data without a charge
  std::string output = "the weights after every step, and all that is computed from them";
  PrivacyUnit unit = PrivacyUnit::kSession;
  bool unit_chosen = true;              // false: nobody chose it; it is the default of the program that made the ledger
  std::optional<RecordSpec> record;     // nullopt: no charge says so
  uint64_t charges_without_record = 0;  // charges of programs that did not define a record
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
  double loss_slack = 0;  // as charged (ChargeRequest); epsilon includes its cost
  double delta = 0;
  std::optional<double> epsilon;         // of the run; absent if nobody computed one
  std::optional<double> ledger_epsilon;  // of everything charged to the data set, at the same delta
  std::optional<Accountant> set_by;      // the accountant of the figure, if known
  std::optional<LedgerFigures> basis;    // basis of the data set's figure, and what holds for its limit
  std::vector<SpendingPart> parts;       // the whole costs less than the sum of its parts
  // The assumptions behind the figures of parts, and of samples at delta.
  enum class Assumed {
    kNothing,
    kNoEarlyStop,      // a part of a plan: that what was released did not decide how much of it was run
    kFixedBeforehand,  // that their charges had been fixed before the first of them; some were not
  } parts_assume = Assumed::kNothing;
  bool is_of_one_run = true;  // false: of a whole ledger, whose figure is ledger_epsilon
  std::optional<SampleFigures> samples;
  // The source of samples: weights that learned from the records, or the records themselves, in a prompt.
  bool samples_from_weights = false, samples_from_texts = false;
  std::optional<EpsilonDelta> limit;

  // The facts by which others can verify the statement.
  std::string software = "wisp";
  std::string created_by;  // the program that wrote the statement, with its version; empty: unknown
  std::string ledger_path;
  // The state of the ledger: its number of charges, and the newest receipt, in hex (MakeStatement).
  std::optional<uint64_t> num_charges;
  std::string receipt;
  NotedAnchors anchors;
  std::vector<StatedModel> models;
};

// WithTuning: the name of a run in the ledger, with what its user declares to have chosen on the same data without a
// charge. An empty `tuning` adds nothing. ParseTuning: the declaration in such a name.
std::string WithTuning(const std::string& run, const std::string& tuning);
std::string ParseTuning(const std::string& run);
// kInvalidArgument if that declaration cannot be part of a name; `what` names it in the message.
Status CheckTuning(std::string_view what, const std::string& tuning);

// Empty if the figures may be stated; else the reason why no epsilon is stated: "noise: reproducible, no guarantee", or
// shuffled batches that were accounted for as if sampled at random.
std::string ExplainNoGuarantee(const PrivacyStatement& statement);

std::string ToText(const PrivacyStatement& statement);
std::string ToJson(const PrivacyStatement& statement);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_STATEMENT_H_
