// Ranking quality: whether the next item of a user is in the list that would have been shown, and at which position
// (docs/algorithms.md, section 8). The list is the served one (runtime/core/served_list.h), with its exclusions, ties
// and length.
#ifndef WISP_RUNTIME_TRAIN_RUN_EVALUATE_H_
#define WISP_RUNTIME_TRAIN_RUN_EVALUATE_H_

#include <cstdint>
#include <functional>
#include <span>

#include "runtime/core/architecture.h"
#include "runtime/core/served_list.h"
#include "runtime/core/threads.h"
#include "runtime/layers/model_view.h"
#include "runtime/model/history_window.h"
#include "runtime/model/model_file.h"

namespace wisp {

// One query: does the list that is shown after `history` contain `target`? Only the last max_length items are read.
struct RankingCase {
  std::span<const int32_t> history;  // at least one item, oldest first
  int32_t target;
};

// True if the target and the history are items of the model.
bool IsRankable(const Architecture& architecture, const RankingCase& ranking_case);

struct RankingQuality {
  double hit_at_10 = 0, ndcg_at_10 = 0;
  uint64_t num_users = 0;
};

// Writes the score of every item for the list after `history`.
using ScoreItems = std::function<void(std::span<const int32_t> history, std::span<float> scores)>;

// The quality of the lists that such scores give by the rules `lists`. Each worker scores by its own result of `make`.
RankingQuality EvaluateScores(size_t num_items, std::span<const RankingCase> cases, Workers& workers,
                              const ModelLists& lists, const std::function<ScoreItems()>& make);

// `weights` are in the flat layout of the graph's architecture, or as a file stores them. `lists` are the model's rules
// for its lists. A history of untrained items alone gets the cold-start list (ModelView::ScoreColdStart).
RankingQuality EvaluateRanking(const ModelView& graph, const ParameterSource& weights,
                               std::span<const RankingCase> cases, Workers& workers, const ModelLists& lists = {});

// The quality of a model's lists as they are served: by its own rules (ModelFile::lists), with its tables and these
// kernels.
RankingQuality EvaluateModel(const ModelFile& model, std::span<const RankingCase> cases, Workers& workers,
                             const kernels::OpTable& ops = kernels::BestOps());

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_EVALUATE_H_
