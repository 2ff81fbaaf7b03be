// Re-Attention's variance path (docs/algorithms.md, section 3): buffers that all blocks of a graph share.
//
// The variance of the residual stream travels elementwise beside the activations, from layer to layer. No gradient
// passes through it. Each layer's Variance function says how that layer changes it. Dropout is ignored: its mask would
// multiply a position's variance by a factor that averages to one over positions.
#ifndef WISP_RUNTIME_LAYERS_VARIANCE_H_
#define WISP_RUNTIME_LAYERS_VARIANCE_H_

#include <algorithm>

#include "runtime/layers/context.h"

namespace wisp {

struct VarianceBuffers {
  bool on = false;                  // Re-Attention
  Slot<float> stream, normed, out;  // [T, D]
  Slot<float> inner;                // [T, F] for the widest block

  VarianceBuffers(const Architecture& a, BufferPlan& plan) : on(a.re_attention == ReAttention::kOn) {
    if (!on) return;
    const size_t size = plan.max_rows() * a.width;
    for (Slot<float>* slot : {&stream, &normed, &out}) *slot = plan.forward.Reserve<float>(size);
    size_t widest = 0;
    for (const BlockSpec& block : a.blocks) widest = std::max<size_t>(widest, block.feed_forward.inner_width);
    inner = plan.forward.Reserve<float>(plan.max_rows() * widest);
  }
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_VARIANCE_H_
