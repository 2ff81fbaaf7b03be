// A sequence classifier as a graph: embedding, stack, first position, pooler, tanh, linear head, cross-entropy.
//
//   h = tanh(W_pool e_0 + b_pool)      e_0: the stack's first position; h: the representation, k = D values
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
  // The architecture must have passed Validate, and have a head of classes. A graph for inference takes less room, and
  // allocates none for training.
  [[gnu::cold]] Classifier(const Architecture& architecture, const kernels::Device& device,
                           const GraphOptions& options = {});

  // h [D], unclipped; valid until the context's buffers are used again. Forward buffers only, as Logits.
  const float* Represent(RecordContext& context, std::span<const int32_t> tokens) const;
  // See Graph. All records pass at once.
  void Represent(RecordContext& context, Batch batch, float* h_BD) const;
  // z [num_classes], likewise, of the context's head_input.
  const float* Logits(RecordContext& context, std::span<const int32_t> tokens) const;

  void Forward(RecordContext& context, Batch batch, double* loss_B) const;
  // The stack gets a gradient at the first row of each record only.
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return head_weight_; }

  size_t head_weight() const { return head_weight_; }  // indices into parameters()
  size_t head_bias() const { return head_bias_; }

 private:
  // The context seen through the first position of each record: one row a record.
  RecordContext FirstRows(const RecordContext& context) const;
  // The representations h [B, D] of the records that Enter has seen; and the logits [B, num_classes] of the last such
  // h.
  const float* RepresentAll(RecordContext& context, const int32_t* tokens) const;
  const float* LogitsOf(const RecordContext& context) const;
  // The first row of each record behind the last block, and its gradient. Of several records both are gathered copies.
  const float* FirstOfLast(const RecordContext& context) const;
  float* DFirstOfLast(const RecordContext& context) const;

  Embedding embedding_;
  Stack stack_;
  Linear pooler_, head_;
  size_t head_weight_, head_bias_;
  Slot<float> h_, x_, logits_;
  Slot<float> dh_, dx_, dlogits_;
  // Of a graph for several records.
  Slot<uint32_t> one_each_;
  Slot<float> first_, dfirst_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CLASSIFIER_H_
