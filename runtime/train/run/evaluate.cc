#include "runtime/layers/packed_weights.h"
#include "runtime/train/run/evaluate.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

struct Partial {
  double hits = 0, ndcg = 0;
};

Partial EvaluateSome(const Recommender& graph, const Weights& weights, std::span<const RankingCase> cases, size_t first,
                     size_t stride, std::span<const int32_t> retired) {
  const size_t num_items = graph.architecture().num_items, max_length = graph.architecture().max_length;
  const Buffers buffers = graph.AllocateForInference();
  const KeyValueCache cache = graph.AllocateCache(KeptBlocks::kInTurn);
  RecordContext context{.weights = weights, .buffers = buffers, .cache = &cache};
  std::vector<float> scores(num_items);
  const std::vector<uint8_t> never = RetiredMarks(num_items, retired);
  std::vector<uint8_t> excluded = never;
  Partial partial;
  for (size_t i = first; i < cases.size(); i += stride) {
    const RankingCase& c = cases[i];
    graph.Score(context, c.history.last(std::min(max_length, c.history.size())), scores.data());
    for (int32_t id : c.history) excluded[static_cast<size_t>(id)] = 1;
    const size_t rank = RankOf(scores, excluded, c.target);
    for (int32_t id : c.history) excluded[static_cast<size_t>(id)] = never[static_cast<size_t>(id)];
    partial.hits += rank < 10 ? 1 : 0;
    partial.ndcg += Ndcg(rank, 10);
  }
  return partial;
}

}  // namespace

std::vector<uint8_t> RetiredMarks(size_t num_items, std::span<const int32_t> retired) {
  std::vector<uint8_t> marks(num_items, 0);
  for (int32_t id : retired) marks[static_cast<size_t>(id)] = 1;
  return marks;
}

size_t RankOf(std::span<const float> scores, std::span<const uint8_t> excluded, int32_t target) {
  const float own = scores[static_cast<size_t>(target)];
  size_t rank = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    // "not below" rather than "above": ties and NaN count against the model.
    if (excluded[j] == 0 && j != static_cast<size_t>(target) && !(scores[j] < own)) ++rank;
  }
  return rank;
}

double Ndcg(size_t rank, size_t k) { return rank < k ? 1.0 / std::log2(static_cast<double>(rank) + 2.0) : 0.0; }

RankingQuality EvaluateRanking(const Recommender& graph, const ParameterSource& source,
                               std::span<const RankingCase> cases, Workers& workers, std::span<const int32_t> retired) {
  const PackedWeights weights(graph, source);
  std::vector<Partial> partials(workers.size());
  workers.Run([&](size_t worker) {
    partials[worker] = EvaluateSome(graph, weights.view(), cases, worker, workers.size(), retired);
  });
  RankingQuality quality{.num_users = cases.size()};
  if (cases.empty()) return quality;
  for (const Partial& partial : partials) {
    quality.hit_at_10 += partial.hits;
    quality.ndcg_at_10 += partial.ndcg;
  }
  quality.hit_at_10 /= static_cast<double>(cases.size());
  quality.ndcg_at_10 /= static_cast<double>(cases.size());
  return quality;
}

}  // namespace wisp
