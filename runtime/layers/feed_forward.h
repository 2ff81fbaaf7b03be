// Two linear layers with an activation between them: out(f(in(x))). If gated: out(f(G x) * U x), with in = [G; U].
#ifndef WISP_RUNTIME_LAYERS_FEED_FORWARD_H_
#define WISP_RUNTIME_LAYERS_FEED_FORWARD_H_

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/linear.h"

namespace wisp {

class FeedForward {
 public:
  // The feed-forward of block `index`.
  [[gnu::cold]] FeedForward(const Architecture& architecture, const std::vector<ParameterSpec>& parameters,
                            uint32_t index, BufferPlan& plan);

  // x, y [rows, D]; y is before the residual is added.
  void Forward(const RecordContext& context, const float* x, float* y) const;

  // dy, dx [rows, D]; dx is assigned or added to, as `store` says.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

  // Re-Attention: var_y [rows, D] from the variance of x, the input of the last Forward. `var_inner` [rows, F] is
  // scratch.
  void Variance(const RecordContext& context, const float* x, const float* var_x, float* var_inner, float* var_y) const;

 private:
  void Activate(const RecordContext& context) const;
  void ActivateBackward(const RecordContext& context, const float* dafter) const;

  size_t inner_, in_rows_;
  bool gated_;
  kernels::Activation activation_;
  Linear in_, out_;
  Slot<float> before_, after_;    // [rows, in rows], [rows, F]
  Slot<float> dbefore_, dafter_;  // gradients of these; both share memory if the activation has one input
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_FEED_FORWARD_H_
