// What a layer's backward hands out instead of weight gradients: factors, one of three shapes per parameter.
//
//   Outer   dW[first_row + n, k] = sum_r dy[r, n] x[r, k]     a linear weight, the output use of a table
//                                                             (dW[ids[n], k] with ids)
//   Rows    dW[ids[r], :]       += scale * dx[r, :]            the input use of a table, positions
//   Vector  dW[first + i]        = g[i]                        biases, gains
//
// A gradient method (runtime/gradients) is a sink of factors. Layers know nothing of what it does with them.
// Several records may be behind one factor (Segments): rows [begin(b), begin(b) + size(b)) are record b's, and the
// gradient is meant of each record for itself. Of one record, a sink need not look.
//
// Lifetime: every pointer stays valid, and what it points at unchanged, until the records are finished, except the
// `dy` of Outer blocks that the head emits for one record: those only during the call (the head can emit them again).
#ifndef WISP_RUNTIME_LAYERS_FACTORS_H_
#define WISP_RUNTIME_LAYERS_FACTORS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/layers/segments.h"

namespace wisp {

// The rows w_n of a weight that are multiplied by gain / rms(w_n) before the product (RMS norm; a cosine head's table).
// The gradient of row n is that norm's backward of (dy^T x)_n. Null: they are taken as they are.
struct RowNorm {
  const float* w_NK = nullptr;  // from the block's first row on, dense
  const float* rstd_N = nullptr;
  const float* gain_K = nullptr;
  explicit operator bool() const { return w_NK != nullptr; }
};

struct OuterFactor {
  size_t parameter;  // index in ParametersOf(architecture)
  size_t first_row;  // first row of the parameter that this block covers
  const float* dy_RN;
  size_t lddy;
  const float* x_RK;
  size_t ldx;
  Segments records;
  size_t n, k;
  // Sampled softmax: the table's rows that the columns of dy stand for, distinct and ascending; null: first_row + n.
  const int32_t* ids_N = nullptr;
  RowNorm row_norm = {};
};

struct RowsFactor {
  size_t parameter;
  const int32_t* ids_R;  // < 0: padding, contributes nothing
  const float* dx_RD;
  size_t lddx;
  Segments records;
  size_t d;
  float scale;
  bool of_targets = false;  // ids_R are the records' targets; else their inputs, or positions
};

struct VectorFactor {
  size_t parameter;
  size_t first;
  const float* g_BN;  // [records, n]
  size_t n;
};

class FactorSink {
 public:
  virtual ~FactorSink() = default;
  // Whether factors of this parameter are to be emitted: a layer asks first, and spares itself what is frozen.
  virtual bool Wants(size_t parameter) const = 0;
  virtual void Outer(const OuterFactor& factor) = 0;
  virtual void Rows(const RowsFactor& factor) = 0;
  virtual void Vector(const VectorFactor& factor) = 0;
  // What the factors so far point at may change now: where blocks are computed again, after each of them.
  virtual void EndKept() {}
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_FACTORS_H_
