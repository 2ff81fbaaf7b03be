// Every op of the table as a template over the number type: plain loops, never optimised. This is the specification.
//
// With float it is the table `ReferenceOps()`. With double it is the truth that other tables are compared with. With
// dual numbers (dual.h) it is the derivative that a backward op must equal. Contracts are in kernels/kernels.h. It
// includes attention.h, heads.h and rows.h, which have the ops of their names. The packed format of this table is W
// itself, [n, k] row-major.
#ifndef WISP_KERNELS_REFERENCE_REFERENCE_H_
#define WISP_KERNELS_REFERENCE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/by_record.h"
#include "kernels/reference/formed.h"
#include "kernels/reference/heads.h"
#include "kernels/reference/integers.h"
#include "kernels/reference/rows.h"
#include "kernels/reference/step.h"

namespace wisp::kernels::reference {

template <class T>
void PackWeights(const PackWeightsArgs<T>& a) {
  for (size_t j = 0; j < a.n; ++j) {
    for (size_t i = 0; i < a.k; ++i) a.packed[j * a.k + i] = a.w_NK[j * a.ldw + i];
  }
}

template <class T>
void LinearForward(const LinearForwardArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.n; ++j) {
      T sum = a.bias_N != nullptr ? a.bias_N[j] : T(0);
      for (size_t i = 0; i < a.k; ++i) sum = sum + a.x_RK[r * a.ldx + i] * a.packed[j * a.k + i];
      Put(a.y_RN[r * a.ldy + j], sum, a.store);
    }
  }
}

template <class T>
void LinearBackwardInput(const LinearBackwardInputArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t i = 0; i < a.k; ++i) {
      T sum(0);
      for (size_t j = 0; j < a.n; ++j) sum = sum + a.dy_RN[r * a.lddy + j] * a.w_NK[j * a.ldw + i];
      Put(a.dx_RK[r * a.lddx + i], sum, a.store);
    }
  }
}

template <class T>
void LinearBackwardWeight(const LinearBackwardWeightArgs<T>& a) {
  for (size_t j = 0; j < a.n; ++j) {
    for (size_t i = 0; i < a.k; ++i) {
      T sum(0);
      for (size_t r = 0; r < a.rows; ++r) sum = sum + a.dy_RN[r * a.lddy + j] * a.x_RK[r * a.ldx + i];
      Put(a.dw_NK[j * a.lddw + i], a.scale * sum, a.store);
    }
  }
}

template <class T>
void ColumnSumOneRecord(const ColumnSumArgs<T>& a) {
  for (size_t j = 0; j < a.n; ++j) {
    T sum(0);
    for (size_t r = 0; r < a.rows; ++r) sum = sum + a.x_RN[r * a.ldx + j];
    Put(a.out_N[j], a.scale * sum, a.store);
  }
}

template <class T>
void ColumnSum(const ColumnSumArgs<T>& a) {
  RecordByRecord(a, ColumnSumOneRecord<T>);
}

template <class T>
void LayerNormForward(const LayerNormForwardArgs<T>& a) {
  using std::sqrt;
  for (size_t r = 0; r < a.rows; ++r) {
    const T* x = a.x_RD + r * a.d;
    T mean(0), variance(0);
    for (size_t i = 0; i < a.d; ++i) mean = mean + x[i];
    mean = mean / T(static_cast<double>(a.d));
    for (size_t i = 0; i < a.d; ++i) variance = variance + (x[i] - mean) * (x[i] - mean);
    variance = variance / T(static_cast<double>(a.d));
    const T rstd = T(1) / sqrt(variance + a.epsilon);
    for (size_t i = 0; i < a.d; ++i) a.y_RD[r * a.d + i] = (x[i] - mean) * rstd * a.gain_D[i] + a.bias_D[i];
    a.mean_R[r] = mean;
    a.rstd_R[r] = rstd;
  }
}

