// Layer norm and RMS norm for SIMD tables. Layer norm uses two passes for mean and variance.
//
// One row for each lane of a vector is processed together: first the sums of all rows, then all square roots, then all
// outputs. So the processor need not wait for one row's sums before it begins the next. Results equal those of row by
// row.
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

HWY_INLINE float RowSum(D d, const float* x, size_t n) {
  V sum = hn::Zero(d);
  ForEachVector(n, [&](size_t i, size_t left) HWY_ATTR { sum = hn::Add(sum, LoadSome(d, x + i, left)); });
  return Sum(d, sum);
}

// The sum of (x - center)^2.
HWY_INLINE float RowSquares(D d, const float* x, size_t n, float center) {
  const V center_v = hn::Set(d, center);
  V squares = hn::Zero(d);
  ForEachVector(n, [&](size_t i, size_t left) HWY_ATTR {
    V u = hn::Sub(LoadSome(d, x + i, left), center_v);
    if (left < kLanes) u = hn::IfThenElseZero(hn::FirstN(d, left), u);
    squares = hn::MulAdd(u, u, squares);
  });
  return Sum(d, squares);
}

// 1 / sqrt(squares / n + epsilon) for `rows` rows.
HWY_INLINE void InverseRoots(D d, const float* squares, float inverse_n, float epsilon, float* rstd, size_t rows) {
  const V mean = hn::Mul(hn::Load(d, squares), hn::Set(d, inverse_n));
  const V root = hn::Sqrt(hn::Add(mean, hn::Set(d, epsilon)));
  StorePartial(hn::Div(hn::Set(d, 1.0f), root), d, rstd, rows);
}

void LayerNormForward(const LayerNormForwardArgs<>& a) {
  const D d;
  const float inverse = a.d == 0 ? 0.0f : 1.0f / static_cast<float>(a.d);
  for (size_t first = 0; first < a.rows; first += kLanes) {
    const size_t rows = std::min(kLanes, a.rows - first);
    const float* x = a.x_RD + first * a.d;
    float* y = a.y_RD + first * a.d;
    float *mean = a.mean_R + first, *rstd = a.rstd_R + first;
    HWY_ALIGN float squares[kLanes] = {};
    for (size_t r = 0; r < rows; ++r) mean[r] = RowSum(d, x + r * a.d, a.d) * inverse;
    for (size_t r = 0; r < rows; ++r) squares[r] = RowSquares(d, x + r * a.d, a.d, mean[r]);
    InverseRoots(d, squares, inverse, a.epsilon, rstd, rows);
    for (size_t r = 0; r < rows; ++r) {
      const V mean_v = hn::Set(d, mean[r]), rstd_v = hn::Set(d, rstd[r]);
      ForEachVector(a.d, [&](size_t i, size_t left) HWY_ATTR {
        const V u = hn::Mul(hn::Sub(LoadSome(d, x + r * a.d + i, left), mean_v), rstd_v);
        StoreSome(hn::MulAdd(u, LoadSome(d, a.gain_D + i, left), LoadSome(d, a.bias_D + i, left)), d, y + r * a.d + i,
                  left);
      });
    }
  }
}

// With u = (x - mean) rstd and e = dy gain:  dx = rstd (e - mean(e) - u mean(e u)).
void LayerNormBackwardOneRecord(const LayerNormBackwardArgs<>& a) {
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

void LayerNormBackward(const LayerNormBackwardArgs<>& a) { reference::RecordByRecord(a, LayerNormBackwardOneRecord); }

void RmsNormForward(const RmsNormForwardArgs<>& a) {
  const D d;
  const float inverse = a.d == 0 ? 0.0f : 1.0f / static_cast<float>(a.d);
  for (size_t first = 0; first < a.rows; first += kLanes) {
    const size_t rows = std::min(kLanes, a.rows - first);
    const float* x = a.x_RD + first * a.d;
    float* y = a.y_RD + first * a.d;
    HWY_ALIGN float squares[kLanes] = {};
    for (size_t r = 0; r < rows; ++r) squares[r] = RowSquares(d, x + r * a.d, a.d, 0);
    InverseRoots(d, squares, inverse, a.epsilon, a.rstd_R + first, rows);
    for (size_t r = 0; r < rows; ++r) {
      const V rstd = hn::Set(d, a.rstd_R[first + r]);
      ForEachVector(a.d, [&](size_t i, size_t left) HWY_ATTR {
        const V u = hn::Mul(LoadSome(d, x + r * a.d + i, left), rstd);
        StoreSome(hn::Mul(u, LoadSome(d, a.gain_D + i, left)), d, y + r * a.d + i, left);
      });
    }
  }
}

// With u = x rstd and e = dy gain:  dx = rstd (e - u mean(e u)).
void RmsNormBackwardOneRecord(const RmsNormBackwardArgs<>& a) {
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

void RmsNormBackward(const RmsNormBackwardArgs<>& a) { reference::RecordByRecord(a, RmsNormBackwardOneRecord); }

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
