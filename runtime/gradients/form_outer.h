// Forms the weight gradient that an OuterFactor represents.
#ifndef WISP_RUNTIME_GRADIENTS_FORM_OUTER_H_
#define WISP_RUNTIME_GRADIENTS_FORM_OUTER_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/architecture.h"
#include "runtime/layers/factors.h"

namespace wisp {

// Rows of a weight that are formed together. Blocks of a head have no more rows.
inline constexpr size_t kMostBlockRows = 256;

// Floats of scratch that FormOuter needs for a block [n, k] whose factor has a RowNorm.
inline size_t FormOuterScratch(size_t n, size_t k) { return (n + 1) * k; }

// The scratch for any block that a head emits for its table, whichever table that is.
inline size_t FormOuterScratch(const std::vector<ParameterSpec>& parameters) {
  size_t widest = 0;
  for (const ParameterSpec& p : parameters) {
    if (p.shape == ParameterShape::kTable) widest = std::max<size_t>(widest, p.cols);
  }
  return FormOuterScratch(kMostBlockRows, widest);
}

// dw [n, k], dense, (=|+=) the gradient of the factor's block. `scratch` is used if the factor has a RowNorm; otherwise
// it may be null.
inline void FormOuter(const kernels::OpTable& ops, const OuterFactor& f, kernels::Store store, float* scratch,
                      float* dw) {
  ops.linear_backward_weight({.dy_RN = f.dy_RN,
                              .lddy = f.lddy,
                              .x_RK = f.x_RK,
                              .ldx = f.ldx,
                              .dw_NK = f.row_norm ? scratch : dw,
                              .lddw = f.k,
                              .rows = f.records.rows,
                              .n = f.n,
                              .k = f.k,
                              .scale = 1.0f,
                              .store = f.row_norm ? kernels::Store::kAssign : store});
  if (!f.row_norm) return;
  ops.rms_norm_backward({.dy_RD = scratch,
                         .x_RD = f.row_norm.w_NK,
                         .gain_D = f.row_norm.gain_K,
                         .rstd_R = f.row_norm.rstd_N,
                         .dx_RD = dw,
                         .dgain_D = scratch + f.n * f.k,
                         .rows = f.n,
                         .d = f.k,
                         .store = store});
}

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_FORM_OUTER_H_
