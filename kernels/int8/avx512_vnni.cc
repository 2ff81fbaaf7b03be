// The int8 kernel for processors with AVX-512 VNNI: four products and their sum in each of 16 lanes per instruction.
#include "kernels/int8/kernel.h"

#if defined(__x86_64__) && !defined(__OPTIMIZE_SIZE__)  // kernels/simd/targets.h
#include <cpuid.h>
#include <immintrin.h>

#include "kernels/simd/processor.h"
#include "hwy/targets.h"

#define WISP_INT8_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,fma")))
#define WISP_INT8_INLINE WISP_INT8_TARGET inline __attribute__((always_inline))

namespace wisp::kernels::int8 {
namespace {

constexpr Format kFormat = Format::kShifted;
// 14 x 2 sums, 2 vectors of weights and one of x fill 31 of 32 registers.
constexpr size_t kLanes = 16, kTileVectors = 2;

using Sums = __m512i;
using Totals = __m512i;
using Weights = __m512i;
using Inputs = __m512i;
using Floats = __m512;

WISP_INT8_INLINE __mmask16 First(size_t count) { return static_cast<__mmask16>((1u << count) - 1); }
WISP_INT8_INLINE Sums Start(const uint8_t* p) { return _mm512_loadu_si512(p); }
WISP_INT8_INLINE Weights LoadWeights(const uint8_t* p) { return _mm512_loadu_si512(p); }
WISP_INT8_INLINE Inputs Broadcast(const uint8_t* p) { return _mm512_set1_epi32(LoadGroup(p)); }
WISP_INT8_INLINE Sums Dot(Sums s, Inputs x, Weights w) { return _mm512_dpbusd_epi32(s, x, w); }
WISP_INT8_INLINE Totals Total(Sums s) { return s; }
// The intrinsic warns in g++ 12.
WISP_INT8_INLINE Floats ToFloats(Totals s) { return __builtin_convertvector(reinterpret_cast<__v16si>(s), __v16sf); }
WISP_INT8_INLINE Floats SetFloats(float f) { return _mm512_set1_ps(f); }
WISP_INT8_INLINE Floats LoadFloats(const float* p, size_t count) { return _mm512_maskz_loadu_ps(First(count), p); }
WISP_INT8_INLINE void StoreFloats(Floats v, float* p, size_t count) { _mm512_mask_storeu_ps(p, First(count), v); }
WISP_INT8_INLINE Floats Multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
WISP_INT8_INLINE Floats Plus(Floats a, Floats b) { return _mm512_add_ps(a, b); }

#include "kernels/int8/tile-inl.h"

constexpr Format kBlockFormat = Format::kSigned;

using OffsetWeights = __m512i;

template <PanelBits kBits, bool kHigh>
WISP_INT8_INLINE OffsetWeights Offset(const uint8_t* p) {
  const __m512i bytes = _mm512_loadu_si512(p);
  if constexpr (kBits == PanelBits::kEight) return bytes;
  return _mm512_and_si512(kHigh ? _mm512_srli_epi16(bytes, 4) : bytes, _mm512_set1_epi8(15));
}
template <PanelBits>
WISP_INT8_INLINE Sums StartAt(int32_t start) {
  return _mm512_set1_epi32(start);
}
WISP_INT8_INLINE Totals TotalFrom(Sums s, int32_t) { return s; }
WISP_INT8_INLINE Sums DotOffset(Sums s, Inputs x, OffsetWeights w) { return _mm512_dpbusd_epi32(s, w, x); }
WISP_INT8_INLINE Floats LoadScales(const Half* p) {
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));  // see ToFloats
}
WISP_INT8_INLINE Floats Fuse(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

#include "kernels/int8/blocks-inl.h"
#include "kernels/int8/lone_row-inl.h"

// 12 x 1 sums and as many of y, a vector of weights and one of scales fill 26 of 32 registers.
template <PanelBits kBits>
constexpr BlockTile kBlockTiles[] = {{12, MultiplyBlockTile<kBits, 12, 1>},
                                     {6, MultiplyBlockTile<kBits, 6, 1>},
                                     {3, MultiplyBlockTile<kBits, 3, 1>},
                                     {1, MultiplyBlockTile<kBits, 1, 1>}};

constexpr Tile kTiles[] = {{14, 1, MultiplyTile<14, 1>}, {8, 1, MultiplyTile<8, 1>}, {4, 2, MultiplyTile<4, 2>},
                           {4, 1, MultiplyTile<4, 1>},   {2, 4, MultiplyTile<2, 4>}, {2, 1, MultiplyTile<2, 1>},
                           {1, 4, MultiplyTile<1, 4>},   {1, 1, MultiplyTile<1, 1>}};
constexpr Kernel kKernel = {.name = "int8 AVX512-VNNI",
                            .format = kFormat,
                            .panel_width = kPanelWidth,
                            .tiles = kTiles,
                            .blocks = {.format = kBlockFormat,
                                       .of_bits = {kBlockTiles<PanelBits::kEight>, kBlockTiles<PanelBits::kFour>},
                                       .lone_panels = kMostLonePanels,
                                       .multiply_lone = {MultiplyLoneRow<PanelBits::kEight, kMostLonePanels>,
                                                         MultiplyLoneRow<PanelBits::kFour, kMostLonePanels>}}};

}  // namespace

// AVX-512 VNNI is bit 11 of ECX of leaf 7. Highway has checked the rest of AVX-512, and that the system saves its
// registers.
const Kernel* Avx512VnniKernel() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool runs =
      (FoundTargets() & HWY_AVX3) != 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1) != 0;
  return runs ? &kKernel : nullptr;
}

}  // namespace wisp::kernels::int8

#else

namespace wisp::kernels::int8 {
const Kernel* Avx512VnniKernel() { return nullptr; }
}  // namespace wisp::kernels::int8

#endif
