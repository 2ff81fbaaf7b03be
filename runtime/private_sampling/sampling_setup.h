// Makes a sampler from an app's request for private samples: checks everything and decides what to charge for. Used for
// recommending (private_recommender.h) and for texts (private_generator.h).
//
//   WISP_ASSIGN_OR_RETURN(SamplingSetup setup, SetUpSampling(session, options));
//   setup.sampler.Sample(...)
//
// This code decides if samples are free, which ledger pays, and how far samples depend on the model. Callers choose the
// scores and sample.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLING_SETUP_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLING_SETUP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/private_sampling/private_sampling.h"
#include "runtime/inference/session.h"

namespace wisp {

// How far samples may depend on the model. Set exactly one of these if samples are charged; ignored if they are free.
struct SampleGoal {
  std::optional<double> lambda;              // mixing: the model's share
  std::optional<double> clip;                // anchored: c, in logits
  std::optional<double> epsilon_per_sample;  // epsilon of one sample, at delta 0
  // The target for `samples` samples together, by the accountant (decoding_calibration.h). An empty ledger without a
  // limit gets the target as its limit. A ledger with spendings but no limit is refused, because nothing would stop the
  // samples.
  struct Planned {
    privacy::EpsilonDelta target;
    uint64_t samples = 0;
  };
  std::optional<Planned> planned;
};

struct PrivateSampleOptions {
  // Not kPlain. nullopt: kAggregate if there are contexts, otherwise anchored if there is a base, otherwise uniform.
  std::optional<DecodingMode> mode = std::nullopt;
  // The public model as it was shipped, with the same items. It must need no charge under `public_datasets`: its data
  // sets are declared public, or it was trained with a guarantee. It must outlive the sampler.
  Session* base = nullptr;
  SampleGoal goal = {};
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

  // If set, the ledger's new limit over everything. It is written only when nothing else is refused; ignored if samples
  // are free.
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;
  // The ledger of the training data. It must outlive the sampler. May be null if samples are free.
  privacy::Ledger* ledger = nullptr;
  std::string run = "recommendations";
  uint32_t samples_per_charge = 1;  // see PrivateSamplerOptions
  // With kSupportLeft, epsilon_per_sample and planned hold for supports of at most `largest_support` items (0: all
  // items). With mixing, a larger support costs more for each sample, and is charged so.
  ChargeFor charge_for = ChargeFor::kWholeCatalogue;
  uint32_t largest_support = 0;
  std::optional<uint64_t> reproducible_seed = std::nullopt;  // if set, samples repeat and there is NO guarantee

  uint32_t contexts = 0;  // kAggregate: B, a public number; otherwise 0
  double mixing_floor =
      0.1;  // kNonUniform: the uniform's share of the public distribution; the rest is the base's softmax

  Selection selection = Selection::kSample;  // others than kSample are refused, with the reason
  AfterMixing after_mixing = AfterMixing::kNothing;
};

// The policy for the need of the model and of the base.
DecodingPolicy MakePolicy(const PrivateSampleOptions& options);

// The writes to the ledger before the first sample, when nothing else can be refused: a limit, and the plan of
// the samples.
struct SamplePromise {
  privacy::Ledger* ledger = nullptr;                              // null: nothing to write
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;  // see PrivateSampleOptions
  std::optional<privacy::EpsilonDelta> planned = std::nullopt;    // the target; becomes the limit of an empty ledger
  std::vector<privacy::ChargeRequest> plan = {};

  // The limit that Write would set now. kPrivacyRefused: the limit is below what is spent, or there is a target and the
  // ledger has spendings but no limit.
  Result<std::optional<privacy::EpsilonDelta>> LimitToSet() const;
  // Writes limit and plan to the ledger. A second call writes nothing.
  Status Write();
};

// A sampler that is ready, and its parameters.
struct SamplingSetup {
  std::string reason;                        // why samples are free or charged
  DecodingMode mode = DecodingMode::kPlain;  // kPlain: samples are free
  double lambda = 0, clip = 0;
  // The cost of one sample from the largest support that this was set up for; kNothing if samples are free.
  SampleCost cost;
  PrivateSampler sampler;
  SamplePromise promise;  // write it before the first sample
};

// kUnsupported: `session` or `base` (may be null) uses another backend than kSimd.
Status CheckSampleBackends(const Session& session, const Session* base);

// Says what one record is, for a ledger that samples are charged to: one of the private texts (`of_texts`); or any, if
// samples are from weights, because these cost the same for every kind. `unit` is the unit of a new ledger.
inline privacy::RecordSpec MakeSampleRecord(privacy::PrivacyUnit unit, bool of_texts) {
  return of_texts ? privacy::RecordSpec::OfTexts(unit, privacy::RecordSpec::kPromptText)
                  : privacy::RecordSpec::Any(unit);
}

// Items 0 .. num_items - 1 can be sampled. With contexts the session's model must be public, and the contexts' contents
// are charged for. Writes to the ledger last, so a refused request leaves it unchanged.
Result<SamplingSetup> SetUpSampling(const Session& session, const PrivateSampleOptions& options, uint32_t num_items);

// The largest support that samples with these options may have.
uint64_t LargestSupport(const PrivateSampleOptions& options, uint64_t num_items);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLING_SETUP_H_
