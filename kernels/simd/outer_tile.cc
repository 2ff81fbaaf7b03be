#include "kernels/simd/outer_tile.h"

#include <algorithm>
#include <limits>

namespace wisp::kernels {
namespace {

// The end of the run of rows from `first` on that add at most 2^31 - 1 to any number of the product, in any order. One
// row always fits.
size_t FindRunEnd(const AccumulateOuterArgs& a, size_t first) {
  constexpr size_t kMostRows = 512;  // when packed they fit the second-level cache
  int64_t room = std::numeric_limits<int32_t>::max();
  size_t r = first;
  for (; r < std::min(a.rows, first + kMostRows); ++r) {
    room -= int64_t{a.largest_a_R[r]} * a.largest_b_R[r];
    if (room < 0) break;
  }
  return r;
}

void AddRun(const AccumulateOuterArgs& a, size_t first, size_t end, const OuterSteps& steps) {
  const OuterTile& tile = steps.tile;
  const size_t rows = end - first, pairs = (rows + 1) / 2;
  int32_t* const packed_a = a.scratch;
  int32_t* const packed_b = packed_a + pairs * ((a.n + tile.rows - 1) / tile.rows * tile.rows);
  steps.pack(a.a_RN + first * a.lda, a.lda, rows, a.n, tile.rows, packed_a);
  steps.pack(a.b_RK + first * a.ldb, a.ldb, rows, a.k, tile.columns, packed_b);
  alignas(64) int32_t product[kMostTileRows * kMostTileColumns];
  for (size_t i = 0; i < a.n; i += tile.rows) {
    const size_t height = std::min(tile.rows, a.n - i);
    for (size_t j = 0; j < a.k; j += tile.columns) {
      const size_t width = std::min(tile.columns, a.k - j);
      int64_t* const sum = a.sum_NK + i * a.ldsum + j;
      // The sums are prefetched while the tile is multiplied.
      for (size_t r = 0; r < height; ++r) {
        for (size_t c = 0; c < width; c += 8) __builtin_prefetch(sum + r * a.ldsum + c, /*write*/ 1);
      }
      tile.multiply({packed_a + i * pairs, packed_b + j * pairs, pairs, product});
      for (size_t r = 0; r < height; ++r) steps.add(product + r * tile.columns, width, sum + r * a.ldsum);
    }
  }
}

}  // namespace

void AccumulateOuterBy(const AccumulateOuterArgs& a, const OuterSteps& steps) {
  for (size_t first = 0; first < a.rows;) {
    const size_t end = FindRunEnd(a, first);
    AddRun(a, first, end, steps);
    first = end;
  }
}

}  // namespace wisp::kernels
