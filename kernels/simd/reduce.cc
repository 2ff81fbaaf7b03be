// Reductions in double and sums on an integer grid, for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/reduce.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/reference/reference.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_FLOAT64

using D64 = hn::ScalableTag<double>;
using V64 = hn::Vec<D64>;
using D32 = hn::Rebind<float, D64>;  // one float for each double of a vector
constexpr size_t kLanes = HWY_LANES(double);

HWY_INLINE V64 LoadAsDouble(const float* from) { return hn::PromoteTo(D64(), hn::LoadU(D32(), from)); }

// Four chains hide the latency of a fused multiply-add.
double Dot(const float* x, const float* y, size_t n) {
  const D64 d;
  V64 s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = hn::MulAdd(LoadAsDouble(x + i), LoadAsDouble(y + i), s0);
    s1 = hn::MulAdd(LoadAsDouble(x + i + kLanes), LoadAsDouble(y + i + kLanes), s1);
    s2 = hn::MulAdd(LoadAsDouble(x + i + 2 * kLanes), LoadAsDouble(y + i + 2 * kLanes), s2);
    s3 = hn::MulAdd(LoadAsDouble(x + i + 3 * kLanes), LoadAsDouble(y + i + 3 * kLanes), s3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return sum;
}

#else  // Highway 1.0.3 has no vectors of doubles for WebAssembly

// Four chains, which the compiler may vectorise.
double Dot(const float* x, const float* y, size_t n) {
  double s[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t k = 0; k < 4; ++k) s[k] += static_cast<double>(x[i + k]) * static_cast<double>(y[i + k]);
  double sum = (s[0] + s[1]) + (s[2] + s[3]);
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return sum;
}

#endif  // HWY_HAVE_FLOAT64

double DotRows(const DotRowsArgs<>& a) { return reference::DotRowsWith(a, Dot); }

void TargetLogits(const TargetLogitsArgs<>& a) { reference::TargetLogitsWith(a, Dot); }

double SumSquares(const float* x, size_t n) { return Dot(x, x, n); }

#if HWY_HAVE_FLOAT64
double AccumulateOnGrid(const AccumulateOnGridArgs<>& a) {
  const D64 d;
  const D32 df;
  const hn::Rebind<int64_t, D64> di64;
  const auto scale = hn::Set(df, a.scale);
  V64 s0 = hn::Zero(d), s1 = s0;
  const auto add = [&](size_t i, V64& squares) HWY_ATTR {
    const auto steps = hn::NearestInt(hn::Mul(hn::LoadU(df, a.x + i), scale));  // ties to even
    const auto wide = hn::PromoteTo(di64, steps);
    const auto old = hn::LoadU(di64, a.sum + i);
    hn::StoreU(a.sign > 0 ? hn::Add(old, wide) : hn::Sub(old, wide), di64, a.sum + i);
    const V64 value = hn::PromoteTo(d, steps);
    squares = hn::MulAdd(value, value, squares);
  };
  size_t i = 0;
  for (; i + 2 * kLanes <= a.n; i += 2 * kLanes) {
    add(i, s0);
    add(i + kLanes, s1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  for (; i < a.n; ++i) {
    const auto steps = static_cast<int64_t>(std::nearbyint(a.x[i] * a.scale));
    a.sum[i] += a.sign * steps;
    sum += static_cast<double>(steps) * static_cast<double>(steps);
  }
  return sum;
}
#endif

}  // namespace

void FillReduce(OpTable& table) {
  table.dot = ForTraining(Dot);
  table.dot_rows = ForTraining(DotRows);
  table.target_logits = ForTraining(TargetLogits);
  table.sum_squares = ForTraining(SumSquares);
#if HWY_HAVE_FLOAT64
  table.accumulate_on_grid = ForTraining(AccumulateOnGrid);
#endif
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillReduce)
}  // namespace wisp::kernels
#endif
