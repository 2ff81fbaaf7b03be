// Quantises rows of floats to integers from -127 to 127.
#include "kernels/int8/choose.h"
#include "kernels/int8/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/quantise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using int8::Format;

using DF = hn::ScalableTag<float>;
using D32 = hn::RebindToSigned<DF>;
constexpr size_t kLanes = HWY_LANES(float);

// The bits of the largest magnitude. Magnitudes compare as their bits do, and NaN and infinity are above all others. So
// the order of comparisons does not matter on any processor.
HWY_INLINE int32_t LargestBits(const float* x, size_t k) {
  const DF d;
  const D32 di;
  auto largest = hn::Zero(di), other = hn::Zero(di);
  size_t i = 0;
  for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
    other = hn::Max(other, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i + kLanes))));
  }
  for (; i < k; i += kLanes) largest = hn::Max(largest, hn::BitCast(di, hn::Abs(LoadSome(d, x + i, k - i))));
  return hn::GetLane(hn::MaxOfLanes(di, hn::Max(largest, other)));
}

// The nearest integers (ties to even) to numbers below 2^31 in magnitude. hn::NearestInt also treats larger ones, in
// twice as many instructions.
HWY_INLINE hn::Vec<D32> Nearest(hn::Vec<DF> v) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<D32>{_mm512_cvtps_epi32(v.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<D32>{_mm256_cvtps_epi32(v.raw)};
#elif HWY_TARGET == HWY_SSE4
  return hn::Vec<D32>{_mm_cvtps_epi32(v.raw)};
#else
  return hn::NearestInt(v);
#endif
}

template <Format kFormat>
HWY_INLINE void StoreVector(hn::Vec<D32> v, uint8_t* q) {
  if constexpr (kFormat == Format::kWide) {
    const hn::Rebind<int16_t, D32> d;
    const auto narrow = hn::DemoteTo(d, v);
    HWY_ALIGN int16_t values[kLanes];
    hn::Store(narrow, d, values);
    std::memcpy(q, values, sizeof(values));
  } else if constexpr (kFormat == Format::kShifted) {
    const hn::Rebind<uint8_t, D32> d;
    hn::StoreU(hn::DemoteTo(d, hn::Add(v, hn::Set(D32(), 128))), d, q);
  } else {
    const hn::Rebind<int8_t, D32> d;
    hn::StoreU(hn::DemoteTo(d, v), d, reinterpret_cast<int8_t*>(q));
  }
}

// Lanes beyond the row are zeros. They fill its last group, because a vector is a whole number of groups.
template <Format kFormat, bool kSum>
void StoreRow(const float* x, size_t k, float inverse, uint8_t* q, int32_t* sum) {
  const DF d;
  const auto factor = hn::Set(d, inverse);
  auto sums = hn::Zero(D32());
  size_t i = 0;
#if HWY_TARGET == HWY_AVX2
  // Two vectors at a time, because packing them takes fewer instructions.
  for (; kFormat == Format::kWide && i + 2 * kLanes <= k; i += 2 * kLanes) {
    const auto a = Nearest(hn::Mul(hn::LoadU(d, x + i), factor)),
               b = Nearest(hn::Mul(hn::LoadU(d, x + i + kLanes), factor));
    const hn::ScalableTag<int16_t> narrow;
    const __m256i mixed = hn::ReorderDemote2To(narrow, a, b).raw;
    hn::StoreU(hn::Vec<decltype(narrow)>{_mm256_permute4x64_epi64(mixed, 0xd8)}, narrow,
               reinterpret_cast<int16_t*>(q) + i);
  }
#elif HWY_TARGET == HWY_NEON
  for (; kFormat == Format::kSigned && !kSum && i + 2 * kLanes <= k; i += 2 * kLanes) {
    const auto a = Nearest(hn::Mul(hn::LoadU(d, x + i), factor)),
               b = Nearest(hn::Mul(hn::LoadU(d, x + i + kLanes), factor));
    const hn::Rebind<int8_t, hn::ScalableTag<int16_t>> narrow;
    hn::StoreU(hn::DemoteTo(narrow, hn::ReorderDemote2To(hn::ScalableTag<int16_t>(), a, b)), narrow,
               reinterpret_cast<int8_t*>(q) + i);
  }
#endif
  for (; i < k; i += kLanes) {
    const auto v = Nearest(hn::Mul(LoadSome(d, x + i, k - i), factor));
    StoreVector<kFormat>(v, q + i * int8::GetBytes(kFormat));
    if constexpr (kSum) sums = hn::Add(sums, v);
  }
  if constexpr (kSum) *sum = hn::GetLane(hn::SumOfLanes(D32(), sums));
}

}  // namespace

