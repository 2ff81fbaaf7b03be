// A sequence classifier as a graph: embedding, stack, pooled state, pooler, linear head, cross-entropy. An encoder is a
// classifier without a head.
//
//   e = the stack's first position, or the mean of all     Pooling
//   h = f(W_pool e + b_pool), or e                         Pooler, f tanh or relu; h: the representation, D values
//   x = h min(1, C / ||h||) + noise    HeadInput; x = h where it names neither bound nor noise
//   z = W_head x + b_head              [num_classes];  loss = -log softmax(z)[label]
//
// Not a privacy mechanism: clipping bound and noise are inputs (RecordContext::head_input), and runtime/train accounts
// for them. There is no padding: a record has as many positions as tokens.
#ifndef WISP_RUNTIME_LAYERS_CLASSIFIER_H_
#define WISP_RUNTIME_LAYERS_CLASSIFIER_H_

#include <span>

#include "runtime/layers/embedding.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/stack.h"

namespace wisp {

class Classifier final : public GraphBase {
 public:
  // The architecture must have passed Validate and be a classifier or an encoder. An encoder can only represent; it has
  // no loss to train by. A graph for inference takes less memory and reserves none for training.
  [[gnu::cold]] Classifier(const Architecture& architecture, const kernels::Device& device,
                           const GraphOptions& options = {});

  // Returns h [D], not clipped; for an encoder with unit_length, of length 1. Valid until the context's buffers are
  // used again. Uses forward buffers only, as does Logits.
  const float* Represent(RecordContext& context, std::span<const int32_t> tokens) const;
  // See Graph. All records pass together.
  void Represent(RecordContext& context, Batch batch, float* h_BD) const;
  void Pool(RecordContext& context, Batch batch, float* e_BD) const;
  void PassBelow(RecordContext& context, Batch batch, size_t block, float* x_RD) const;
  // Returns z [num_classes], using the context's head_input. Lifetime and buffers are as above.
  const float* Logits(RecordContext& context, std::span<const int32_t> tokens) const;

  void Forward(RecordContext& context, Batch batch, double* loss_B) const;
  // Only the pooled rows of the stack get a gradient.
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return head_weight_; }

  size_t head_weight() const { return head_weight_; }  // index into parameters(); classifier only
  size_t head_bias() const { return head_bias_; }

 private:
  // The context with one row for each record, as the pooled states have.
  RecordContext PooledRows(const RecordContext& context) const;
  // For the records that Enter has seen: PoolAll computes e [B, D] after the final norm, the next function the
  // representations h [B, D], and the last the logits [B, num_classes] of those h.
  const float* PoolAll(RecordContext& context, const int32_t* tokens) const;
  const float* RepresentAll(RecordContext& context, const int32_t* tokens) const;
  const float* GetLogits(const RecordContext& context) const;
  // The state that is pooled from each record [B, D], after the last block; and its gradient. When first positions are
  // pooled, this is before the final norm. Both are copies, except for the first position of a single record.
  const float* Pooled(const RecordContext& context) const;
  float* DPooled(const RecordContext& context) const;
  void PoolStates(const RecordContext& context, const float* last) const;
  void PoolBackward(const RecordContext& context, FactorSink& sink) const;
  // A first position passes the final norm alone. A mean is taken over all rows after the norm.
  bool is_relu() const { return architecture_.head.pooler == Pooler::kRelu; }
  bool pools_all() const { return architecture_.head.pooling == Pooling::kMean; }
  bool copies(const RecordContext& context) const { return pools_all() || context.records.num_records > 1; }
  // The pooler's input, or where the gradient of that input is written.
  const float* PoolerInput(const RecordContext& context) const;
  float* DPoolerInput(const RecordContext& context) const;

  Embedding embedding_;
  Stack stack_;
  std::optional<Linear> pooler_, head_;
  size_t head_weight_ = 0, head_bias_ = 0;
  Slot<float> h_, x_, rstd_, logits_;
  Slot<float> dh_, dx_, dlogits_;
  // For a graph that takes several records or pools all rows.
  Slot<uint32_t> one_each_;
  Slot<float> pooled_, dpooled_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CLASSIFIER_H_
