// Scores of all items after a history, and positions in the list that people are shown with them. Evaluation, tests and
// the choices of a run all use this class, so that they count the same lists.
//
//   ListScorer scorer(*graph, weights.view(), model.lists());
//   const double ndcg = Ndcg(scorer.FindPosition(target, scorer.Score(history), history));
#ifndef WISP_RUNTIME_TRAIN_LIST_SCORER_H_
#define WISP_RUNTIME_TRAIN_LIST_SCORER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/layers/model_view.h"

namespace wisp {

// The NDCG of a list with one relevant item: 1 / log2(position + 2), and 0 if it is not shown.
double Ndcg(std::optional<size_t> position);

class ListScorer {
 public:
  // One thread's buffers. `graph`, `weights` and the memory behind `lists` must outlive the scorer. With kAll the keys
  // and values of a history are kept, and one that continues it costs its new items only.
  ListScorer(const ModelView& graph, const Weights& weights, const ModelLists& lists,
             CacheBlocks cache = CacheBlocks::kInTurn);
  ListScorer(const ListScorer&) = delete;
  ListScorer& operator=(const ListScorer&) = delete;

  // The complete scores [num_items] after `history`, valid until the next call. A history without items that the model
  // knows gets the scores of a cold start. `continues`: `history` begins with the one of the previous call.
  std::span<const float> Score(std::span<const int32_t> history, bool continues = false);

  // The position of `target`, from 0, in the list after `history`; nullopt if it is not shown.
  std::optional<size_t> FindPosition(int32_t target, std::span<const float> scores, std::span<const int32_t> history) {
    return list_.FindPosition(target, scores, history);
  }

 private:
  std::span<const float> GetColdStartScores();

  const ModelView& graph_;
  const ModelLists lists_;
  const CacheBlocks kept_;
  std::vector<int32_t> room_;
  Buffers buffers_;
  KeyValueCache cache_;
  RecordContext context_;
  std::vector<float> scores_, popular_;  // popular_ is empty until it is needed
  ServedList list_;
  size_t read_ = 0;  // number of items of the newest history in the cache
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_LIST_SCORER_H_
