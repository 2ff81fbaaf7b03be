// The recommender as a graph: embedding, stack, next-item head; and what only it does, scoring.
//
//   Recommender graph(architecture, ops, 0, GraphUse::kInference);
//   Buffers buffers = graph.AllocateForInference();
//   KeyValueCache cache = graph.AllocateCache(KeptBlocks::kAll);
//   RecordContext context{.weights = weights, .buffers = buffers, .cache = &cache};
//   graph.Score(context, history, scores);
#ifndef WISP_RUNTIME_LAYERS_RECOMMENDER_H_
#define WISP_RUNTIME_LAYERS_RECOMMENDER_H_

#include <span>

#include "runtime/layers/embedding.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/next_item_head.h"
#include "runtime/layers/sampled_head.h"
#include "runtime/layers/stack.h"

namespace wisp {

class Recommender final : public GraphBase {
 public:
  // The architecture must have passed Validate. `num_negatives` > 0: trained with a sampled softmax of that many
  // negatives, given in the context; such a graph does not Score, and a step of it costs the same for any number of
  // items. `head`: kNone for a graph that only scores, over a table of halves.
  // A graph for inference takes less room, and allocates none for training.
  Recommender(const Architecture& architecture, const kernels::OpTable& ops, size_t num_negatives = 0,
              GraphUse use = GraphUse::kTraining, HeadPacking head = HeadPacking::kTiles);

  double Forward(RecordContext& context, const Record& record) const;
  void Backward(const RecordContext& context, const Record& record, FactorSink& sink) const;
  // Not with a sampled softmax.
  void ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const;
  size_t head_parameter() const { return head_.table(); }

  // Scores of every item [num_items] after `history` (1 to max_length items, oldest first). Forward buffers only. The
  // first context.past of them, fewer than all, were the first of the history that passed through this cache of all
  // blocks last, with the same weights, and the two lengths keep keys: then only the others are computed. The scores
  // are the same, bit for bit.
  void Score(RecordContext& context, std::span<const int32_t> history, float* scores) const;

  // The two halves of Score: the hidden state [D] after the last item, valid until the buffers are used again; and the
  // scores of one tile of items for `rows` of them (NextItemHead::ScoreTile).
  const float* Represent(RecordContext& context, std::span<const int32_t> history) const;
  void ScoreTile(const Weights& weights, const float* h_RD, size_t rows, size_t tile, float* scores) const {
    head_.ScoreTile(weights, h_RD, rows, tile, scores);
  }

  // Whether keys and values of a history of `before` items hold for one of `now` items that begins alike: items see
  // those before them only, and stand where they stood.
  bool KeepsKeys(size_t before, size_t now) const;

 private:
  // Returns the hidden states of the last `wanted` rows, of all if 0 [wanted, D].
  const float* Encode(RecordContext& context, std::span<const int32_t> inputs, size_t wanted) const;

  Embedding embedding_;
  Stack stack_;
  NextItemHead head_;
  SampledHead sampled_head_;
  bool sampled_;
  Slot<float> weights_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECOMMENDER_H_
