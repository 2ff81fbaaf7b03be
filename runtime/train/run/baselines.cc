#include "runtime/train/run/baselines.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

constexpr float kLast = 0.6f, kBeforeLast = 0.4f, kPopularity = 0.001f;

}  // namespace

Baselines::Baselines(size_t num_items, std::span<const std::span<const int32_t>> train) : first_(num_items + 1, 0) {
  std::vector<uint64_t> counts(num_items, 0);
  std::vector<uint64_t> pairs;  // the first item in the upper half
  for (const std::span<const int32_t> items : train) {
    for (size_t t = 0; t < items.size(); ++t) {
      ++counts[static_cast<size_t>(items[t])];
      if (t > 0) pairs.push_back(static_cast<uint64_t>(items[t - 1]) << 32 | static_cast<uint32_t>(items[t]));
    }
  }
  counts_.assign(counts.begin(), counts.end());
  for (const float count : counts_) most_ = std::max(most_, count);
  std::sort(pairs.begin(), pairs.end());
  for (size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end] == pairs[begin]) ++end;
    edges_.push_back({static_cast<int32_t>(pairs[begin] & UINT32_MAX), std::log1p(static_cast<float>(end - begin))});
    ++first_[(pairs[begin] >> 32) + 1];
  }
  for (size_t i = 0; i < num_items; ++i) {
    first_[i + 1] += first_[i];
    float largest = 0;
    for (size_t e = first_[i]; e < first_[i + 1]; ++e) largest = std::max(largest, edges_[e].weight);
    for (size_t e = first_[i]; e < first_[i + 1]; ++e) edges_[e].weight /= largest;
  }
}

void Baselines::ScorePopularity(std::span<float> scores) const {
  std::copy(counts_.begin(), counts_.end(), scores.begin());
}

void Baselines::AddWeights(int32_t from, float share, std::span<float> scores) const {
  const auto i = static_cast<size_t>(from);
  for (size_t e = first_[i]; e < first_[i + 1]; ++e)
    scores[static_cast<size_t>(edges_[e].to)] += share * edges_[e].weight;
}

void Baselines::ScoreTransitions(std::span<const int32_t> history, std::span<float> scores) const {
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = kPopularity * counts_[i] / most_;
  if (!history.empty()) AddWeights(history.back(), kLast, scores);
  if (history.size() > 1) AddWeights(history[history.size() - 2], kBeforeLast, scores);
}

BaselineQuality EvaluateBaselines(size_t num_items, std::span<const std::span<const int32_t>> train,
                                  std::span<const RankingCase> cases, Workers& workers, ModelLists lists) {
  const Baselines baselines(num_items, train);
  lists.successions = {};
  const auto evaluate = [&](const ScoreItems& score) {
    return EvaluateScores(num_items, cases, workers, lists, [&] { return score; });
  };
  return {.popularity = evaluate([&](auto, std::span<float> scores) { baselines.ScorePopularity(scores); }),
          .transitions =
              evaluate([&](auto history, std::span<float> scores) { baselines.ScoreTransitions(history, scores); })};
}

}  // namespace wisp
