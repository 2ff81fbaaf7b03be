// Converts float16 to float32 and back.
#if defined(WISP_KERNELS_SIMD_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_KERNELS_SIMD_HALF_INL_H_
#undef WISP_KERNELS_SIMD_HALF_INL_H_
#else
#define WISP_KERNELS_SIMD_HALF_INL_H_
#endif

#include "kernels/half.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Targets with instructions for the conversion.
#undef WISP_CONVERTS_HALVES
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#define WISP_CONVERTS_HALVES 1
#else
#define WISP_CONVERTS_HALVES 0
#endif

// Converts finite float16 numbers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ConvertFloat16(D d, const Half* from) {
#if WISP_CONVERTS_HALVES
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(from)));
#else
  // Without an instruction: put the bits in place, with an exponent that is 112 too small, and multiply. The product is
  // exact, also for subnormal numbers. Highway's own conversion takes twice as long on SSE4.
  const hn::Rebind<int32_t, D> d32;
  // PromoteTo extends the sign.
  const auto bits = hn::PromoteTo(d32, hn::LoadU(hn::Rebind<int16_t, D>(), reinterpret_cast<const int16_t*>(from)));
  const auto placed = hn::And(hn::ShiftLeft<13>(bits), hn::Set(d32, static_cast<int32_t>(0x8fffe000)));
  return hn::Mul(hn::BitCast(d, placed), hn::Set(d, 0x1p112f));
#endif
}

// to[0, n) = from[0, n), exactly. A number that is not finite stays so, but infinity may become NaN.
HWY_INLINE void WidenToFloats(const Half* from, size_t n, float* to) {
  const hn::ScalableTag<float> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    auto x = ConvertFloat16(d, from + i);
#if !WISP_CONVERTS_HALVES
    x = hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, kLargestHalf)), hn::NaN(d), x);
#endif
    hn::StoreU(x, d, to + i);
  }
  for (; i < n; ++i) to[i] = ToFloat(from[i]);
}

// to[0, n) = from[0, n), rounded as ToHalf rounds.
HWY_INLINE void NarrowToHalves(const float* from, size_t n, Half* to) {
  size_t i = 0;
#if WISP_CONVERTS_HALVES
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, from + i)), half, reinterpret_cast<hwy::float16_t*>(to + i));
#endif
  for (; i < n; ++i) to[i] = ToHalf(from[i]);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WISP_KERNELS_SIMD_HALF_INL_H_
