// Forward-mode dual numbers: value and derivative along one direction. Exact derivatives of the reference templates.
#ifndef WISP_KERNELS_REFERENCE_DUAL_H_
#define WISP_KERNELS_REFERENCE_DUAL_H_

#include <cmath>

namespace wisp::kernels::reference {

struct Dual {
  double value = 0, derivative = 0;
  constexpr Dual() = default;
  constexpr Dual(double v, double d = 0) : value(v), derivative(d) {}  // NOLINT: numbers convert
};

inline Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.derivative + b.derivative}; }
inline Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.derivative - b.derivative}; }
inline Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.derivative * b.value + a.value * b.derivative}; }
inline Dual operator/(Dual a, Dual b) {
  return {a.value / b.value, (a.derivative * b.value - a.value * b.derivative) / (b.value * b.value)};
}
inline bool operator<(Dual a, Dual b) { return a.value < b.value; }
inline bool operator==(Dual a, Dual b) { return a.value == b.value; }

inline Dual exp(Dual a) { return {std::exp(a.value), std::exp(a.value) * a.derivative}; }
inline Dual log(Dual a) { return {std::log(a.value), a.derivative / a.value}; }
inline Dual sqrt(Dual a) { return {std::sqrt(a.value), a.derivative / (2 * std::sqrt(a.value))}; }
inline Dual tanh(Dual a) {
  const double t = std::tanh(a.value);
  return {t, (1 - t * t) * a.derivative};
}
inline Dual erf(Dual a) {
  constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
  return {std::erf(a.value), kTwoOverSqrtPi * std::exp(-a.value * a.value) * a.derivative};
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_DUAL_H_
