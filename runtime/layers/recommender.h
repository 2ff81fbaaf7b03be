// The recommender as a graph: embedding, stack, next-item head; and scoring, which other graphs do not have.
//
//   Recommender graph(architecture, ops, {.use = GraphUse::kInference});
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
  // The architecture must have passed Validate. A graph for inference takes less memory and reserves none for training.
  [[gnu::cold]] Recommender(const Architecture& architecture, const kernels::Device& device,
                            const GraphOptions& options = {});

  // See Graph. Do not call ReplayHead with a sampled softmax.
  void Forward(RecordContext& context, Batch batch, double* loss_B) const;
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return head_.table(); }

  // Scores every item [num_items] after `history` (1 to max_length items, oldest first). Uses forward buffers only.
  // Computes only the items after the first context.past ones, which must be fewer than all. Those must be the first
  // items of the history that passed last through this cache of all blocks, with the same weights, and KeepsKeys must
  // hold for the two lengths. The scores have the same bits as without a past.
  void Score(RecordContext& context, std::span<const int32_t> history, float* scores) const;

  // The two halves of Score: the hidden state [D] after the last item, valid until the buffers are used again; and the
  // scores of one tile of items for `rows` such states (NextItemHead::ScoreTile).
  const float* Represent(RecordContext& context, std::span<const int32_t> history) const;
  // The hidden states after every item of a history [items, D]. The whole history passes: context.past is 0.
  const float* RepresentEach(RecordContext& context, std::span<const int32_t> history) const;
  // See Graph. The records pass one after another.
  void Represent(RecordContext& context, Batch batch, float* h_BD) const;
  // Scores every item [num_items] for one hidden state h [D]. Both are in the device's memory.
  void ScoreState(const RecordContext& context, const float* h_D, float* scores) const {
    head_.Score(context, h_D, scores);
  }
  void ScoreTile(const Weights& weights, const float* h_RD, size_t rows, size_t tile, float* scores) const {
    head_.ScoreTile(weights, h_RD, rows, tile, scores);
  }

  // The two halves for several histories at once, in a device's memory: hidden states [histories, D] and scores [rows,
  // num_items]. Needs a graph for inference of that many records. A history has 1 to max_length items. Only growing
  // texts (context.text_B) read the cache. The bits equal those of one history at a time.
  const float* RepresentTogether(RecordContext& context, Batch histories) const;
  void ScoreRows(const Weights& weights, const float* h_RD, size_t rows, float* scores) const {
    head_.ScoreRows(weights, h_RD, rows, scores);
  }

  // Scores every item after each of several growing texts [texts, num_items]. A record holds the text's new tokens;
  // context.text_B has its past. On the host, with a graph for inference of that many records, without Re-Attention.
  // The bits equal those of Score.
  void ScoreTogether(RecordContext& context, Batch texts, float* scores) const {
    head_.ScoreTogether(context, RepresentTogether(context, texts), texts.size(), scores);
  }

  // True if keys and values of a history of `before` items are valid for one of `now` items with the same beginning:
  // items see only earlier items, and their positions have not changed.
  bool KeepsKeys(size_t before, size_t now) const;

 private:
  // Runs embedding and stack on what Enter or EnterOne has placed. Returns the head's input for the last `wanted` rows
  // [wanted, D]; 0: for all rows.
  const float* Encode(RecordContext& context, const int32_t* inputs, size_t wanted) const;

  // The head's input from hidden states h: for a cosine head, rows of length 1 / temperature; for other heads, h
  // itself.
  const float* ForHead(const RecordContext& context, const float* h) const;
  // The gradient of h, from the gradient that the head wrote to dunit_.
  void ForHeadBackward(const RecordContext& context, const float* h, float* dh) const;
  const float* HeadInput(const RecordContext& context) const {
    return is_cosine_ ? context.forward(unit_) : stack_.normed(context);
  }

  Embedding embedding_;
  Stack stack_;
  NextItemHead head_;
  SampledHead sampled_head_;
  bool sampled_;
  bool is_cosine_;
  // For several histories: their last hidden states, and the rows of these, on the host and on the device.
  Slot<float> together_;
  Slot<uint32_t> last_row_, last_row_on_device_;
  Slot<float> unit_, unit_rstd_, dunit_, dgain_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECOMMENDER_H_
