// Softmax with cross-entropy over tiles of classes, for SIMD tables. Makes two passes over a row's tile, which is in
// cache.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/softmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/exp-inl.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

// Lanes beyond `count` become minus infinity, which affects neither a maximum nor a sum of exponentials.
HWY_INLINE V LoadOrMinusInfinity(D d, const float* from, size_t count) {
  return hn::IfThenElse(hn::FirstN(d, count), LoadPartial(d, from, count), hn::Set(d, -HUGE_VALF));
}

HWY_INLINE float RowMax(D d, const float* z, size_t n, float start) {
  V m0 = hn::Set(d, start), m1 = m0, m2 = m0, m3 = m0;
  size_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
    m0 = hn::Max(m0, hn::LoadU(d, z + j));
    m1 = hn::Max(m1, hn::LoadU(d, z + j + kLanes));
    m2 = hn::Max(m2, hn::LoadU(d, z + j + 2 * kLanes));
    m3 = hn::Max(m3, hn::LoadU(d, z + j + 3 * kLanes));
  }
  for (; j + kLanes <= n; j += kLanes) m0 = hn::Max(m0, hn::LoadU(d, z + j));
  if (j < n) m1 = hn::Max(m1, LoadOrMinusInfinity(d, z + j, n - j));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

// The sum of exp(z - shift). If `exps` is not null, the exponentials are stored there; it may be z.
HWY_INLINE float RowExpSum(D d, const float* z, size_t n, float shift_by, float* exps) {
  const V shift = hn::Set(d, shift_by);
  V s0 = hn::Zero(d), s1 = s0;
  size_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    const V e0 = ExpNonPositive(d, hn::Sub(hn::LoadU(d, z + j), shift));
    const V e1 = ExpNonPositive(d, hn::Sub(hn::LoadU(d, z + j + kLanes), shift));
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
    if (exps == nullptr) continue;
    hn::StoreU(e0, d, exps + j);
    hn::StoreU(e1, d, exps + j + kLanes);
  }
  for (; j < n; j += kLanes) {
    const size_t count = std::min(kLanes, n - j);
    const V e = ExpNonPositive(d, hn::Sub(LoadOrMinusInfinity(d, z + j, count), shift));
    s0 = hn::Add(s0, e);
    if (exps != nullptr) StorePartial(e, d, exps + j, count);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

// Processes a vector of rows at a time: first all maxima, then all sums, so that the processor need not wait for one
// row's maximum. Work that is done once for a row is done for all of them together.
void SoftmaxStats(const SoftmaxStatsArgs<>& a) {
  const D d;
  if (a.n == 0) return;
  for (size_t first = 0; first < a.rows; first += kLanes) {
    const size_t rows = std::min(kLanes, a.rows - first);
    const float* z = a.z_RN + first * a.ldz;
    HWY_ALIGN float largest[kLanes] = {};
    HWY_ALIGN float sums[kLanes] = {};
    for (size_t r = 0; r < rows; ++r) largest[r] = RowMax(d, z + r * a.ldz, a.n, a.max_R[first + r]);
    for (size_t r = 0; r < rows; ++r) {
      const int64_t column = int64_t{a.target_R[first + r]} - a.first;
      if (column >= 0 && column < static_cast<int64_t>(a.n)) a.target_logit_R[first + r] = z[r * a.ldz + column];
      float* exps = a.exp_RN == nullptr ? nullptr : a.exp_RN + (first + r) * a.ldz;
      sums[r] = RowExpSum(d, z + r * a.ldz, a.n, largest[r], exps);
    }
    const V new_max = hn::Load(d, largest);
    // Before the first tile the maximum is minus infinity, so that the old sum has no weight.
    const V keep = ExpNonPositive(d, hn::Sub(LoadPartial(d, a.max_R + first, rows), new_max));
    const V sum = hn::MulAdd(LoadPartial(d, a.sum_R + first, rows), keep, hn::Load(d, sums));
    StorePartial(sum, d, a.sum_R + first, rows);
    StorePartial(new_max, d, a.max_R + first, rows);
  }
}

// z = exp(z - lse) * weight.
HWY_INLINE void ExponentiateRow(D d, float* z, size_t n, V lse, V weight) {
  size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    hn::StoreU(hn::Mul(ExpNonPositive(d, hn::Sub(hn::LoadU(d, z + j), lse)), weight), d, z + j);
  if (j < n)
    StorePartial(hn::Mul(ExpNonPositive(d, hn::Sub(LoadPartial(d, z + j, n - j), lse)), weight), d, z + j, n - j);
}

// z = z * factor, or zero if z is below `least`: the product of two small numbers would be subnormal and slow down
// later products.
HWY_INLINE void ScaleRow(D d, float* z, size_t n, V factor, V least) {
  const auto scaled = [&](V e) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(e, least), hn::Mul(e, factor)); };
  size_t j = 0;
  for (; j + kLanes <= n; j += kLanes) hn::StoreU(scaled(hn::LoadU(d, z + j)), d, z + j);
  if (j < n) StorePartial(scaled(LoadPartial(d, z + j, n - j)), d, z + j, n - j);
}

void CrossEntropyGradient(const CrossEntropyGradientArgs<>& a) {
  const D d;
  for (size_t r = 0; r < a.rows; ++r) {
    float* z = a.z_RN + r * a.ldz;
    if (a.weight_R[r] == 0) {
      std::fill(z, z + a.n, 0.0f);
      continue;
    }
    const V weight = hn::Set(d, a.weight_R[r]);
    const V lse = hn::Set(d, a.lse_R[r]);
    if (a.max_R != nullptr) {
      // exp(z - lse) is zero below exp(-80). If the row's maximum itself is that far below, the factor is zero.
      const V below = hn::Sub(hn::Set(d, a.max_R[r]), lse);
      ScaleRow(d, z, a.n, hn::Mul(ExpNonPositive(d, below), weight),
               ExpNonPositive(d, hn::Sub(hn::Set(d, -80.0f), below)));
    } else {
      ExponentiateRow(d, z, a.n, lse, weight);
    }
    const int64_t column = int64_t{a.target_R[r]} - a.first;
    if (column >= 0 && column < static_cast<int64_t>(a.n)) z[column] -= a.weight_R[r];
  }
}

}  // namespace

void FillSoftmax(OpTable& table) {
  table.softmax_stats = ForTraining(SoftmaxStats);
  table.cross_entropy_gradient = ForTraining(CrossEntropyGradient);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillSoftmax)
}  // namespace wisp::kernels
#endif
