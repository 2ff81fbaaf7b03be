// A sequence classifier as a graph: embedding, stack, pooled state, pooler, linear head, cross-entropy. An encoder is
// the same without a head.
//
//   e = the stack's first position, or the mean of all     Pooling
//   h = f(W_pool e + b_pool), or e                         Pooler, f tanh or relu; h: the representation, D values
//   x = h min(1, C / ||h||) + noise    HeadInput; x = h where it names neither bound nor noise
//   z = W_head x + b_head              [num_classes];  loss = -log softmax(z)[label]
//
// What it is not: a privacy mechanism. Bound and noise are inputs to the graph (RecordContext::head_input); what they
// are worth is the business of runtime/train. It has no padding: a record has as many positions as it has tokens.
#ifndef WISP_RUNTIME_LAYERS_CLASSIFIER_H_
#define WISP_RUNTIME_LAYERS_CLASSIFIER_H_

#include <span>

#include "runtime/layers/embedding.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/stack.h"

namespace wisp {

class Classifier final : public GraphBase {
 public:
  // The architecture must have passed Validate, and have a head of classes or be an encoder, which has a representation
  // and nothing to train by. A graph for inference takes less room, and allocates none for training.
  [[gnu::cold]] Classifier(const Architecture& architecture, const kernels::Device& device,
                           const GraphOptions& options = {});

  // h [D], unclipped, of an encoder with unit_length of length 1; valid until the context's buffers are used again.
  // Forward buffers only, as Logits.
  const float* Represent(RecordContext& context, std::span<const int32_t> tokens) const;
  // See Graph. All records pass at once.
  void Represent(RecordContext& context, Batch batch, float* h_BD) const;
  void Pool(RecordContext& context, Batch batch, float* e_BD) const;
  // z [num_classes], likewise, of the context's head_input.
  const float* Logits(RecordContext& context, std::span<const int32_t> tokens) const;

  void Forward(RecordContext& context, Batch batch, double* loss_B) const;
  // The stack gets a gradient at the rows that are pooled only.
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return head_weight_; }

  size_t head_weight() const { return head_weight_; }  // indices into parameters(), of a head of classes
  size_t head_bias() const { return head_bias_; }

 private:
  // The context seen through what is pooled of each record: one row a record.
  RecordContext PooledRows(const RecordContext& context) const;
  // e [B, D] of the records that Enter has seen, behind the final norm; their representations h [B, D]; and the logits
  // [B, num_classes] of the last such h.
  const float* PoolAll(RecordContext& context, const int32_t* tokens) const;
  const float* RepresentAll(RecordContext& context, const int32_t* tokens) const;
  const float* LogitsOf(const RecordContext& context) const;
  // What is pooled of each record behind the last block [B, D], before the final norm where that is of the first
  // positions; and its gradient. Copies, but for the first position of one record.
  const float* Pooled(const RecordContext& context) const;
  float* DPooled(const RecordContext& context) const;
  void PoolStates(const RecordContext& context, const float* last) const;
  void PoolBackward(const RecordContext& context, FactorSink& sink) const;
  // A first position passes the final norm alone, a mean is of all rows behind it.
  bool is_relu() const { return architecture_.head.pooler == Pooler::kRelu; }
  bool pools_all() const { return architecture_.head.pooling == Pooling::kMean; }
  bool copies(const RecordContext& context) const { return pools_all() || context.records.num_records > 1; }
  // What the pooler reads, or where its gradient is written.
  const float* PoolerInput(const RecordContext& context) const;
  float* DPoolerInput(const RecordContext& context) const;

  Embedding embedding_;
  Stack stack_;
  std::optional<Linear> pooler_, head_;
  size_t head_weight_ = 0, head_bias_ = 0;
  Slot<float> h_, x_, rstd_, logits_;
  Slot<float> dh_, dx_, dlogits_;
  // Of a graph for several records, or one that pools all rows.
  Slot<uint32_t> one_each_;
  Slot<float> pooled_, dpooled_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CLASSIFIER_H_
