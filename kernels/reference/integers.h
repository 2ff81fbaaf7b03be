// The reference for the ops that add outer products as integers: a part of reference.h.
#ifndef WISP_KERNELS_REFERENCE_INTEGERS_H_
#define WISP_KERNELS_REFERENCE_INTEGERS_H_

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

__extension__ typedef __int128 Int128;

// u in QuantiseRowsArgs.
inline float Dither(uint32_t seed, size_t i) {
  uint32_t h = static_cast<uint32_t>(i) * 0x9e3779b9u + seed;
  h = (h ^ h >> 16) * 0x7feb352du;
  h = (h ^ h >> 15) * 0x846ca68bu;
  return static_cast<float>((h ^ h >> 16) >> 8) * 0x1p-24f;
}

inline int32_t QuantiseOne(float x, float scale, uint32_t seed, size_t i) {
  constexpr float kLargest = kLargestInteger;
  const float v = x * scale;
  return static_cast<int32_t>(std::clamp(std::floor(v + Dither(seed, i)), -kLargest, kLargest));
}

inline void QuantiseRows(const QuantiseRowsArgs& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    int32_t largest = 0;
    int64_t squares = 0;
    for (size_t i = 0; i < a.n; ++i) {
      const int32_t y = a.scale_R[r] == 0 ? 0 : QuantiseOne(a.x_RN[r * a.ldx + i], a.scale_R[r], a.seed_R[r], i);
      a.y_RN[r * a.ldy + i] = static_cast<int16_t>(y);
      largest = std::max(largest, std::abs(y));
      squares += int64_t{y} * y;
    }
    a.largest_R[r] = largest;
    a.squares_R[r] = squares;
  }
}

inline double OuterSquares(const OuterSquaresArgs<>& a) {
  const auto dot = [](const float* x, const float* y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    return sum;
  };
  double squares = 0;
  for (size_t t = 0; t < a.rows; ++t) {
    for (size_t u = 0; u < a.rows; ++u) {
      squares += dot(a.a_RN + t * a.lda, a.a_RN + u * a.lda, a.n) * dot(a.b_RK + t * a.ldb, a.b_RK + u * a.ldb, a.k);
    }
    if (a.a_squares_R != nullptr) a.a_squares_R[t] = dot(a.a_RN + t * a.lda, a.a_RN + t * a.lda, a.n);
    if (a.b_squares_R != nullptr) a.b_squares_R[t] = dot(a.b_RK + t * a.ldb, a.b_RK + t * a.ldb, a.k);
  }
  return squares < 0 ? 0 : squares;  // NaN stays NaN
}

inline double IntegerOuterSquares(const OuterSquaresArgs<int16_t>& a) {
  const auto dot = [](const int16_t* x, const int16_t* y, size_t n) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; ++i) sum += int64_t{x[i]} * y[i];
    return sum;
  };
  Int128 squares = 0;
  for (size_t t = 0; t < a.rows; ++t) {
    for (size_t u = 0; u < a.rows; ++u) {
      squares +=
          Int128{dot(a.a_RN + t * a.lda, a.a_RN + u * a.lda, a.n)} * dot(a.b_RK + t * a.ldb, a.b_RK + u * a.ldb, a.k);
    }
  }
  return static_cast<double>(squares);
}

inline void AccumulateOuter(const AccumulateOuterArgs& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t i = 0; i < a.n; ++i) {
      for (size_t j = 0; j < a.k; ++j)
        a.sum_NK[i * a.ldsum + j] += int64_t{a.a_RN[r * a.lda + i]} * a.b_RK[r * a.ldb + j];
    }
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_INTEGERS_H_
