#include "runtime/train/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/layers/packed_weights.h"

namespace wisp {
namespace {

struct Partial {
  double hits = 0, ndcg = 0;
};

Partial EvaluateSome(const ModelView& graph, const Weights& weights, std::span<const RankingCase> cases, size_t first,
                     size_t stride, const ModelLists& lists) {
  const size_t num_items = graph.architecture().num_items, max_length = graph.architecture().max_length;
  const Buffers buffers = graph.AllocateForInference();
  const KeyValueCache cache = graph.AllocateCache(CacheBlocks::kInTurn);
  RecordContext context{.weights = weights, .buffers = buffers, .cache = &cache};
  std::vector<float> scores(num_items), popular;
  ServedList list(num_items, lists);
  std::vector<int32_t> room;
  Partial partial;
  for (size_t i = first; i < cases.size(); i += stride) {
    const RankingCase& c = cases[i];
    const auto known = HistoryWindow(c.history, lists.untrained, max_length, room);
    if (!known.empty()) {
      graph.Score(context, known, scores.data());
    } else if (popular.empty()) {
      popular.resize(num_items);
      graph.ScoreColdStart(context, lists, popular.data(), popular.data());
    }
    if (known.empty()) std::copy(popular.begin(), popular.end(), scores.begin());
    AddSuccessions(lists.successions, c.history, scores);
    const std::optional<size_t> position = list.FindPosition(c.target, scores, c.history);
    partial.hits += position ? 1 : 0;
    partial.ndcg += Ndcg(position);
  }
  return partial;
}

}  // namespace

double Ndcg(std::optional<size_t> position) {
  return position ? 1.0 / std::log2(static_cast<double>(*position) + 2.0) : 0.0;
}

RankingQuality EvaluateRanking(const ModelView& graph, const ParameterSource& source,
                               std::span<const RankingCase> cases, Workers& workers, const ModelLists& lists) {
  const PackedWeights weights(graph, source);
  std::vector<Partial> partials(workers.size());
  workers.Run([&](size_t worker) {
    partials[worker] = EvaluateSome(graph, weights.view(), cases, worker, workers.size(), lists);
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

RankingQuality EvaluateModel(const ModelFile& model, std::span<const RankingCase> cases, Workers& workers,
                             const kernels::OpTable& ops) {
  const kernels::Device device(ops);
  const auto graph =
      MakeModelView(model.architecture(), device, MakeInferenceOptions(device, model.architecture(), model.tensors()));
  return EvaluateRanking(*graph, ParameterSource(model.tensors()), cases, workers, model.lists());
}

}  // namespace wisp