// With u = (x - mean) rstd and e = dy gain:  dx = rstd (e - mean(e) - u mean(e u)).
template <class T>
void LayerNormBackwardOneRecord(const LayerNormBackwardArgs<T>& a) {
  for (size_t i = 0; i < a.d; ++i) a.dgain_D[i] = a.dbias_D[i] = T(0);
  for (size_t r = 0; r < a.rows; ++r) {
    const T* x = a.x_RD + r * a.d;
    const T* dy = a.dy_RD + r * a.d;
    T mean_e(0), mean_eu(0);
    for (size_t i = 0; i < a.d; ++i) {
      const T u = (x[i] - a.mean_R[r]) * a.rstd_R[r];
      const T e = dy[i] * a.gain_D[i];
      mean_e = mean_e + e;
      mean_eu = mean_eu + e * u;
      a.dgain_D[i] = a.dgain_D[i] + dy[i] * u;
      a.dbias_D[i] = a.dbias_D[i] + dy[i];
    }
    mean_e = mean_e / T(static_cast<double>(a.d));
    mean_eu = mean_eu / T(static_cast<double>(a.d));
    for (size_t i = 0; i < a.d; ++i) {
      const T u = (x[i] - a.mean_R[r]) * a.rstd_R[r];
      Put(a.dx_RD[r * a.d + i], a.rstd_R[r] * (dy[i] * a.gain_D[i] - mean_e - u * mean_eu), a.store);
    }
  }
}

template <class T>
void LayerNormBackward(const LayerNormBackwardArgs<T>& a) {
  RecordByRecord(a, LayerNormBackwardOneRecord<T>);
}

template <class T>
void RmsNormForward(const RmsNormForwardArgs<T>& a) {
  using std::sqrt;
  for (size_t r = 0; r < a.rows; ++r) {
    const T* x = a.x_RD + r * a.d;
    T mean_square(0);
    for (size_t i = 0; i < a.d; ++i) mean_square = mean_square + x[i] * x[i];
    if (a.d > 0) mean_square = mean_square / T(static_cast<double>(a.d));
    const T rstd = T(1) / sqrt(mean_square + a.epsilon);
    for (size_t i = 0; i < a.d; ++i) a.y_RD[r * a.d + i] = x[i] * rstd * a.gain_D[i];
    a.rstd_R[r] = rstd;
  }
}

// With u = x rstd and e = dy gain:  dx = rstd (e - u mean(e u)).
template <class T>
void RmsNormBackwardOneRecord(const RmsNormBackwardArgs<T>& a) {
  for (size_t i = 0; i < a.d; ++i) a.dgain_D[i] = T(0);
  for (size_t r = 0; r < a.rows; ++r) {
    const T* x = a.x_RD + r * a.d;
    const T* dy = a.dy_RD + r * a.d;
    T mean_eu(0);
    for (size_t i = 0; i < a.d; ++i) {
      const T u = x[i] * a.rstd_R[r];
      mean_eu = mean_eu + dy[i] * a.gain_D[i] * u;
      a.dgain_D[i] = a.dgain_D[i] + dy[i] * u;
    }
    mean_eu = mean_eu / T(static_cast<double>(a.d));
    for (size_t i = 0; i < a.d; ++i) {
      const T u = x[i] * a.rstd_R[r];
      Put(a.dx_RD[r * a.d + i], a.rstd_R[r] * (dy[i] * a.gain_D[i] - u * mean_eu), a.store);
    }
  }
}

template <class T>
void RmsNormBackward(const RmsNormBackwardArgs<T>& a) {
  RecordByRecord(a, RmsNormBackwardOneRecord<T>);
}

inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kInvSqrt2Pi = 0.39894228040143267794;

// 1 / (1 + exp(-x)), without computing the exponential of a large number.
template <class T>
T Sigmoid(T x) {
  using std::exp;
  const bool negative = x < T(0);
  const T e = exp(negative ? x : T(0) - x);
  return (negative ? e : T(1)) / (T(1) + e);
}

inline constexpr double kSqrtTwoOverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

