// Built for speed: a loop over every item's score.
#include "runtime/core/served_list.h"

namespace wisp {

std::span<const Succession> FindSuccessions(std::span<const Succession> successions, std::span<const int32_t> history) {
  if (history.empty()) return {};
  const auto first = std::lower_bound(successions.begin(), successions.end(), history.back(),
                                      [](const Succession& s, int32_t item) { return s.from < item; });
  const auto last =
      std::find_if(first, successions.end(), [&](const Succession& s) { return s.from != history.back(); });
  return {first, last};
}

void AddSuccessions(std::span<const Succession> successions, std::span<const int32_t> history, std::span<float> scores,
                    size_t first) {
  for (const Succession& s : FindSuccessions(successions, history)) {
    const size_t item = static_cast<size_t>(s.to);
    if (item >= first && item - first < scores.size()) scores[item - first] += s.score;
  }
}

ServedList::Chosen ServedList::Choose(std::span<const float> scores, std::span<const int32_t> history,
                                      const RecommendOptions& options, std::span<Recommendation> best) {
  std::fill(taken_.begin(), taken_.end(), uint8_t{0});
  TakeUnoffered(history, options, model_, [this](int32_t id) { taken_[static_cast<size_t>(id)] = 1; });
  TopK top(best);
  if (options.candidates.empty()) top.OfferAll(0, scores, [this](size_t id) { return taken_[id] != 0; });
  for (const int32_t id : options.candidates) {
    uint8_t& taken = taken_[static_cast<size_t>(id)];
    if (taken == 0) top.Offer({id, scores[static_cast<size_t>(id)]});
    taken = 1;  // so that a candidate that is named twice is offered once
  }
  const size_t count = top.Finish();
  return {count, top.all_finite()};
}

std::optional<size_t> ServedList::FindPosition(int32_t target, std::span<const float> scores,
                                               std::span<const int32_t> history, const RecommendOptions& options) {
  room_.resize(std::min(options.count, scores.size()));
  const Chosen chosen = Choose(scores, history, options, room_);
  if (!chosen.all_finite) return std::nullopt;
  for (size_t at = 0; at < chosen.count; ++at) {
    if (room_[at].item == target) return at;
  }
  return std::nullopt;
}

}  // namespace wisp
