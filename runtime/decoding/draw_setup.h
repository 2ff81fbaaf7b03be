// From what an app asks of private draws to a sampler that may make them: everything checked, and what is charged for
// found. For recommending (private_recommender.h) and for texts (private_generator.h).
//
//   WISP_ASSIGN_OR_RETURN(DrawSetup setup, SetUpDraws(session, options));
//   setup.sampler.Draw(...)
//
// Here it is decided whether draws are free, which ledger pays, and how far draws lean on the model. What is drawn from
// which scores is left to who calls.
#ifndef WISP_RUNTIME_DECODING_DRAW_SETUP_H_
#define WISP_RUNTIME_DECODING_DRAW_SETUP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/decoding/private_sampling.h"
#include "runtime/inference/session.h"

namespace wisp {

// How far draws may lean on the model: exactly one of these where draws are charged; not read where they are free.
struct DrawGoal {
  std::optional<double> lambda;            // mixed: the model's share itself
  std::optional<double> clip;              // anchored: c itself, in logits
  std::optional<double> epsilon_per_draw;  // of one draw, at delta 0
  // So much for `draws` draws together, by the accountant (decoding_calibration.h). A ledger on which nothing was spent
  // and which has no limit gets the target as its limit; one with spendings and no limit is refused: nothing would end
  // the draws.
  struct Lifetime {
    privacy::EpsilonDelta target;
    uint64_t draws = 0;
  };
  std::optional<Lifetime> lifetime;
};

struct PrivateDrawOptions {
  // Not kPlain; absent: kAggregate where there are contexts, anchored where there is a base, else uniform.
  std::optional<DecodingMode> mode = std::nullopt;
  // The public model, as it was shipped: the same items. It must need no charge itself under `public_datasets`: its
  // data sets are declared public, or it was trained with a guarantee. Must outlive what draws.
  Session* base = nullptr;
  DrawGoal goal = {};
  double temperature = 1;
  uint32_t top_k = 0;                                 // mixed: of the softmax, before mixing; 0: all
  double nucleus = 1;                                 // mixed: likewise; 1: all
  std::span<const std::string> public_datasets = {};  // DecodingPolicy; read by Create only
  // A public number; 0: unknown, then taken for 10,000. The delta of the goal and of a limit are held to it
  // (privacy::CheckDelta); that of a limit that stands already only where the number is known, and to 1 / records
  // alone where there are more than ten.
  uint64_t num_records_public = 0;
  bool allow_large_delta = false;  // up to 1 / records is accepted, as papers have it; not with ten records or fewer
  // Otherwise a ledger that lacks what the model, or the base, has spent on its data set is refused (check_paid.h).
  // True: the user's word that a data set of the ledger's name in their provenance is another one.
  bool other_data = false;

  // Set: the ledger's limit from now on, over everything. Only once nothing else is refused; not read where draws are
  // free.
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;
  // Of the training data, must outlive what draws; may be absent where draws are free.
  privacy::Ledger* ledger = nullptr;
  std::string run = "recommendations";
  uint32_t draws_per_charge = 1;  // PrivateSamplerOptions
  // With kSupportLeft epsilon_per_draw and lifetime are met for supports of at most `largest_support` items (0: all
  // items); a larger one, where mixing, costs more a draw and is charged so.
  ChargeFor charge_for = ChargeFor::kWholeCatalogue;
  uint32_t largest_support = 0;
  std::optional<uint64_t> reproducible_seed = std::nullopt;  // set: draws repeat and there is NO guarantee

  uint32_t contexts = 0;  // kAggregate: B, a public number; else 0
  double mixing_floor =
      0.1;  // kNonUniform: the share of the uniform in what is mixed in; the rest is the base's softmax

  Selection selection = Selection::kSample;  // the others are refused, with the reason
  AfterMixing after_mixing = AfterMixing::kNothing;
};

// Under which the need of the model, and of the base, is read.
DecodingPolicy PolicyOf(const PrivateDrawOptions& options);

// What the ledger is told before the first draw, once nothing else can be refused: a limit, and a lifetime's plan.
struct DrawPromise {
  privacy::Ledger* ledger = nullptr;                              // null: there is nothing to be told
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;  // PrivateDrawOptions
  std::optional<privacy::EpsilonDelta> lifetime = std::nullopt;   // the target: the limit of a ledger without spendings
  std::vector<privacy::ChargeRequest> plan = {};

  // What Write would set now. kPrivacyRefused: a limit below what is spent; a target where spendings have no limit.
  Result<std::optional<privacy::EpsilonDelta>> LimitToSet() const;
  // Limit and plan, as the ledger is now; the second time nothing.
  Status Write();
};

// What is drawn with.
struct DrawSetup {
  std::string reason;                        // why draws are free, or are not
  DecodingMode mode = DecodingMode::kPlain;  // kPlain: free
  double lambda = 0, clip = 0;
  // One draw from the largest support that it was set up for; kNothing where free.
  DrawCost cost;
  PrivateSampler sampler;
  DrawPromise promise;  // to be written before the first draw
};

// kUnsupported: a session, or a base (may be null), with another backend than kSimd.
Status CheckDrawBackends(const Session& session, const Session* base);

// `num_items`: drawn are 0 .. num_items - 1. With contexts the session's model must be public, and what is charged for
// is what they hold. Writes to the ledger last: a request that was refused leaves it as it is.
// What one record is to a ledger that draws are charged to: one of the private texts, or, of draws from weights, which
// cost the same for all, any. `unit` is that of a new ledger.
inline privacy::RecordSpec RecordOfDraws(privacy::PrivacyUnit unit, bool of_texts) {
  return of_texts ? privacy::RecordSpec::OfTexts(unit, privacy::RecordSpec::kPromptText)
                  : privacy::RecordSpec::Any(unit);
}

Result<DrawSetup> SetUpDraws(const Session& session, const PrivateDrawOptions& options, uint32_t num_items);

// The largest support of draws with these options.
uint64_t LargestSupport(const PrivateDrawOptions& options, uint64_t num_items);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DRAW_SETUP_H_
