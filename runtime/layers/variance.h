// Re-Attention's variance path (docs/algorithms.md, section 3): buffers that all blocks of a graph share.
//
// The variance of the residual stream travels beside the activations, elementwise, from layer to layer; it passes no
// gradient. Each layer says with its Variance function what it does to it. Dropout is not part of it: its mask would
// change the variance of a position by a factor that averages to one over positions.
#ifndef WISP_RUNTIME_LAYERS_VARIANCE_H_
#define WISP_RUNTIME_LAYERS_VARIANCE_H_

#include "runtime/layers/context.h"

namespace wisp {

struct VarianceBuffers {
  bool on = false;                  // Re-Attention
  Slot<float> stream, normed, out;  // [T, D]
  Slot<float> inner;                // [T, F]

  VarianceBuffers(const Architecture& a, BufferPlan& plan) : on(a.re_attention == ReAttention::kOn) {
    if (!on) return;
    const size_t size = size_t{a.max_length} * a.width;
    for (Slot<float>* slot : {&stream, &normed, &out}) *slot = plan.forward.Reserve<float>(size);
    inner = plan.forward.Reserve<float>(size_t{a.max_length} * a.inner_width);
  }
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_VARIANCE_H_
