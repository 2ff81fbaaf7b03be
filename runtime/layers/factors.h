// A layer's backward emits factors instead of weight gradients. Each parameter has factors of one of three shapes.
//
//   Outer   dW[first_row + n, k] = sum_r dy[r, n] x[r, k]     a linear weight, the output use of a table
//                                                             (dW[ids[n], k] with ids)
//   Rows    dW[ids[r], :]       += scale * dx[r, :]            the input use of a table, positions
//   Vector  dW[first + i]        = g[i]                        biases, gains
//
// A gradient method (runtime/gradients) is a sink of factors. Layers do not know what a sink does with them. One factor
// may cover several records (Segments): rows [begin(b), begin(b) + size(b)) belong to record b, and the formulas hold
// for each record by itself. With one record a sink may ignore the segments.
//
// Lifetime: every pointer and its data stay valid and unchanged until the records are finished. The exception is the
// `dy` of an Outer block that the head emits for one record: it is valid only during the call. The head can emit it
// again.
#ifndef WISP_RUNTIME_LAYERS_FACTORS_H_
#define WISP_RUNTIME_LAYERS_FACTORS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/layers/segments.h"

namespace wisp {

// Rows w_n of a weight that are multiplied by gain / rms(w_n) before the product, as in a cosine head's table. The
// gradient of row n is then this norm's backward of (dy^T x)_n. Null: rows are used unchanged.
struct RowNorm {
  const float* w_NK = nullptr;  // the block's first row; rows are dense
  const float* rstd_N = nullptr;
  const float* gain_K = nullptr;
  explicit operator bool() const { return w_NK != nullptr; }
};

struct OuterFactor {
  size_t parameter;  // index in ListParameters(architecture)
  size_t first_row;  // first row of the parameter that this block covers
  const float* dy_RN;
  size_t lddy;
  const float* x_RK;
  size_t ldx;
  Segments records;
  size_t n, k;
  // Sampled softmax: the table rows of dy's columns, distinct and ascending. Null: column n is row first_row + n.
  const int32_t* ids_N = nullptr;
  RowNorm row_norm = {};
};

struct RowsFactor {
  size_t parameter;
  const int32_t* ids_R;  // an id < 0 is padding and contributes nothing
  const float* dx_RD;
  size_t lddx;
  Segments records;
  size_t d;
  float scale;
  bool of_targets = false;  // true: ids_R are the records' targets; false: their inputs or positions
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
  // True if the sink wants factors of this parameter. A layer asks first and skips work for frozen parameters.
  virtual bool Wants(size_t parameter) const = 0;
  virtual void Outer(const OuterFactor& factor) = 0;
  virtual void Rows(const RowsFactor& factor) = 0;
  virtual void Vector(const VectorFactor& factor) = 0;
  // Says that data of earlier factors may change from now on. Called after each block where blocks are recomputed.
  virtual void EndKept() {}
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_FACTORS_H_
