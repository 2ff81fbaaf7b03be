#include "runtime/train/list_scorer.h"

#include <algorithm>
#include <cmath>

#include "runtime/model/history_window.h"

namespace wisp {

double Ndcg(std::optional<size_t> position) {
  return position ? 1.0 / std::log2(static_cast<double>(*position) + 2.0) : 0.0;
}

ListScorer::ListScorer(const ModelView& graph, const Weights& weights, const ModelLists& lists, CacheBlocks cache)
    : graph_(graph),
      lists_(lists),
      kept_(cache),
      buffers_(graph.AllocateForInference()),
      cache_(graph.AllocateCache(cache)),
      context_{.weights = weights, .buffers = buffers_, .cache = &cache_},
      scores_(graph.num_items()),
      list_(graph.num_items(), lists) {}

std::span<const float> ListScorer::Score(std::span<const int32_t> history, bool continues) {
  const size_t most = graph_.architecture().max_length;
  const std::span<const int32_t> known = HistoryWindow(history, lists_.untrained, most, room_);
  if (known.empty()) {
    const std::span<const float> popular = GetColdStartScores();
    std::copy(popular.begin(), popular.end(), scores_.begin());
  } else {
    // True if the model reads all known items of the history, so that what was read before is its beginning.
    const bool is_whole =
        known.size() == history.size() || (!room_.empty() && known.data() == room_.data() && known.size() < most);
    const bool keeps = continues && kept_ == CacheBlocks::kAll && is_whole && read_ < known.size() &&
                       graph_.KeepsKeys(read_, known.size());
    context_.past = keeps ? read_ : 0;
    graph_.Score(context_, known, scores_.data());
    read_ = is_whole ? known.size() : 0;
  }
  AddSuccessions(lists_.successions, history, scores_);
  return scores_;
}

std::span<const float> ListScorer::GetColdStartScores() {
  read_ = 0;
  if (!popular_.empty()) return popular_;
  context_.past = 0;
  popular_.resize(scores_.size());
  graph_.ScoreColdStart(context_, lists_, popular_.data(), popular_.data());
  return popular_;
}

}  // namespace wisp
