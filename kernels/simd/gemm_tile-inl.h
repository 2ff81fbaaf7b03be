// The inner loop of every product: a tile of C in registers, C (=|+=) scale * A B + bias over one block of the inner
// size. gemm.cc does blocking, packing and ragged edges.
#if defined(WISP_KERNELS_SIMD_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_KERNELS_SIMD_GEMM_TILE_INL_H_
#undef WISP_KERNELS_SIMD_GEMM_TILE_INL_H_
#else
#define WISP_KERNELS_SIMD_GEMM_TILE_INL_H_
#endif

#include <array>
#include <cstddef>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 64-bit Arm multiplies by one lane of a vector, so a vector of A serves four steps of the inner index, or four rows of
// a transposed A. With a broadcast for each element, g++ 12 spilled accumulators of 14 rows, and the top 10 after a
// history of 200 took 38 % more instructions.
inline constexpr bool kByLane = HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64;
// Accumulators, two vectors of B and one of A must fit the registers: 28 + 3 of 32, or 12 + 3 of 16. By lane each row
// has a vector of A: 18 + 2 + 9 of 32.
inline constexpr size_t kTileRows = HWY_TARGET == HWY_AVX3 ? 14 : kByLane ? 9 : 6;
#ifdef __OPTIMIZE_SIZE__
inline constexpr bool kFewTiles = true;  // every height is separate code, so some heights are composed of others
#else
inline constexpr bool kFewTiles = false;
#endif
inline constexpr size_t kTileVectors = 2;
inline constexpr size_t kTileLanes = HWY_LANES(float);
inline constexpr size_t kPanelWidth = kTileVectors * kTileLanes;  // columns of a tile

// The prefetches of a tile: for each step of the inner index `step` floats, the first ones at b + ahead.
struct Prefetch {
  ptrdiff_t ahead = 0;
  size_t step = 0;
};

// Weights beyond the second-level cache, as in an encoder, are prefetched while earlier ones are multiplied. With this,
// six blocks of width 384 took the following share of the time without it (November 2026):
//   AVX-512: 8 rows 68 %, 16 rows 80 %, 32 rows 90 % (Zen 4), 128 rows 79 % (Sapphire Rapids)
//   AVX2:    6 rows 42 %, 16 rows 62 %, 32 rows 76 %, 128 rows 94 % (Zen 4)
// The tallest tiles are compiled with and without it, because it costs 2 % for weights that are in the cache. Lower
// tiles serve few products: from three rows on they always prefetch. One and two rows compute several panels at once
// and do not prefetch. SSE4's products are too slow to wait for memory, and nothing was measured on Arm.
inline constexpr bool kPrefetches = !kFewTiles && (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2);
inline constexpr size_t kLowestPrefetching = 3;
inline constexpr size_t kTallestBoth = !kPrefetches ? 0 : HWY_TARGET == HWY_AVX3 ? 3 : 1;
constexpr bool AlwaysPrefetches(size_t rows) {
  return kPrefetches && rows >= kLowestPrefetching && rows + kTallestBoth <= kTileRows;
}

// One call computes kRows rows by kPanels panels of kPanelWidth columns. B(k, j) of panel p is
// b[p / 2 * b_pair + p % 2 * b_panel + k * ldb + j].
struct GemmTileArgs {
  const float* a;
  size_t lda;
  const float* b;
  size_t ldb, b_panel, b_pair;
  float* c;
  size_t ldc;
  const float* bias;  // kPanels * kPanelWidth numbers, or null
  float scale;
  size_t inner;
  bool add;  // true: adds to C; false: C is not read
  Prefetch prefetch;
};

// All lanes of the result are lane i of v. The compiler knows i, once it has unrolled the loop around.
template <class V>
HWY_INLINE V BroadcastLane(V v, size_t i) {
  return i == 0   ? hn::Broadcast<0>(v)
         : i == 1 ? hn::Broadcast<1>(v)
         : i == 2 ? hn::Broadcast<2>(v)
                  : hn::Broadcast<3>(v);
}

using TileFunction = void (*)(const GemmTileArgs&);

