// Lists that need no training, to compare a model's lists with: the popular items, and the items that followed a
// person's last two in the log. Both count events, without noise: local only.
//
//   const BaselineQuality plain = EvaluateBaselines(num_items, divided.train, divided.cases, workers, model.lists());
#ifndef WISP_RUNTIME_TRAIN_RUN_BASELINES_H_
#define WISP_RUNTIME_TRAIN_RUN_BASELINES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/core/threads.h"
#include "runtime/train/run/evaluate.h"

namespace wisp {

class Baselines {
 public:
  // Counts the items of `train`, which are below num_items, and their pairs of neighbours.
  Baselines(size_t num_items, std::span<const std::span<const int32_t>> train);

  // The number of an item's events.
  void ScorePopularity(std::span<float> scores) const;

  // The transition heuristic of Han et al. (arXiv 2605.07125), TGH-2, without its features of items, which a log does
  // not have. The score of item j after ..., b, a is
  //
  //   0.6 w(a, j) + 0.4 w(b, j) + 0.001 n_j / max n,    w(i, j) = log(1 + c(i, j)) / max over k of log(1 + c(i, k)),
  //
  // where c(i, j) counts how often j followed i, and n_j the events of j. w is the paper's weight of an edge. 0.6 and
  // 0.4 are the shares of a list that it gives to the last item and the one before. Popularity orders the rest.
  void ScoreTransitions(std::span<const int32_t> history, std::span<float> scores) const;

 private:
  void AddWeights(int32_t from, float share, std::span<float> scores) const;

  struct Edge {
    int32_t to;
    float weight;
  };
  std::vector<float> counts_;
  float most_ = 1;  // the largest of them
  std::vector<Edge> edges_;
  std::vector<size_t> first_;  // the first edge of each item, and the number of edges
};

struct BaselineQuality {
  RankingQuality popularity, transitions;
};

// The quality of both baselines, which learn from `train`. `lists` are the rules of the model that they are compared
// with; its successions are left out.
BaselineQuality EvaluateBaselines(size_t num_items, std::span<const std::span<const int32_t>> train,
                                  std::span<const RankingCase> cases, Workers& workers, ModelLists lists = {});

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_BASELINES_H_
