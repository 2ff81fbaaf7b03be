// The int8 kernel for processors with VNNI in 256-bit vectors but without AVX-512: small computers since 2021.
#include "kernels/int8/kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include "kernels/simd/processor.h"
#include "hwy/targets.h"

#define WISP_INT8_TARGET __attribute__((target("avx2,avxvnni,f16c,fma")))
#define WISP_INT8_INLINE WISP_INT8_TARGET inline __attribute__((always_inline))

namespace wisp::kernels::int8 {
namespace {

constexpr Format kFormat = Format::kShifted;
constexpr size_t kLanes = 8, kTileVectors = 2;  // 6 x 2 sums, 2 vectors of weights and one of x fill 15 of 16 registers

using Sums = __m256i;
using Totals = __m256i;
using Weights = __m256i;
using Inputs = __m256i;
using Floats = __m256;

WISP_INT8_INLINE __m256i First(size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
WISP_INT8_INLINE __m256i Load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
WISP_INT8_INLINE Sums Start(const uint8_t* p) { return Load(p); }
WISP_INT8_INLINE Weights LoadWeights(const uint8_t* p) { return Load(p); }
WISP_INT8_INLINE Inputs Broadcast(const uint8_t* p) { return _mm256_set1_epi32(LoadGroup(p)); }
WISP_INT8_INLINE Sums Dot(Sums s, Inputs x, Weights w) { return _mm256_dpbusd_avx_epi32(s, x, w); }
WISP_INT8_INLINE Totals Total(Sums s) { return s; }
WISP_INT8_INLINE Floats ToFloats(Totals s) { return _mm256_cvtepi32_ps(s); }
WISP_INT8_INLINE Floats SetFloats(float f) { return _mm256_set1_ps(f); }
WISP_INT8_INLINE Floats LoadFloats(const float* p, size_t count) {
  return count == kLanes ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, First(count));
}
WISP_INT8_INLINE void StoreFloats(Floats v, float* p, size_t count) {
  if (count == kLanes) {
    _mm256_storeu_ps(p, v);
  } else {
    _mm256_maskstore_ps(p, First(count), v);
  }
}
WISP_INT8_INLINE Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
WISP_INT8_INLINE Floats Plus(Floats a, Floats b) { return _mm256_add_ps(a, b); }

#include "kernels/int8/tile-inl.h"

constexpr Format kBlockFormat = Format::kSigned;

using OffsetWeights = __m256i;

template <PanelBits kBits, bool kHigh>
WISP_INT8_INLINE OffsetWeights Offset(const uint8_t* p) {
  const __m256i bytes = Load(p);
  if constexpr (kBits == PanelBits::kEight) return bytes;
  return _mm256_and_si256(kHigh ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}
template <PanelBits>
WISP_INT8_INLINE Sums StartAt(int32_t start) {
  return _mm256_set1_epi32(start);
}
WISP_INT8_INLINE Totals TotalFrom(Sums s, int32_t) { return s; }
WISP_INT8_INLINE Sums DotOffset(Sums s, Inputs x, OffsetWeights w) { return _mm256_dpbusd_avx_epi32(s, w, x); }
WISP_INT8_INLINE Floats LoadScales(const Half* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
WISP_INT8_INLINE Floats Fuse(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

#include "kernels/int8/blocks-inl.h"

template <PanelBits kBits>
constexpr BlockTile kBlockTiles[] = {
    {6, MultiplyBlockTile<kBits, 6, 1>}, {3, MultiplyBlockTile<kBits, 3, 1>}, {1, MultiplyBlockTile<kBits, 1, 2>}};

constexpr Tile kTiles[] = {{6, 1, MultiplyTile<6, 1>}, {4, 1, MultiplyTile<4, 1>}, {2, 2, MultiplyTile<2, 2>},
                           {2, 1, MultiplyTile<2, 1>}, {1, 4, MultiplyTile<1, 4>}, {1, 1, MultiplyTile<1, 1>}};
constexpr Kernel kKernel = {
    .name = "int8 AVX-VNNI",
    .format = kFormat,
    .panel_width = kPanelWidth,
    .tiles = kTiles,
    .blocks = {.format = kBlockFormat, .of_bits = {kBlockTiles<PanelBits::kEight>, kBlockTiles<PanelBits::kFour>}}};

}  // namespace

// AVX-VNNI is bit 4 of EAX of leaf 7, subleaf 1. Highway has checked that the system saves the registers.
const Kernel* AvxVnniKernel() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool runs = (FoundTargets() & (HWY_AVX2 | kHiddenVnni)) == HWY_AVX2 &&
                    __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
  return runs ? &kKernel : nullptr;
}

}  // namespace wisp::kernels::int8

#else

namespace wisp::kernels::int8 {
const Kernel* AvxVnniKernel() { return nullptr; }
}  // namespace wisp::kernels::int8

#endif
