// Layer norm and RMS norm for SIMD tables: a row at a time, layer norm with two passes for mean and variance.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/layer_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/reference/by_record.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

HWY_INLINE float Sum(D d, V v) { return hn::GetLane(hn::SumOfLanes(d, v)); }

void LayerNormForward(const LayerNormForwardArgs<>& a) {
  const D d;
  const float inverse = a.d == 0 ? 0.0f : 1.0f / static_cast<float>(a.d);
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x_RD + r * a.d;
    float* y = a.y_RD + r * a.d;
    V sum = hn::Zero(d), squares = sum;
    for (size_t i = 0; i < a.d; i += kLanes) sum = hn::Add(sum, LoadSome(d, x + i, a.d - i));
    const float mean = Sum(d, sum) * inverse;
    const V mean_v = hn::Set(d, mean);
    for (size_t i = 0; i < a.d; i += kLanes) {
      V u = hn::Sub(LoadSome(d, x + i, a.d - i), mean_v);
      if (a.d - i < kLanes) u = hn::IfThenElseZero(hn::FirstN(d, a.d - i), u);
      squares = hn::MulAdd(u, u, squares);
    }
    const float rstd = 1.0f / std::sqrt(Sum(d, squares) * inverse + a.epsilon);
    const V rstd_v = hn::Set(d, rstd);
    for (size_t i = 0; i < a.d; i += kLanes) {
      const size_t left = a.d - i;
      const V u = hn::Mul(hn::Sub(LoadSome(d, x + i, left), mean_v), rstd_v);
      StoreSome(hn::MulAdd(u, LoadSome(d, a.gain_D + i, left), LoadSome(d, a.bias_D + i, left)), d, y + i, left);
    }
    a.mean_R[r] = mean;
    a.rstd_R[r] = rstd;
  }
}

// With u = (x - mean) rstd and e = dy gain:  dx = rstd (e - mean(e) - u mean(e u)).
void LayerNormBackwardOfOne(const LayerNormBackwardArgs<>& a) {
  const D d;
  std::fill(a.dgain_D, a.dgain_D + a.d, 0.0f);
  std::fill(a.dbias_D, a.dbias_D + a.d, 0.0f);
  const float inverse = a.d == 0 ? 0.0f : 1.0f / static_cast<float>(a.d);
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x_RD + r * a.d;
    const float* dy = a.dy_RD + r * a.d;
    float* dx = a.dx_RD + r * a.d;
    const V mean = hn::Set(d, a.mean_R[r]), rstd = hn::Set(d, a.rstd_R[r]);
    V sum_e = hn::Zero(d), sum_eu = sum_e;
    for (size_t i = 0; i < a.d; i += kLanes) {
      const size_t left = a.d - i;  // lanes beyond it load dy = 0 and add nothing
      const V dyv = LoadSome(d, dy + i, left);
      const V u = hn::Mul(hn::Sub(LoadSome(d, x + i, left), mean), rstd);
      const V e = hn::Mul(dyv, LoadSome(d, a.gain_D + i, left));
      sum_e = hn::Add(sum_e, e);
      sum_eu = hn::MulAdd(e, u, sum_eu);
      StoreSome(hn::MulAdd(dyv, u, LoadSome(d, a.dgain_D + i, left)), d, a.dgain_D + i, left);
      StoreSome(hn::Add(dyv, LoadSome(d, a.dbias_D + i, left)), d, a.dbias_D + i, left);
    }
    const V mean_e = hn::Set(d, Sum(d, sum_e) * inverse), mean_eu = hn::Set(d, Sum(d, sum_eu) * inverse);
    for (size_t i = 0; i < a.d; i += kLanes) {
      const size_t left = a.d - i;
      const V u = hn::Mul(hn::Sub(LoadSome(d, x + i, left), mean), rstd);
      const V e = hn::Mul(LoadSome(d, dy + i, left), LoadSome(d, a.gain_D + i, left));
      V out = hn::Mul(rstd, hn::NegMulAdd(u, mean_eu, hn::Sub(e, mean_e)));
      if (a.store == Store::kAdd) out = hn::Add(out, LoadSome(d, dx + i, left));
      StoreSome(out, d, dx + i, left);
    }
  }
}

void LayerNormBackward(const LayerNormBackwardArgs<>& a) { reference::RecordByRecord(a, LayerNormBackwardOfOne); }

void RmsNormForward(const RmsNormForwardArgs<>& a) {
  const D d;
  const float inverse = a.d == 0 ? 0.0f : 1.0f / static_cast<float>(a.d);
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x_RD + r * a.d;
    float* y = a.y_RD + r * a.d;
    V squares = hn::Zero(d);
    for (size_t i = 0; i < a.d; i += kLanes) {
      const V v = LoadSome(d, x + i, a.d - i);
      squares = hn::MulAdd(v, v, squares);
    }
    const float rstd = 1.0f / std::sqrt(Sum(d, squares) * inverse + a.epsilon);
    const V rstd_v = hn::Set(d, rstd);
    for (size_t i = 0; i < a.d; i += kLanes) {
      const size_t left = a.d - i;
      const V u = hn::Mul(LoadSome(d, x + i, left), rstd_v);
      StoreSome(hn::Mul(u, LoadSome(d, a.gain_D + i, left)), d, y + i, left);
    }
    a.rstd_R[r] = rstd;
  }
}

// With u = x rstd and e = dy gain:  dx = rstd (e - u mean(e u)).
void RmsNormBackwardOfOne(const RmsNormBackwardArgs<>& a) {
  const D d;
  std::fill(a.dgain_D, a.dgain_D + a.d, 0.0f);
  const float inverse = a.d == 0 ? 0.0f : 1.0f / static_cast<float>(a.d);
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x_RD + r * a.d;
    const float* dy = a.dy_RD + r * a.d;
    float* dx = a.dx_RD + r * a.d;
    const V rstd = hn::Set(d, a.rstd_R[r]);
    V sum_eu = hn::Zero(d);
    for (size_t i = 0; i < a.d; i += kLanes) {
      const size_t left = a.d - i;
      const V weighted = hn::Mul(LoadSome(d, dy + i, left), hn::Mul(LoadSome(d, x + i, left), rstd));
      sum_eu = hn::MulAdd(weighted, LoadSome(d, a.gain_D + i, left), sum_eu);
      StoreSome(hn::Add(LoadSome(d, a.dgain_D + i, left), weighted), d, a.dgain_D + i, left);
    }
    const V mean_eu = hn::Set(d, Sum(d, sum_eu) * inverse);
    for (size_t i = 0; i < a.d; i += kLanes) {
      const size_t left = a.d - i;
      const V u = hn::Mul(LoadSome(d, x + i, left), rstd);
      const V e = hn::Mul(LoadSome(d, dy + i, left), LoadSome(d, a.gain_D + i, left));
      V out = hn::Mul(rstd, hn::NegMulAdd(u, mean_eu, e));
      if (a.store == Store::kAdd) out = hn::Add(out, LoadSome(d, dx + i, left));
      StoreSome(out, d, dx + i, left);
    }
  }
}

void RmsNormBackward(const RmsNormBackwardArgs<>& a) { reference::RecordByRecord(a, RmsNormBackwardOfOne); }

}  // namespace

void FillNorm(OpTable& table) {
  table.layer_norm_forward = LayerNormForward;
  table.layer_norm_backward = ForTraining(LayerNormBackward);
  table.rms_norm_forward = RmsNormForward;
  table.rms_norm_backward = ForTraining(RmsNormBackward);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillNorm)
}  // namespace wisp::kernels
#endif
