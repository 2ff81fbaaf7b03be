// Loads and stores of the first few lanes of a vector that touch nothing else, on every target.
//
// Highway's MaskedLoad and BlendedStore do the same where the processor masks memory (AVX2 and up); elsewhere they may
// read whole vectors, so these go through a buffer. Lanes beyond `count` load as zero. count <= Lanes(d).
#if defined(WISP_KERNELS_SIMD_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_KERNELS_SIMD_PARTIAL_INL_H_
#undef WISP_KERNELS_SIMD_PARTIAL_INL_H_
#else
#define WISP_KERNELS_SIMD_PARTIAL_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Through a buffer they are functions of their own: a copy of each in every loop would be a good part of the library.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#define WISP_PARTIAL HWY_INLINE
#else
#define WISP_PARTIAL HWY_NOINLINE inline HWY_ATTR
#endif

template <class D, class T = hn::TFromD<D>>
WISP_PARTIAL hn::Vec<D> LoadPartial(D d, const T* from, size_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#else
  HWY_ALIGN T buffer[HWY_LANES(T)] = {};
  std::memcpy(buffer, from, count * sizeof(T));
  return hn::Load(d, buffer);
#endif
}

template <class D, class T = hn::TFromD<D>>
WISP_PARTIAL void StorePartial(hn::Vec<D> v, D d, T* to, size_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#else
  HWY_ALIGN T buffer[HWY_LANES(T)];
  hn::Store(v, d, buffer);
  std::memcpy(to, buffer, count * sizeof(T));
#endif
}

#undef WISP_PARTIAL

// The first `count` lanes, or a whole vector where there are as many or more.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadSome(D d, const T* from, size_t count) {
  return HWY_LIKELY(count >= HWY_LANES(T)) ? hn::LoadU(d, from) : LoadPartial(d, from, count);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreSome(hn::Vec<D> v, D d, T* to, size_t count) {
  if (HWY_LIKELY(count >= HWY_LANES(T))) {
    hn::StoreU(v, d, to);
  } else {
    StorePartial(v, d, to, count);
  }
}

// f(i, count) for every vector, the last one with fewer lanes.
template <class T = float, class F>
HWY_INLINE void ForEachVector(size_t n, F&& f) {
  constexpr size_t kLanes = HWY_LANES(T);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, n - i);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WISP_KERNELS_SIMD_PARTIAL_INL_H_
