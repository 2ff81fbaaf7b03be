// Makes a sampler from an app's request for private draws: checks everything and decides what to charge for. Used for
// recommending (private_recommender.h) and for texts (private_generator.h).
//
//   WISP_ASSIGN_OR_RETURN(DrawSetup setup, SetUpDraws(session, options));
//   setup.sampler.Draw(...)
//
// This code decides if draws are free, which ledger pays, and how far draws depend on the model. Callers choose the
// scores and draw.
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

// How far draws may depend on the model. Set exactly one of these if draws are charged; ignored if they are free.
struct DrawGoal {
  std::optional<double> lambda;            // mixing: the model's share
  std::optional<double> clip;              // anchored: c, in logits
  std::optional<double> epsilon_per_draw;  // epsilon of one draw, at delta 0
  // The target for `draws` draws together, by the accountant (decoding_calibration.h). An empty ledger without a limit
  // gets the target as its limit. A ledger with spendings but no limit is refused, because nothing would stop the
  // draws.
  struct Lifetime {
    privacy::EpsilonDelta target;
    uint64_t draws = 0;
  };
  std::optional<Lifetime> lifetime;
};

struct PrivateDrawOptions {
  // Not kPlain. nullopt: kAggregate if there are contexts, otherwise anchored if there is a base, otherwise uniform.
  std::optional<DecodingMode> mode = std::nullopt;
  // The public model as it was shipped, with the same items. It must need no charge under `public_datasets`: its data
  // sets are declared public, or it was trained with a guarantee. It must outlive the sampler.
  Session* base = nullptr;
  DrawGoal goal = {};
  double temperature = 1;
  uint32_t top_k = 0;                                 // mixing: keeps this many of the softmax before mixing; 0: all
  double nucleus = 1;                                 // mixing: keeps this share of the probability; 1: all
  std::span<const std::string> public_datasets = {};  // see DecodingPolicy; only Create reads it
  // A public number; 0 means unknown, and 10,000 is assumed. The delta of the goal and of a new limit is checked
  // against it (privacy::CheckDelta). The delta of an existing limit is checked only if the number is known; with more
  // than ten records, only against 1 / records.
  uint64_t num_records_public = 0;
  bool allow_large_delta = false;  // accepts deltas up to 1 / records, as papers use; not with ten records or fewer
  // False: a ledger that lacks what the model or the base has spent on its data set is refused (check_paid.h). True:
  // the user asserts that the data set of the ledger's name in their provenance is a different one.
  bool other_data = false;

  // If set, the ledger's new limit over everything. It is written only when nothing else is refused; ignored if draws
  // are free.
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;
  // The ledger of the training data. It must outlive the sampler. May be null if draws are free.
  privacy::Ledger* ledger = nullptr;
  std::string run = "recommendations";
  uint32_t draws_per_charge = 1;  // see PrivateSamplerOptions
  // With kSupportLeft, epsilon_per_draw and lifetime hold for supports of at most `largest_support` items (0: all
  // items). With mixing, a larger support costs more for each draw, and is charged so.
  ChargeFor charge_for = ChargeFor::kWholeCatalogue;
  uint32_t largest_support = 0;
  std::optional<uint64_t> reproducible_seed = std::nullopt;  // if set, draws repeat and there is NO guarantee

  uint32_t contexts = 0;  // kAggregate: B, a public number; otherwise 0
  double mixing_floor =
      0.1;  // kNonUniform: the uniform's share of the public distribution; the rest is the base's softmax

  Selection selection = Selection::kSample;  // others than kSample are refused, with the reason
  AfterMixing after_mixing = AfterMixing::kNothing;
};

// The policy for the need of the model and of the base.
DecodingPolicy PolicyOf(const PrivateDrawOptions& options);

// The writes to the ledger before the first draw, when nothing else can be refused: a limit, and the plan of a
// lifetime.
struct DrawPromise {
  privacy::Ledger* ledger = nullptr;                              // null: nothing to write
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;  // see PrivateDrawOptions
  std::optional<privacy::EpsilonDelta> lifetime = std::nullopt;   // the target; becomes the limit of an empty ledger
  std::vector<privacy::ChargeRequest> plan = {};

  // The limit that Write would set now. kPrivacyRefused: the limit is below what is spent, or there is a target and the
  // ledger has spendings but no limit.
  Result<std::optional<privacy::EpsilonDelta>> LimitToSet() const;
  // Writes limit and plan to the ledger. A second call writes nothing.
  Status Write();
};

// A sampler that is ready, and its parameters.
struct DrawSetup {
  std::string reason;                        // why draws are free or charged
  DecodingMode mode = DecodingMode::kPlain;  // kPlain: draws are free
  double lambda = 0, clip = 0;
  // The cost of one draw from the largest support that this was set up for; kNothing if draws are free.
  DrawCost cost;
  PrivateSampler sampler;
  DrawPromise promise;  // write it before the first draw
};

// kUnsupported: `session` or `base` (may be null) uses another backend than kSimd.
Status CheckDrawBackends(const Session& session, const Session* base);

// Says what one record is, for a ledger that draws are charged to: one of the private texts (`of_texts`); or any, if
// draws are from weights, because these cost the same for every kind. `unit` is the unit of a new ledger.
inline privacy::RecordSpec RecordOfDraws(privacy::PrivacyUnit unit, bool of_texts) {
  return of_texts ? privacy::RecordSpec::OfTexts(unit, privacy::RecordSpec::kPromptText)
                  : privacy::RecordSpec::Any(unit);
}

// Items 0 .. num_items - 1 can be drawn. With contexts the session's model must be public, and the contexts' contents
// are charged for. Writes to the ledger last, so a refused request leaves it unchanged.
Result<DrawSetup> SetUpDraws(const Session& session, const PrivateDrawOptions& options, uint32_t num_items);

// The largest support that draws with these options may have.
uint64_t LargestSupport(const PrivateDrawOptions& options, uint64_t num_items);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DRAW_SETUP_H_
