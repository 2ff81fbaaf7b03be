// Arguments of the ops that add records' outer products as integers without forming any record's product.
//
// A record's factors dy and x become integers A and B, row by row. The record adds A^T B, whose norm follows from the
// products of rows with each other. This is for short records and wide weights; docs/algorithms.md, section 2, gives
// the reasons. Tables of the host have these ops; they are null in a device's.
//
// Integers are at most 32,767 in magnitude: -32,768 does not occur.
#ifndef WISP_KERNELS_INTEGERS_H_
#define WISP_KERNELS_INTEGERS_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels {

inline constexpr int32_t kLargestInteger = 32767;

// y[r, i] = floor(v + u), limited to +-kLargestInteger. v = x[r, i] * scale_R[r], and u is the upper 24 bits, times
// 2^-24, of
//     h = i c + seed_R[r];  h = (h ^ h >> 16) 0x7feb352d;  h = (h ^ h >> 15) 0x846ca68b;  h ^ h >> 16
// modulo 2^32, c = 0x9e3779b9. Product and sum are rounded to float. The mean over u is v, so rounding has no bias.
// Every table gives the same integers, and a row's integers do not depend on other rows. A row with scale 0 becomes all
// zero, whatever it holds; other rows must not hold NaN.
// largest_R[r] = the largest magnitude of row r's integers, squares_R[r] = the sum of their squares.
struct QuantiseRowsArgs {
  const float* x_RN;
  size_t ldx;
  const float* scale_R;
  const uint32_t* seed_R;
  int16_t* y_RN;
  size_t ldy;
  size_t rows, n;
  int32_t* largest_R;
  int64_t* squares_R;
};

// Returns |A^T B|^2 = sum over rows t, u of <a_t, a_u> <b_t, b_u>. For floats, the error is 1e-5 of (sum_t |a_t|
// |b_t|)^2, and the result is not below 0; a_squares_R and b_squares_R, which may be null, get the squares of rows, to
// 1e-5 relative. For integers it is exact except for one rounding to double; the squares of each row must be below
// 2^31.
template <class T = float>
struct OuterSquaresArgs {
  const T* a_RN;
  size_t lda;
  const T* b_RK;
  size_t ldb;
  size_t rows, n, k;
  double* a_squares_R = nullptr;
  double* b_squares_R = nullptr;
};

// sum_NK += A^T B, exactly. largest_a_R[r] and largest_b_R[r] bound the magnitudes of a[r, i] and b[r, j]. These bounds
// tell how many rows fit 32 bits.
struct AccumulateOuterArgs {
  const int16_t* a_RN;
  size_t lda;
  const int32_t* largest_a_R;
  const int16_t* b_RK;
  size_t ldb;
  const int32_t* largest_b_R;
  int64_t* sum_NK;
  size_t ldsum;
  size_t rows, n, k;
  int32_t* scratch;  // has OuterScratch(rows, n, k) elements
};

// The scratch that any table needs.
constexpr size_t OuterScratch(size_t rows, size_t n, size_t k) { return (rows + 1) / 2 * (n + k + 256); }

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_INTEGERS_H_
