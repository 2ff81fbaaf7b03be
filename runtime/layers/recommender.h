// The recommender as a graph: embedding, stack, next-item head (two_tower.h trains another kind of item table).
// Training makes it through MakeGraph, everything else through MakeModelView; only these and tests name this class.
#ifndef WISP_RUNTIME_LAYERS_RECOMMENDER_H_
#define WISP_RUNTIME_LAYERS_RECOMMENDER_H_

#include "runtime/layers/embedding.h"
#include "runtime/layers/model_view.h"
#include "runtime/layers/sampled_head.h"
#include "runtime/layers/stack.h"

namespace wisp {

class Recommender : public ModelView {
 public:
  // A graph for inference takes less memory and reserves none for training.
  [[gnu::cold]] Recommender(const Architecture& architecture, const kernels::Device& device,
                            const GraphOptions& options = {});

  // See Graph. Do not call ReplayHead with a sampled softmax.
  void Forward(RecordContext& context, Batch batch, double* loss_B) const;
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return head_.table(); }

 protected:
  const float* Encode(RecordContext& context, const int32_t* inputs, size_t wanted) const override;

 private:
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
  SampledHead sampled_head_;
  bool sampled_;
  bool is_cosine_;
  Slot<float> unit_, unit_rstd_, dunit_, dgain_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECOMMENDER_H_
