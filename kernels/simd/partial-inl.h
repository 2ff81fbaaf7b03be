// Loads and stores the first few lanes of a vector without touching other memory, on every target.
//
// Highway's MaskedLoad and BlendedStore do this if the processor can mask memory accesses (AVX2 and up). Elsewhere they
// may read whole vectors, so these functions use a buffer. Lanes beyond `count` load as zero. count <= Lanes(d).
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

// Functions that use a buffer are not inlined: a copy in every loop would be a good part of the library.
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

// The first `count` lanes; a whole vector if it has no more lanes than that.
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

// Calls f(i, count) for every vector; the last one may have fewer lanes.
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
