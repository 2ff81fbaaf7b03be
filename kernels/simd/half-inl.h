// A vector of halves as floats.
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

template <class D, class V = hn::Vec<D>>
HWY_INLINE V WidenHalves(D d, const Half* from) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(from)));
#else
  // No instruction for it: the bits in their places, with an exponent that is 112 too small; the product is exact, also
  // of subnormal ones. Highway's own way takes twice as long on SSE4.
  const hn::Rebind<int32_t, D> d32;
  // The sign spreads.
  const auto bits = hn::PromoteTo(d32, hn::LoadU(hn::Rebind<int16_t, D>(), reinterpret_cast<const int16_t*>(from)));
  const auto placed = hn::And(hn::ShiftLeft<13>(bits), hn::Set(d32, static_cast<int32_t>(0x8fffe000)));
  return hn::Mul(hn::BitCast(d, placed), hn::Set(d, 0x1p112f));
#endif
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WISP_KERNELS_SIMD_HALF_INL_H_
