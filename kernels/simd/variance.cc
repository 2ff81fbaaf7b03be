// The effect of noise in the weights on activations (Re-Attention), for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/variance.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/normal-inl.h"
#include "kernels/simd/partial-inl.h"

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Limits to [0, kMaxVariance]; NaN becomes 0.
HWY_INLINE V Hold(D d, V v) {
  const V positive = hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), v);
  return hn::Min(positive, hn::Set(d, kMaxVariance));
}

HWY_INLINE float MeanSquaresPlusVariances(const float* mean, const float* variance, size_t k) {
  const D d;
  V sum = hn::Zero(d);
  ForEachVector(k, [&](size_t i, size_t count) {
    const V m = LoadSome(d, mean + i, count);
    sum = hn::MulAdd(m, m, sum);
    if (variance != nullptr) sum = hn::Add(sum, LoadSome(d, variance + i, count));
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void LinearVariance(const LinearVarianceArgs<>& a) {
  const D d;
  for (size_t r = 0; r < a.rows; ++r) {
    const float sum = MeanSquaresPlusVariances(
        a.mean_RK + r * a.ldmean, a.variance_RK == nullptr ? nullptr : a.variance_RK + r * a.ldvariance, a.k);
    const V added = hn::Set(d, a.weight_variance * sum + a.bias_variance);
    float* y = a.y_RN + r * a.ldy;
    ForEachVector(a.n, [&](size_t i, size_t count) {
      StoreSome(Hold(d, hn::Add(LoadSome(d, y + i, count), added)), d, y + i, count);
    });
  }
}

void LayerNormVariance(const LayerNormVarianceArgs<>& a) {
  const D d;
  for (size_t r = 0; r < a.rows; ++r) {
    const V rstd = hn::Set(d, a.rstd_R[r]);
    ForEachVector(a.d, [&](size_t i, size_t count) {
      const V factor = hn::Mul(LoadSome(d, a.gain_D + i, count), rstd);
      StoreSome(Hold(d, hn::Mul(LoadSome(d, a.x_RD + r * a.d + i, count), hn::Mul(factor, factor))), d,
                a.y_RD + r * a.d + i, count);
    });
  }
}

void ActivationVariance(const ActivationVarianceArgs<>& a) {
  const D d;
  const V one = hn::Set(d, 1.0f), limit = hn::Set(d, 8.0f);
  ForEachVector(a.n, [&](size_t i, size_t count) {
    const V variance = LoadSome(d, a.x + i, count);
    const auto positive = hn::Gt(variance, hn::Zero(d));
    V z = hn::Div(LoadSome(d, a.mean + i, count), hn::Sqrt(hn::IfThenElse(positive, variance, one)));
    z = hn::Max(hn::Neg(limit), hn::Min(limit, z));
    const Normal<V> normal = ComputeNormal(d, z);
    const V zc = hn::Mul(hn::Mul(z, normal.cdf), hn::Mul(z, hn::Sub(one, normal.cdf)));
    const V cross = hn::Mul(hn::Mul(z, normal.density), hn::NegMulAdd(hn::Set(d, 2.0f), normal.cdf, one));
    const V share = hn::Sub(hn::Add(hn::Add(normal.cdf, zc), cross), hn::Mul(normal.density, normal.density));
    StoreSome(hn::IfThenElseZero(positive, Hold(d, hn::Mul(variance, share))), d, a.y + i, count);
  });
}

}  // namespace

void FillVariance(OpTable& table) {
  table.linear_variance = LinearVariance;
  table.layer_norm_variance = LayerNormVariance;
  table.activation_variance = ActivationVariance;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillVariance)
}  // namespace wisp::kernels
#endif