// Row r of A at inner index k is a[r * lda + k], or a[k * lda + r] if transposed. Every element of C has one
// accumulator that runs through k in order, whatever the tile. So a row's result does not depend on other rows.
template <size_t kRows, size_t kPanels, bool kTransposedA, bool kAsks = false>
HWY_NOINLINE void MultiplyTile(const GemmTileArgs& t) {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  const D d;
  constexpr size_t kVectors = kPanels * kTileVectors;
  constexpr size_t kBases = kTransposedA ? 1 : (kRows + 2) / 3;

  V acc[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
  }

  // x86 can address base, base + lda and base + 2 lda from two registers, so only a third as many pointers as rows are
  // needed.
  const size_t lda = t.lda;
  const float* HWY_RESTRICT a[kBases];
#pragma GCC unroll 8
  for (size_t i = 0; i < kBases; ++i) a[i] = t.a + 3 * i * lda;
  const float* HWY_RESTRICT b = t.b;
  const size_t ldb = t.ldb;
  const size_t b_panel = t.b_panel;
  [[maybe_unused]] const size_t b_pair = t.b_pair;
  [[maybe_unused]] const float* next = kAsks ? b + t.prefetch.ahead : nullptr;
  [[maybe_unused]] const size_t next_step = t.prefetch.step;
  // Multiplies the elements `ahead` steps of the inner index after the pointers. `get_a(r)` has row r's in all lanes.
  const auto multiply = [&](size_t ahead, const auto& get_a) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kAsks) {
      // A step prefetches at most two lines: those of its panels.
      const float* line = next + ahead * next_step;
      __builtin_prefetch(line, /*read*/ 0, /*second level*/ 2);
      if constexpr (kPanels * kPanelWidth * sizeof(float) > 64) __builtin_prefetch(line + next_step / 2, 0, 2);
    }
    V bv[kVectors];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t panel = v / kTileVectors;
      bv[v] = hn::LoadU(d, b + ahead * ldb + panel / 2 * b_pair + panel % 2 * b_panel + v % kTileVectors * kTileLanes);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const V av = get_a(r);
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
    }
  };
  const auto step = [&](size_t ahead) HWY_ATTR __attribute__((always_inline)) {
    // Rows that come as lanes of a vector.
    constexpr size_t kWhole = kByLane && kTransposedA ? kRows / 4 * 4 : 0;
    V columns[kWhole / 4 + 1];
#pragma GCC unroll 4
    for (size_t r = 0; r < kWhole; r += 4) columns[r / 4] = hn::LoadU(d, a[0] + ahead * lda + r);
    multiply(
        ahead, [&](size_t r) HWY_ATTR __attribute__((always_inline)) {
          if (r < kWhole) return BroadcastLane(columns[r / 4], r % 4);
          return hn::Set(d, kTransposedA ? a[0][ahead * lda + r] : a[r / 3][(r % 3) * lda + ahead]);
        });
  };
  const auto advance = [&](size_t steps) HWY_ATTR __attribute__((always_inline)) {
    b += steps * ldb;
    if constexpr (kAsks) next += steps * next_step;
#pragma GCC unroll 8
    for (size_t i = 0; i < kBases; ++i) a[i] += steps * (kTransposedA ? lda : 1);
  };
  size_t left = t.inner;
  if constexpr (kByLane && !kTransposedA && kPanels < 4) {
    for (; left >= 4; left -= 4) {
      V rows[kRows];
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) rows[r] = hn::LoadU(d, a[r / 3] + r % 3 * lda);
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i)
        multiply(
            i, [&](size_t r) HWY_ATTR __attribute__((always_inline)) { return BroadcastLane(rows[r], i); });
      advance(4);
    }
  }
  // Moving the pointers takes issue slots of multiply-adds. Products are 1 to 5 % faster with two steps between moves,
  // and slower again with four (Sapphire Rapids, November 2026). Many rows use no tiles lower than these.
  constexpr size_t kUnroll = !kFewTiles && !kByLane && kPanels == 1 && kRows + 2 >= kTileRows ? 2 : 1;
  for (size_t k = left / kUnroll; k != 0; --k) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kUnroll; ++i) step(i);
    advance(kUnroll);
  }
  if (left % kUnroll != 0) step(0);

  const V scale = hn::Set(d, t.scale);
  V base[kVectors];
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) {
    base[v] = t.bias != nullptr ? hn::LoadU(d, t.bias + v * kTileLanes) : hn::Zero(d);
  }
  float* HWY_RESTRICT c = t.c;
  if (t.add) {
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r, c += t.ldc) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) {
        const V old = hn::Add(hn::LoadU(d, c + v * kTileLanes), base[v]);
        hn::StoreU(hn::MulAdd(acc[r][v], scale, old), d, c + v * kTileLanes);
      }
    }
  } else {
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r, c += t.ldc) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) hn::StoreU(hn::MulAdd(acc[r][v], scale, base[v]), d, c + v * kTileLanes);
    }
  }
}

// The tallest height up to `rows` that has its own code.
constexpr size_t WholeHeight(size_t rows) {
  if (!kFewTiles || rows == kTileRows) return rows;
  return rows >= 7 ? 7 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
}

// One panel wide.
template <size_t kRows, bool kTransposedA>
void MultiplyRows(const GemmTileArgs& t) {
  constexpr size_t kFirst = WholeHeight(kRows);
  MultiplyTile<kFirst, 1, kTransposedA>(t);
  if constexpr (kFirst < kRows) {
    GemmTileArgs rest = t;
    rest.a += kFirst * (kTransposedA ? 1 : t.lda);
    rest.c += kFirst * t.ldc;
    MultiplyRows<kRows - kFirst, kTransposedA>(rest);
  }
}
template <size_t kRows, bool kTransposedA>
constexpr TileFunction ChooseTile() {
  constexpr bool kAsks = !kTransposedA && AlwaysPrefetches(kRows);
  if constexpr (WholeHeight(kRows) == kRows)
    return MultiplyTile<kRows, 1, kTransposedA, kAsks>;
  else
    return MultiplyRows<kRows, kTransposedA>;
}

// kTiles<transposed>[rows - 1]: one panel wide.
template <bool kTransposedA, size_t... kIndex>
constexpr std::array<TileFunction, sizeof...(kIndex)> MakeTiles(std::index_sequence<kIndex...>) {
  return {ChooseTile<kIndex + 1, kTransposedA>()...};
}
template <bool kTransposedA>
inline constexpr auto kTiles = MakeTiles<kTransposedA>(std::make_index_sequence<kTileRows>());

// kPrefetchingTiles[kTileRows - rows].
template <size_t... kIndex>
constexpr std::array<TileFunction, sizeof...(kIndex)> MakePrefetchingTiles(std::index_sequence<kIndex...>) {
  return {MultiplyTile<kTileRows - kIndex, 1, false, true>...};
}
inline constexpr auto kPrefetchingTiles = MakePrefetchingTiles(std::make_index_sequence<kTallestBoth>());

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WISP_KERNELS_SIMD_GEMM_TILE_INL_H_