template <class T>
T Activate(T x, Activation kind) {
  using std::erf;
  using std::tanh;
  switch (kind) {
    case Activation::kRelu:
      return T(0) < x ? x : T(0);
    case Activation::kGelu:
      return x * T(0.5) * (T(1) + erf(x * T(kSqrtHalf)));
    case Activation::kGeluTanh:
      return x * T(0.5) * (T(1) + tanh(T(kSqrtTwoOverPi) * x * (T(1) + T(kGeluCubic) * x * x)));
    case Activation::kSilu:
      return x * Sigmoid(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
  }
  return x;
}

// The derivative of an activation.
template <class T>
T ActivationSlope(T x, Activation kind) {
  using std::erf;
  using std::exp;
  using std::tanh;
  switch (kind) {
    case Activation::kRelu:
      return T(0) < x ? T(1) : T(0);
    case Activation::kGelu: {
      const T cdf = T(0.5) * (T(1) + erf(x * T(kSqrtHalf)));
      const T density = T(kInvSqrt2Pi) * exp(T(-0.5) * x * x);
      return cdf + x * density;
    }
    case Activation::kGeluTanh: {
      const T far(10);  // beyond this it is 0 or 1, and squares of x may overflow
      if (x < T(0) - far || far < x) return x < T(0) ? T(0) : T(1);
      const T t = tanh(T(kSqrtTwoOverPi) * x * (T(1) + T(kGeluCubic) * x * x));
      const T inner = T(kSqrtTwoOverPi) * (T(1) + T(3 * kGeluCubic) * x * x);
      return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner;
    }
    case Activation::kSilu:
      return Sigmoid(x) * (T(1) + x * Sigmoid(T(0) - x));
    case Activation::kSigmoid:
      return Sigmoid(x) * Sigmoid(T(0) - x);
  }
  return T(1);
}

template <class T>
void ActivationForward(const ActivationForwardArgs<T>& a) {
  for (size_t i = 0; i < a.n; ++i) a.y[i] = Activate(a.x[i], a.kind);
}

template <class T>
void ActivationBackward(const ActivationBackwardArgs<T>& a) {
  for (size_t i = 0; i < a.n; ++i) {
    if (a.kind == Activation::kRelu) {
      a.dx[i] = T(0) < a.x[i] ? a.dy[i] : T(0);
    } else {
      a.dx[i] = a.dy[i] * ActivationSlope(a.x[i], a.kind);
    }
  }
}

template <class T>
void GatedActivationForward(const GatedActivationForwardArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t i = 0; i < a.n; ++i) {
      a.y_RF[r * a.ldy + i] = Activate(a.gate_RF[r * a.ldgate + i], a.kind) * a.up_RF[r * a.ldup + i];
    }
  }
}

template <class T>
void GatedActivationBackward(const GatedActivationBackwardArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t i = 0; i < a.n; ++i) {
      const T dy = a.dy_RF[r * a.lddy + i], gate = a.gate_RF[r * a.ldgate + i], up = a.up_RF[r * a.ldup + i];
      a.dgate_RF[r * a.lddgate + i] = dy * up * ActivationSlope(gate, a.kind);
      a.dup_RF[r * a.lddup + i] = dy * Activate(gate, a.kind);
    }
  }
}

template <class T>
void Map(const MapArgs<T>& a) {
  using std::tanh;
  for (size_t i = 0; i < a.n; ++i) a.y[i] = a.function == Function::kTanh ? tanh(a.x[i]) : a.x[i] * a.x[i];
}

template <class T>
void Scale(const ScaleArgs<T>& a) {
  for (size_t i = 0; i < a.n; ++i) Put(a.y[i], a.a * a.x[i], a.store);
}

template <class T>
void ApplyKeep(const ApplyKeepArgs<T>& a) {
  for (size_t i = 0; i < a.n; ++i) a.y[i] = a.keep[i] != 0 ? a.x[i] * a.scale : T(0);
}

template <class T>
T HeldVariance(T v) {
  const T largest(static_cast<double>(kMaxVariance));
  if (!(T(0) < v)) return T(0);
  return v < largest ? v : largest;
}

template <class T>
void LinearVariance(const LinearVarianceArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    T sum(0);
    for (size_t k = 0; k < a.k; ++k) {
      const T mean = a.mean_RK[r * a.ldmean + k];
      sum = sum + mean * mean;
      if (a.variance_RK != nullptr) sum = sum + a.variance_RK[r * a.ldvariance + k];
    }
    for (size_t n = 0; n < a.n; ++n) {
      T& y = a.y_RN[r * a.ldy + n];
      y = HeldVariance(y + a.weight_variance * sum + a.bias_variance);
    }
  }
}

template <class T>
void LayerNormVariance(const LayerNormVarianceArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t i = 0; i < a.d; ++i) {
      const T factor = a.gain_D[i] * a.rstd_R[r];
      a.y_RD[r * a.d + i] = HeldVariance(a.x_RD[r * a.d + i] * factor * factor);
    }
  }
}

