// The recommender as a graph: embedding, stack, next-item head; and what only it does, scoring.
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
  // The architecture must have passed Validate. A graph for inference takes less room, and allocates none for training.
  [[gnu::cold]] Recommender(const Architecture& architecture, const kernels::Device& device,
                            const GraphOptions& options = {});

  // See Graph. ReplayHead is not for a sampled softmax.
  void Forward(RecordContext& context, Batch batch, double* loss_B) const;
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return head_.table(); }

  // Scores of every item [num_items] after `history` (1 to max_length items, oldest first). Forward buffers only. The
  // first context.past of them, fewer than all, were the first of the history that passed through this cache of all
  // blocks last, with the same weights, and the two lengths keep keys: then only the others are computed. The scores
  // are the same, bit for bit.
  void Score(RecordContext& context, std::span<const int32_t> history, float* scores) const;

  // The two halves of Score: the hidden state [D] after the last item, valid until the buffers are used again; and the
  // scores of one tile of items for `rows` of them (NextItemHead::ScoreTile).
  const float* Represent(RecordContext& context, std::span<const int32_t> history) const;
  // The hidden states after every item of a history [items, D], which passes as a whole: context.past is 0.
  const float* RepresentEach(RecordContext& context, std::span<const int32_t> history) const;
  // See Graph. The records pass one after the other.
  void Represent(RecordContext& context, Batch batch, float* h_BD) const;
  // Scores of every item [num_items] of one hidden state h [D], in the device's memory.
  void ScoreState(const RecordContext& context, const float* h_D, float* scores) const {
    head_.Score(context, h_D, scores);
  }
  void ScoreTile(const Weights& weights, const float* h_RD, size_t rows, size_t tile, float* scores) const {
    head_.ScoreTile(weights, h_RD, rows, tile, scores);
  }

  // The same halves of several histories at once, in a device's memory: hidden states [histories, D], and scores [rows,
  // num_items]. Of a graph for inference of so many records; histories of 1 to max_length items; nothing is taken from
  // the cache, but of texts that grow (context.text_B). The same bits as one by one.
  const float* RepresentTogether(RecordContext& context, Batch histories) const;
  void ScoreRows(const Weights& weights, const float* h_RD, size_t rows, float* scores) const {
    head_.ScoreRows(weights, h_RD, rows, scores);
  }

  // Scores of every item after each of several texts that grow [texts, num_items]: of each the record has what is new,
  // and context.text_B has its past. On the host; of a graph for inference of so many records; without Re-Attention.
  // The same bits as Score gives each.
  void ScoreTogether(RecordContext& context, Batch texts, float* scores) const {
    head_.ScoreTogether(context, RepresentTogether(context, texts), texts.size(), scores);
  }

  // Whether keys and values of a history of `before` items hold for one of `now` items that begins alike: items see
  // those before them only, and stand where they stood.
  bool KeepsKeys(size_t before, size_t now) const;

 private:
  // Runs embedding and stack over what Enter or EnterOne has seen. Returns what the head reads of the last `wanted`
  // rows, of all if 0 [wanted, D].
  const float* Encode(RecordContext& context, const int32_t* inputs, size_t wanted) const;

  // What the head reads of hidden states h: of a cosine head rows of length 1 / temperature, of another h itself.
  const float* ForHead(const RecordContext& context, const float* h) const;
  // The gradient of h, from what the head wrote to dunit_.
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
  // Of several histories: their last hidden states, and which rows those are, on the host and on the device.
  Slot<float> together_;
  Slot<uint32_t> last_row_, last_row_on_device_;
  Slot<float> unit_, unit_rstd_, dunit_, dgain_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECOMMENDER_H_
