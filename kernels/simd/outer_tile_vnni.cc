// The tile of accumulate_outer for processors with AVX-512 VNNI, which multiply pairs and add them in one instruction.
#include "kernels/simd/outer_tile.h"

#if defined(__x86_64__) && !defined(__OPTIMIZE_SIZE__) && !defined(WISP_WITHOUT_AVX512)  // kernels/simd/targets.h
#include <cpuid.h>
#include <immintrin.h>

#include "kernels/simd/processor.h"
#include "hwy/targets.h"

namespace wisp::kernels {
namespace {

// 6 x 4 sums, 4 vectors of b and one of a fill 29 of 32 registers.
constexpr size_t kRows = 6, kVectors = 4, kColumns = kVectors * 16;

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))) void Multiply(const OuterTileArgs& t) {
  __m512i sums[kRows][kVectors];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) sums[i][v] = _mm512_setzero_si512();
  }
  const int32_t *a = t.a, *b = t.b;
  for (size_t p = 0; p < t.pairs; ++p, a += kRows, b += kColumns) {
    __m512i columns[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) columns[v] = _mm512_loadu_si512(b + v * 16);
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
      const __m512i row = _mm512_set1_epi32(a[i]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[i][v] = _mm512_dpwssd_epi32(sums[i][v], row, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(t.product + i * kColumns + v * 16, sums[i][v]);
  }
}

// See kernels/int8/avx512_vnni.cc.
bool HasVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return (FoundTargets() & HWY_AVX3) != 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1) != 0;
}

}  // namespace

const OuterTile& FastestOuterTile(const OuterTile& usual) {
  static constexpr OuterTile kTile = {kRows, kColumns, Multiply};
  static const bool has = HasVnni();
  return usual.columns == kColumns && has ? kTile : usual;
}

}  // namespace wisp::kernels

#else

namespace wisp::kernels {
const OuterTile& FastestOuterTile(const OuterTile& usual) { return usual; }
}  // namespace wisp::kernels

#endif
