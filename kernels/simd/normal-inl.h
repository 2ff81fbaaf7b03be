// The standard normal distribution, Phi and phi, for GELU and Re-Attention.
#if defined(WISP_KERNELS_SIMD_NORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_KERNELS_SIMD_NORMAL_INL_H_
#undef WISP_KERNELS_SIMD_NORMAL_INL_H_
#else
#define WISP_KERNELS_SIMD_NORMAL_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {

template <class V>
struct Normal {
  V cdf;      // Phi(x)
  V density;  // phi(x)
};

// Abramowitz and Stegun 7.1.26: erfc(z) = t (a1 + t (a2 + ...)) exp(-z^2) with t = 1 / (1 + 0.3275911 z), z >= 0,
// absolute error 1.5e-7. One exponential serves both Phi and phi. Small values of Phi are computed without
// cancellation.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Normal<V> ComputeNormal(D d, V x) {
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678f));
  const V e = ExpNonPositive(d, hn::Neg(hn::Mul(z, z)));
  const V t = hn::Div(hn::Set(d, 1.0f), hn::MulAdd(hn::Set(d, 0.3275911f), z, hn::Set(d, 1.0f)));
  V p = hn::MulAdd(hn::Set(d, 1.061405429f), t, hn::Set(d, -1.453152027f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.421413741f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.284496736f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.254829592f));
  const V half_erfc = hn::Mul(hn::Mul(hn::Mul(hn::Set(d, 0.5f), p), t), e);
  const V cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), half_erfc, hn::Sub(hn::Set(d, 1.0f), half_erfc));
  return {cdf, hn::Mul(hn::Set(d, 0.39894228f), e)};
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WISP_KERNELS_SIMD_NORMAL_INL_H_
