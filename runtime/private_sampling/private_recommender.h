// Private recommendations in one call: a PrivateSampler samples items from a session's scores and charges the ledger of
// the training data.
//
//   WISP_ASSIGN_OR_RETURN(auto target, privacy::EpsilonDelta::Create(2, 1e-6));
//   WISP_ASSIGN_OR_RETURN(auto recommender, PrivateRecommender::Create(*session, {.base = shipped.get(),
//       .goal = {.planned = SampleGoal::Planned{target, 5000}}, .public_datasets = labels, .ledger = &ledger}));
//   WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> items, recommender.Recommend(history, {.count = 10}));
//
// Sensitivity: every sample is a mechanism whose cost sample_cost.h proves. Released: the items in the order they were
// sampled, never scores. PrivateSampler::Pay charges before a random number is drawn. If the provenance gives every
// data set a guarantee, or all are declared public, items are sampled from the softmax itself: nothing is charged, and
// no ledger is touched. private_sampling.h says what is protected.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_PRIVATE_RECOMMENDER_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_PRIVATE_RECOMMENDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/private_sampling/sampling_setup.h"
#include "runtime/inference/session.h"

namespace wisp {

// The modes kUniform and kBaseAnchored are supported.
using PrivateRecommenderOptions = PrivateSampleOptions;

struct PrivateRecommendOptions {
  size_t count = 10;
  SeenItems seen = SeenItems::kAsModel;  // rule of the model that is sampled, not of its base
  std::span<const int32_t> excluded = {};
  std::span<const int32_t> candidates = {};  // the support, a PUBLIC list; empty: all items
  size_t base_top = 0;                       // above 0: only this many of the best items of the base; a public choice
  SupportOrigin support_origin = SupportOrigin::kPublic;
};

// Only one thread at a time may use this object and its sessions.
class PrivateRecommender {
 public:
  // `session` must outlive the recommender. kPrivacyRefused: the request has no guarantee, or needs a charge and has no
  // ledger. kUnsupported: see CheckSampleBackends.
  static Result<PrivateRecommender> Create(Session& session, const PrivateRecommenderOptions& options);

  // Returns `count` distinct items in the order sampled; fewer if not enough are left. kPrivacyRefused: the budget is
  // spent, and nothing was sampled. Errors depend only on public values and on the ledger.
  Result<std::vector<int32_t>> Recommend(std::span<const int32_t> history, const PrivateRecommendOptions& options);

  bool is_free() const { return setup_.mode == DecodingMode::kPlain; }
  const std::string& reason() const { return setup_.reason; }  // why samples are free or charged
  DecodingMode mode() const { return setup_.mode; }
  double lambda() const { return setup_.lambda; }  // 0 unless mixing
  double clip() const { return setup_.clip; }      // 0 unless anchored
  // The cost of one sample from the largest support that this was set up for; kNothing if samples are free.
  const SampleCost& cost() const { return setup_.cost; }
  double epsilon_per_sample() const { return ComputeEpsilon(setup_.cost); }      // at delta 0
  uint64_t samples_charged() const { return setup_.sampler.samples_charged(); }  // by this object
  const SamplingSetup& setup() const { return setup_; }

 private:
  PrivateRecommender(Session& session, Session* base, SamplingSetup&& setup);
  Result<std::vector<int32_t>> SupportFromBase(std::span<const int32_t> history,
                                               const PrivateRecommendOptions& options);

  Session* session_;
  Session* base_;
  SamplingSetup setup_;
  std::vector<float> scores_, base_scores_;  // the second is empty unless anchored
};

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_PRIVATE_RECOMMENDER_H_
