#include "runtime/train/run/evaluate.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/layers/packed_weights.h"
#include "runtime/train/list_scorer.h"

namespace wisp {
namespace {

struct Partial {
  double hits = 0, ndcg = 0;
};

Partial EvaluateSome(size_t num_items, std::span<const RankingCase> cases, size_t first, size_t stride,
                     const ModelLists& lists, const ScoreItems& score) {
  std::vector<float> scores(num_items);
  ServedList list(num_items, lists);
  Partial partial;
  for (size_t i = first; i < cases.size(); i += stride) {
    score(cases[i].history, scores);
    const std::optional<size_t> position = list.FindPosition(cases[i].target, scores, cases[i].history);
    partial.hits += position ? 1 : 0;
    partial.ndcg += Ndcg(position);
  }
  return partial;
}

}  // namespace

bool IsRankable(const Architecture& a, const RankingCase& c) {
  const auto is_item = [&](int32_t id) { return id >= 0 && id < static_cast<int64_t>(a.num_items); };
  return is_item(c.target) && std::all_of(c.history.begin(), c.history.end(), is_item);
}

RankingQuality EvaluateScores(size_t num_items, std::span<const RankingCase> cases, Workers& workers,
                              const ModelLists& lists, const std::function<ScoreItems()>& make) {
  std::vector<Partial> partials(workers.size());
  workers.Run(
      [&](size_t worker) { partials[worker] = EvaluateSome(num_items, cases, worker, workers.size(), lists, make()); });
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

RankingQuality EvaluateRanking(const ModelView& graph, const ParameterSource& source,
                               std::span<const RankingCase> cases, Workers& workers, const ModelLists& lists) {
  const PackedWeights weights(graph, source);
  return EvaluateScores(graph.architecture().num_items, cases, workers, lists, [&]() -> ScoreItems {
    const auto scorer = std::make_shared<ListScorer>(graph, weights.view(), lists);
    return [scorer](std::span<const int32_t> history, std::span<float> scores) {
      const std::span<const float> of_model = scorer->Score(history);
      std::copy(of_model.begin(), of_model.end(), scores.begin());
    };
  });
}

RankingQuality EvaluateModel(const ModelFile& model, std::span<const RankingCase> cases, Workers& workers,
                             const kernels::OpTable& ops) {
  const kernels::Device device(ops);
  const auto graph =
      MakeModelView(model.architecture(), device, MakeInferenceOptions(device, model.architecture(), model.tensors()));
  return EvaluateRanking(*graph, ParameterSource(model.tensors()), cases, workers, model.lists());
}

}  // namespace wisp
