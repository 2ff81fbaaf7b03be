#include "runtime/train/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "runtime/layers/packed_weights.h"

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

// Scores items as a model does. Owns the memory that one worker needs.
class ModelScores {
 public:
  ModelScores(const ModelView& graph, const Weights& weights, const ModelLists& lists)
      : graph_(graph), weights_(weights), lists_(lists) {}

  void Score(std::span<const int32_t> history, std::span<float> scores) {
    const auto known = HistoryWindow(history, lists_.untrained, graph_.architecture().max_length, room_);
    if (!known.empty()) {
      graph_.Score(context_, known, scores.data());
    } else if (popular_.empty()) {
      popular_.resize(scores.size());
      graph_.ScoreColdStart(context_, lists_, popular_.data(), popular_.data());
    }
    if (known.empty()) std::copy(popular_.begin(), popular_.end(), scores.begin());
    AddSuccessions(lists_.successions, history, scores);
  }

 private:
  const ModelView& graph_;
  const Weights& weights_;
  const ModelLists lists_;
  const Buffers buffers_ = graph_.AllocateForInference();
  const KeyValueCache cache_ = graph_.AllocateCache(CacheBlocks::kInTurn);
  RecordContext context_{.weights = weights_, .buffers = buffers_, .cache = &cache_};
  std::vector<float> popular_;  // empty until it is needed
  std::vector<int32_t> room_;
};

}  // namespace

double Ndcg(std::optional<size_t> position) {
  return position ? 1.0 / std::log2(static_cast<double>(*position) + 2.0) : 0.0;
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
    const auto model = std::make_shared<ModelScores>(graph, weights.view(), lists);
    return [model](std::span<const int32_t> history, std::span<float> scores) { model->Score(history, scores); };
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