float QuantiseRow(const float* x, size_t k, Format format, uint8_t* q, int32_t* sum) {
  constexpr float kSmallest = 0x1p-100f;
  const int32_t bits = LargestBits(x, k);
  const float largest = std::bit_cast<float>(bits);
  const bool finite = bits < 0x7f800000;
  if (!finite || largest < kSmallest) {
    std::memset(q, format == Format::kShifted ? 128 : 0, (k + 3) / 4 * 4 * int8::GetBytes(format));
    if (sum != nullptr) *sum = 0;
    return finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = 127.0f / largest;
  if (format == Format::kWide) {
    StoreRow<Format::kWide, false>(x, k, inverse, q, nullptr);
  } else if (format == Format::kShifted) {
    StoreRow<Format::kShifted, false>(x, k, inverse, q, nullptr);
  } else if (sum == nullptr) {
    StoreRow<Format::kSigned, false>(x, k, inverse, q, nullptr);
  } else {
    StoreRow<Format::kSigned, true>(x, k, inverse, q, sum);
  }
  return largest / 127.0f;
}

namespace {

// Quantises `count` columns of a block and writes zeros after them. Returns the sum of the integers.
template <Format kFormat>
int32_t StoreBlock(const float* x, size_t count, float inverse, uint8_t* q) {
  const DF d;
  const auto factor = hn::Set(d, inverse);
  auto sums = hn::Zero(D32());
  for (size_t i = 0; i < kBlockColumns; i += kLanes) {
    const auto values = i < count ? LoadSome(d, x + i, count - i) : hn::Zero(d);
    const auto v = Nearest(hn::Mul(values, factor));
    StoreVector<kFormat>(v, q + i * int8::GetBytes(kFormat));
    sums = hn::Add(sums, v);
  }
  return hn::GetLane(hn::SumOfLanes(D32(), sums));
}

}  // namespace

void QuantiseBlocks(const float* x, size_t k, Format format, PanelBits weights, int8::BlockRow& row) {
  constexpr float kSmallest = 0x1p-100f;
  auto* q = reinterpret_cast<uint8_t*>(row.q);
  for (size_t block = 0, i = 0; i < k; ++block, i += kBlockColumns) {
    const size_t count = std::min(kBlockColumns, k - i);
    const int32_t bits = LargestBits(x + i, count);
    const float largest = std::bit_cast<float>(bits);
    const bool finite = bits < 0x7f800000, counts = finite && largest >= kSmallest;
    // NaN and infinity have no integer, so their block is zeros.
    const float inverse = counts ? 127.0f / largest : 0.0f;
    const size_t of_block = finite ? count : 0;
    const int32_t sum = format == Format::kWide ? StoreBlock<Format::kWide>(x + i, of_block, inverse, q)
                                                : StoreBlock<Format::kSigned>(x + i, of_block, inverse, q);
    row.scale[block] = counts ? largest / 127.0f : finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    row.start[block] = -IntegerOffset(weights) * sum;
    q += kBlockColumns * int8::GetBytes(format);
  }
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels::int8 {
QuantiseBlocksFunction BlockQuantiser(int64_t target) { return WISP_INT8_CHOOSE(target, QuantiseBlocks); }
QuantiseFunction Quantiser(int64_t target) { return WISP_INT8_CHOOSE(target, QuantiseRow); }
}  // namespace wisp::kernels::int8
#endif
