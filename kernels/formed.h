// Arguments of the ops that form each record's gradient, bound it and add it, for many records in one call.
//
// They are for devices on which a call costs more than a record's share of the work. Tables of the host lack them
// (null): there the ops run record by record, so that what they read stays in the cache.
//
// Record b's gradient is row b of a matrix [records, P]. The P numbers may have any meaning and order.
#ifndef WISP_KERNELS_FORMED_H_
#define WISP_KERNELS_FORMED_H_

#include <cstddef>
#include <cstdint>

#include "kernels/records.h"

namespace wisp::kernels {

// dw_b += dy_b^T x_b for each record: linear_backward_weight with Store::kAdd. dw is [records, n, k], `stride` elements
// from one record's to the next. The error is that of linear_backward_weight.
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

// table_b[ids[r]] += scale * dx[r] over the rows r of each record, in their order; an id < 0 contributes nothing. The
// error is that of scatter_add.
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

// y_b += x_b. Exact, except for one rounding.
template <class T = float>
struct AddRowsArgs {
  const T* x_BN;
  size_t ldx;
  T* y_BN;
  size_t ldy;
  size_t rows, n;
};

// squares_B[b] = the sum of squares of row b, in double. It is in host memory and complete when the call returns; NaN
// if the device failed. Max error 1e-12 relative.
template <class T = float>
struct SquaresOfRowsArgs {
  const T* x_BN;
  size_t ldx;
  size_t rows, n;
  double* squares_B;
};

// For each row b: r_i = nearest integer to x_bi * scale_b (ties to even; the product is formed in float and must lie
// within +-2^30); sum_i += sign * r_i; squares_B[b] = sum of r_i^2, or at least 2^62 if it is at least that. A row with
// scale 0 is skipped, whatever it holds. Scales and squares are in host memory; squares are as in SquaresOfRowsArgs.
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

// Adds rows [slots, d] of each record b on the same grid. Row j goes to row slot_BJ[b, j] of the sum; it is skipped if
// that is -1. Several rows, of one record or of several, may go to one row of the sum. slot_BJ is in the same memory as
// x.
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