// With z = mean / deviation, E = deviation (z Phi + phi) and E[x^2] = variance ((z^2 + 1) Phi + z phi). The difference
// is written so that nothing cancels for large z: variance (Phi + z^2 Phi (1 - Phi) + z phi (1 - 2 Phi) - phi^2).
template <class T>
void ActivationVariance(const ActivationVarianceArgs<T>& a) {
  using std::erf;
  using std::exp;
  using std::sqrt;
  for (size_t i = 0; i < a.n; ++i) {
    const T variance = a.x[i];
    if (!(T(0) < variance)) {
      a.y[i] = T(0);
      continue;
    }
    T z = a.mean[i] / sqrt(variance);
    if (z < T(-8)) z = T(-8);
    if (T(8) < z) z = T(8);
    const T cdf = T(0.5) * (T(1) + erf(z * T(kSqrtHalf)));
    const T density = T(kInvSqrt2Pi) * exp(T(-0.5) * z * z);
    a.y[i] = HeldVariance(variance *
                          (cdf + z * z * cdf * (T(1) - cdf) + z * density * (T(1) - T(2) * cdf) - density * density));
  }
}

// The index in w, m and v that element i of an optimizer's gradient belongs to.
template <class Args>
size_t Of(const Args& a, size_t i) {
  return a.row_J == nullptr ? i : size_t{a.row_J[i / a.d]} * a.d + i % a.d;
}

template <class T>
void Adam(const AdamArgs<T>& a) {
  using std::sqrt;
  for (size_t i = 0; i < a.n; ++i) {
    const size_t to = Of(a, i);
    a.m[to] = a.beta1 * a.m[to] + (T(1) - a.beta1) * a.g[i];
    a.v[to] = a.beta2 * a.v[to] + (T(1) - a.beta2) * a.g[i] * a.g[i];
    const T step = a.m[to] * a.correction1 / (sqrt(a.v[to] * a.correction2) + a.epsilon);
    a.w[to] = a.w[to] - a.rate * (step + a.decay * a.w[to]);
  }
}

template <class T>
void Sgd(const SgdArgs<T>& a) {
  for (size_t i = 0; i < a.n; ++i) {
    const size_t to = Of(a, i);
    T m = a.g[i];
    if (a.m != nullptr) m = a.m[to] = a.momentum * a.m[to] + a.g[i];
    a.w[to] = a.w[to] - a.rate * (m + a.decay * a.w[to]);
  }
}

inline double Dot(const float* x, const float* y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return sum;
}

template <class Product>
double DotRowsWith(const DotRowsArgs<>& a, Product&& dot) {
  double sum = 0;
  for (size_t r = 0; r < a.rows; ++r) {
    if (a.ids_R[r] >= 0) sum += dot(a.x_RD + r * a.ldx, a.y_RD + r * a.ldy, a.d);
  }
  return sum;
}

inline double DotRows(const DotRowsArgs<>& a) { return DotRowsWith(a, Dot); }

template <class T>
void TargetLogits(const TargetLogitsArgs<T>& a) {
  TargetLogitsWith(a, WideDot<T>);
}

template <class T>
void TargetGradient(const TargetGradientArgs<T>& a) {
  TargetGradientWith(a, Scale<T>);
}

inline double SumSquares(const float* x, size_t n) { return Dot(x, x, n); }

inline double AccumulateOnGrid(const AccumulateOnGridArgs<float>& a) {
  double sum_squares = 0;
  for (size_t i = 0; i < a.n; ++i) {
    const float product = a.x[i] * a.scale;
    const auto steps = static_cast<int64_t>(std::nearbyint(product));  // the default mode: ties to even
    a.sum[i] += a.sign * steps;
    sum_squares += static_cast<double>(steps) * static_cast<double>(steps);
  }
  return sum_squares;
}

// Uses the standard library: glibc, musl and Apple's state an error of at most 2 units in the last place.
inline void ExpDouble(const ExpDoubleArgs& a) {
  for (size_t i = 0; i < a.n; ++i) a.y[i] = std::exp(std::clamp(a.x[i], -700.0, 700.0));
}

}  // namespace wisp::kernels::reference

namespace wisp::kernels {

// True for libraries whose processors all have vectors, so that nobody asks for the reference. False for libraries that
// train on Arm, because their tests ask for it.
#if defined(__wasm_simd128__) || (defined(WISP_INFERENCE_ONLY) && defined(__aarch64__))
inline constexpr bool kAlwaysVectors = true;
#else
inline constexpr bool kAlwaysVectors = false;
#endif

// The reference without the ops that every vector table replaces or lacks. With kAlwaysVectors, ReferenceOps() is this
// table, so that code which nobody calls is not linked.
const OpTable& ReferenceBesideVectors();

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_REFERENCE_REFERENCE_H_
