// Softmax with cross-entropy over tiles of classes, for SIMD tables. Two passes over a row's tile, which is in cache.
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

// Lanes beyond `count` become minus infinity, which no maximum and no sum of exponentials sees.
HWY_INLINE V LoadOrMinusInfinity(D d, const float* from, size_t count) {
  return hn::IfThenElse(hn::FirstN(d, count), LoadPartial(d, from, count), hn::Set(d, -HUGE_VALF));
}

HWY_INLINE float RowMax(D d, const float* z, size_t n, float start) {
  V m0 = hn::Set(d, start), m1 = m0;
  size_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    m0 = hn::Max(m0, hn::LoadU(d, z + j));
    m1 = hn::Max(m1, hn::LoadU(d, z + j + kLanes));
  }
  for (; j < n; j += kLanes) m0 = hn::Max(m0, LoadOrMinusInfinity(d, z + j, std::min(kLanes, n - j)));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// The sum of exp(z - shift).
HWY_INLINE V RowExpSum(D d, const float* z, size_t n, V shift) {
  V s0 = hn::Zero(d), s1 = s0;
  size_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    s0 = hn::Add(s0, ExpNonPositive(d, hn::Sub(hn::LoadU(d, z + j), shift)));
    s1 = hn::Add(s1, ExpNonPositive(d, hn::Sub(hn::LoadU(d, z + j + kLanes), shift)));
  }
  for (; j < n; j += kLanes) {
    const V value = LoadOrMinusInfinity(d, z + j, std::min(kLanes, n - j));
    s0 = hn::Add(s0, ExpNonPositive(d, hn::Sub(value, shift)));
  }
  return hn::SumOfLanes(d, hn::Add(s0, s1));
}

void SoftmaxStats(const SoftmaxStatsArgs<>& a) {
  const D d;
  if (a.n == 0) return;
  for (size_t r = 0; r < a.rows; ++r) {
    const float* z = a.z_RN + r * a.ldz;
    const float largest = RowMax(d, z, a.n, a.max_R[r]);
    const V shift = hn::Set(d, largest);
    const V sum = RowExpSum(d, z, a.n, shift);
    // Minus infinity, the max before the first tile, makes the old sum count for nothing.
    const V old = ExpNonPositive(d, hn::Sub(hn::Set(d, a.max_R[r]), shift));
    a.sum_R[r] = hn::GetLane(hn::MulAdd(hn::Set(d, a.sum_R[r]), old, sum));
    a.max_R[r] = largest;
    const int64_t column = int64_t{a.target_R[r]} - a.first;
    if (column >= 0 && column < static_cast<int64_t>(a.n)) a.target_logit_R[r] = z[column];
  }
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
    size_t j = 0;
    for (; j + kLanes <= a.n; j += kLanes) {
      hn::StoreU(hn::Mul(ExpNonPositive(d, hn::Sub(hn::LoadU(d, z + j), lse)), weight), d, z + j);
    }
    if (j < a.n) {
      const V tail = hn::Sub(LoadPartial(d, z + j, a.n - j), lse);
      StorePartial(hn::Mul(ExpNonPositive(d, tail), weight), d, z + j, a.n - j);
    }
    const int64_t column = int64_t{a.target_R[r]} - a.first;
    if (column >= 0 && column < static_cast<int64_t>(a.n)) z[column] -= a.weight_R[r];
  }
}

}  // namespace

void FillSoftmax(OpTable& table) {
  table.softmax_stats = SoftmaxStats;
  table.cross_entropy_gradient = CrossEntropyGradient;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillSoftmax)
}  // namespace wisp::kernels
#endif
