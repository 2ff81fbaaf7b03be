// Recommending privately in one call: a session's scores, drawn from by a PrivateSampler, paid for from the data's
// ledger.
//
//   WISP_ASSIGN_OR_RETURN(auto target, privacy::EpsilonDelta::Create(2, 1e-6));
//   WISP_ASSIGN_OR_RETURN(auto recommender, PrivateRecommender::Create(*session, {.base = shipped.get(),
//       .goal = {.lifetime = DrawGoal::Lifetime{target, 5000}}, .public_datasets = labels, .ledger = &ledger}));
//   WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> items, recommender.Recommend(history, {.count = 10}));
//
// Sensitivity: every draw is a mechanism whose cost is proved in draw_cost.h. What is released: the items, in the order
// they were drawn; never scores. Which line charges: PrivateSampler::Pay, before a random number is drawn. Where the
// provenance gives every data set a guarantee, or all are declared public, nothing is charged and no ledger is touched:
// the items are drawn from the softmax itself. What is protected, and what is not, is said in private_sampling.h.
#ifndef WISP_RUNTIME_DECODING_PRIVATE_RECOMMENDER_H_
#define WISP_RUNTIME_DECODING_PRIVATE_RECOMMENDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/decoding/draw_setup.h"
#include "runtime/inference/session.h"

namespace wisp {

// Of what is drawn, kUniform or kBaseAnchored.
using PrivateRecommenderOptions = PrivateDrawOptions;

struct PrivateRecommendOptions {
  size_t count = 10;
  SeenItems seen = SeenItems::kAsModel;  // of the model that is drawn from, not of its base
  std::span<const int32_t> excluded = {};
  std::span<const int32_t> candidates = {};  // the support, a PUBLIC list; empty: all items
  size_t base_top = 0;                       // above 0: of these, only the so many best of the base; a public choice
  SupportOrigin support_origin = SupportOrigin::kPublic;
};

// Used by one thread at a time, with its sessions.
class PrivateRecommender {
 public:
  // `session` must outlive the recommender. kPrivacyRefused: what has no guarantee, or no ledger where a charge is
  // needed. kUnsupported: CheckDrawBackends.
  static Result<PrivateRecommender> Create(Session& session, const PrivateRecommenderOptions& options);

  // `count` distinct items in the order drawn, fewer when not so many are left. kPrivacyRefused where the budget is
  // spent: then nothing was drawn. Errors depend on public values and on the ledger only.
  Result<std::vector<int32_t>> Recommend(std::span<const int32_t> history, const PrivateRecommendOptions& options);

  bool is_free() const { return setup_.mode == DecodingMode::kPlain; }
  const std::string& reason() const { return setup_.reason; }  // why it is free, or is not
  DecodingMode mode() const { return setup_.mode; }
  double lambda() const { return setup_.lambda; }  // 0 unless mixing
  double clip() const { return setup_.clip; }      // 0 unless anchored
  // Of one draw, from the largest support that it was set up for; kNothing where free.
  const DrawCost& cost() const { return setup_.cost; }
  double epsilon_per_draw() const { return EpsilonOf(setup_.cost); }         // at delta 0
  uint64_t draws_charged() const { return setup_.sampler.draws_charged(); }  // by this object
  const DrawSetup& setup() const { return setup_; }

 private:
  PrivateRecommender(Session& session, Session* base, DrawSetup&& setup);
  Result<std::vector<int32_t>> SupportFromBase(std::span<const int32_t> history,
                                               const PrivateRecommendOptions& options);

  Session* session_;
  Session* base_;
  DrawSetup setup_;
  std::vector<float> scores_, base_scores_;  // the second is empty unless anchored
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_PRIVATE_RECOMMENDER_H_
