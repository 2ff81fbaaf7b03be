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
  Classifier(const Architecture& architecture, const kernels::OpTable& ops, GraphUse use = GraphUse::kTraining);

  // h [D], unclipped; valid until the context's buffers are used again. Forward buffers only, as Logits.
  const float* Represent(RecordContext& context, std::span<const int32_t> tokens) const;
  // z [num_classes], likewise, of the context's head_input.
  const float* Logits(RecordContext& context, std::span<const int32_t> tokens) const;

  double Forward(RecordContext& context, const Record& record) const;
  // The stack gets a gradient at row 0 only.
  void Backward(const RecordContext& context, const Record& record, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const;
  size_t head_parameter() const { return head_weight_; }

  size_t head_weight() const { return head_weight_; }  // indices into parameters()
  size_t head_bias() const { return head_bias_; }

 private:
  Embedding embedding_;
  Stack stack_;
  Linear pooler_, head_;
  size_t head_weight_, head_bias_;
  Slot<float> h_, x_, logits_;
  Slot<float> dh_, dx_, dlogits_;
};

// min(1, bound / ||h||) in double; 1 where bound is 0.
double ClipScale(const float* h, size_t n, double bound);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CLASSIFIER_H_
