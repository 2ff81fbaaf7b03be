#include "runtime/private_sampling/private_recommender.h"

#include <algorithm>
#include <utility>

#include "runtime/private_sampling/sample_law.h"

namespace wisp {

PrivateRecommender::PrivateRecommender(Session& session, Session* base, SamplingSetup&& setup)
    : session_(&session),
      base_(base),
      setup_(std::move(setup)),
      scores_(session.architecture().num_items),
      base_scores_(setup_.mode == DecodingMode::kBaseAnchored ? scores_.size() : 0) {}

Result<PrivateRecommender> PrivateRecommender::Create(Session& session, const PrivateRecommenderOptions& o) {
  if (o.mode && o.mode != DecodingMode::kUniform && o.mode != DecodingMode::kBaseAnchored)
    return InvalidArgument("recommending knows the modes mixed and anchored");
  WISP_ASSIGN_OR_RETURN(SamplingSetup setup, SetUpSampling(session, o, session.architecture().num_items));
  WISP_RETURN_IF_ERROR(setup.promise.Write());
  return PrivateRecommender(session, o.base, std::move(setup));
}

Result<std::vector<int32_t>> PrivateRecommender::SupportFromBase(std::span<const int32_t> history,
                                                                 const PrivateRecommendOptions& o) {
  if (base_ == nullptr)
    return InvalidArgument("the base's best items are to be sampled from, but there is no base model");
  WISP_ASSIGN_OR_RETURN(const auto best, base_->Recommend(history, {.count = o.base_top,
                                                                    .seen = AllowsSeen(o.seen, session_->file().lists())
                                                                                ? SeenItems::kAllow
                                                                                : SeenItems::kExclude,
                                                                    .excluded = o.excluded,
                                                                    .candidates = o.candidates}));
  std::vector<int32_t> support;
  support.reserve(best.size());
  for (const Recommendation& r : best) support.push_back(r.item);
  return support;
}

Result<std::vector<int32_t>> PrivateRecommender::Recommend(std::span<const int32_t> history,
                                                           const PrivateRecommendOptions& o) {
  SampleRequest request{.scores = scores_,
                        .base_scores = base_scores_,
                        .candidates = o.candidates,
                        .count = o.count,
                        .support_origin = o.support_origin};
  std::vector<int32_t> support, excluded;
  // Withheld items are public, as the catalogue is.
  TakeUnoffered(history, {.seen = o.seen, .excluded = o.excluded}, session_->file().lists(),
                [&excluded](int32_t id) { excluded.push_back(id); });
  if (o.base_top > 0) {
    WISP_ASSIGN_OR_RETURN(support, SupportFromBase(history, o));
    if (support.empty()) return support;  // an empty list of candidates would mean all items
    request.candidates = support;
  }
  WISP_RETURN_IF_ERROR(session_->Score(history, scores_));
  // Reports non-finite scores only for weights that are sampled freely. For other weights it depends on the records if
  // scores are finite, so no error may reveal it.
  const auto finite = [](float score) { return score - score == 0; };
  if (is_free() && !std::all_of(scores_.begin(), scores_.end(), finite)) return session_->NotFinite();
  if (!base_scores_.empty()) {
    WISP_RETURN_IF_ERROR(base_->Score(history, base_scores_));
    Centre(scores_, base_scores_);
  }
  request.excluded = excluded;
  return setup_.sampler.Sample(request);
}

}  // namespace wisp
