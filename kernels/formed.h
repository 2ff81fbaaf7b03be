// Arguments of the ops that write each record's gradient out, bound it and add it: of many records in one call.
//
// For devices where a call costs more than a record's share of it. Tables of the host have none of them (null): there a
// record's ops run one after the other, and what they read stays in the cache.
//
// Record b's gradient is row b of a matrix [records, P], whatever P numbers it has and in what order.
#ifndef WISP_KERNELS_FORMED_H_
#define WISP_KERNELS_FORMED_H_

#include <cstddef>
#include <cstdint>

#include "kernels/records.h"

namespace wisp::kernels {

// dw_b += dy_b^T x_b of each record: linear_backward_weight with Store::kAdd. dw [records, n, k], `stride` elements
// from one record's to the next. Error as of that.
template <class T = float>
struct RecordWeightGradientsArgs {
  const T* dy_RN;
  size_t lddy;
  const T* x_RK;
  size_t ldx;
  T* dw_BNK;
  size_t stride;
  Segments records;
  size_t n, k;
};

// table_b[ids[r]] += scale * dx[r] over the rows r of each record, in their order; ids < 0 contribute nothing. Error as
// of scatter_add.
template <class T = float>
struct RecordScatterAddArgs {
  const T* dx_RD;
  size_t lddx;
  const int32_t* ids_R;
  T* table_BMD;
  size_t stride;
  Segments records;
  size_t d;
  T scale;
};

// y_b += x_b. Exact but for one rounding.
template <class T = float>
struct AddRowsArgs {
  const T* x_BN;
  size_t ldx;
  T* y_BN;
  size_t ldy;
  size_t rows, n;
};

// squares_B[b] <- the sum of squares of row b, in double; in host memory, and there when the call returns: NaN where
// the device failed. Max error 1e-12 relative.
template <class T = float>
struct SquaresOfRowsArgs {
  const T* x_BN;
  size_t ldx;
  size_t rows, n;
  double* squares_B;
};

// Of each row b: r_i = nearest integer to x_bi * scale_b (ties to even; the product is formed in float and must lie
// within +-2^30); sum_i += sign * r_i; squares_B[b] <- sum of r_i^2. A row whose scale is 0 is left out, whatever it
// holds. Scales and squares lie in host memory; squares as of SquaresOfRowsArgs.
template <class T = float>
struct AccumulateRowsOnGridArgs {
  const T* x_BN;
  size_t ldx;
  int64_t* sum;
  size_t rows, n;
  const T* scale_B;
  int32_t sign;  // +1 or -1
  double* squares_B;
};

// The same of rows [slots, d] that each record b has for itself: row j goes to row slot_BJ[b, j] of the sum, -1: to
// none. Several rows, of one record or of several, may go to one. slot_BJ lies where x does.
template <class T = float>
struct AccumulateSlotsOnGridArgs {
  const T* x_BJD;
  size_t stride;  // elements from one record's rows to the next
  const int32_t* slot_BJ;
  int64_t* sum;
  size_t rows, slots, d;
  const T* scale_B;
  int32_t sign;  // +1 or -1
  double* squares_B;
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_FORMED_H_
