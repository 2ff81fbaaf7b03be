// Arguments of the ops that add records' outer products as integers, none of them formed by itself.
//
// A record's factors dy and x become integers A and B, row by row; it adds A^T B, whose norm follows from the products
// of rows with each other. For records that are short and weights that are wide; docs/algorithms.md, section 2, has the
// reasons. Of tables of the host; null in a device's.
//
// Integers are at most 32,767 in magnitude: -32,768 is none of them.
#ifndef WISP_KERNELS_INTEGERS_H_
#define WISP_KERNELS_INTEGERS_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels {

inline constexpr int32_t kLargestInteger = 32767;

// y[r, i] <- floor(v + u), held to +-kLargestInteger: v = x[r, i] * scale_R[r], u the upper 24 bits, times 2^-24, of
//     h = i c + seed_R[r];  h = (h ^ h >> 16) 0x7feb352d;  h = (h ^ h >> 15) 0x846ca68b;  h ^ h >> 16
// modulo 2^32, c = 0x9e3779b9. Product and sum are rounded to float. So the mean over u is v: rounding has no bias. The
// same integers of every table, and of a row whatever lies beside it. A row whose scale is 0 becomes all zero, whatever
// it holds; others hold no NaN.
// largest_R[r] <- the largest magnitude of row r's integers, squares_R[r] <- the sum of their squares.
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

// |A^T B|^2 = sum over rows t, u of <a_t, a_u> <b_t, b_u>, returned. Of floats with an error of 1e-5 of
// (sum_t |a_t| |b_t|)^2, and not below 0; a_squares_R and b_squares_R, which may be null, <- the squares of rows, to
// 1e-5 relative. Of integers exact but for one rounding to double; the squares of each row must be below 2^31.
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

// sum_NK += A^T B, exactly. No a[r, i] is larger than largest_a_R[r] in magnitude, no b[r, j] than largest_b_R[r]: that
// says how many rows fit 32 bits.
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
  int32_t* scratch;  // OuterScratch(rows, n, k) of them
};

// Of any table.
constexpr size_t OuterScratch(size_t rows, size_t n, size_t k) { return (rows + 1) / 2 * (n + k + 256); }

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_INTEGERS_H_
