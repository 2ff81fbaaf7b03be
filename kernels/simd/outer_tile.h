// The order of work in accumulate_outer, for all instruction sets: rows that fit 32 bits together, packing, tiles.
#ifndef WISP_KERNELS_SIMD_OUTER_TILE_H_
#define WISP_KERNELS_SIMD_OUTER_TILE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/integers.h"

namespace wisp::kernels {

// product [rows, columns] = sum over pairs of the two 16-bit products in a[pair, row] and b[pair, column].
struct OuterTileArgs {
  const int32_t* a;
  const int32_t* b;
  size_t pairs;
  int32_t* product;
};

struct OuterTile {
  size_t rows, columns;  // at most kMostTileRows, kMostTileColumns
  void (*multiply)(const OuterTileArgs&);
};

inline constexpr size_t kMostTileRows = 16, kMostTileColumns = 64;

// A tile with instructions that Highway does not know, if the processor has them; otherwise `usual`.
const OuterTile& FastestOuterTile(const OuterTile& usual);

struct OuterSteps {
  const OuterTile& tile;
  void (*pack)(const int16_t* x, size_t ld, size_t rows, size_t n, size_t width, int32_t* to);
  void (*add)(const int32_t* product, size_t n, int64_t* sum);
};
void AccumulateOuterBy(const AccumulateOuterArgs& a, const OuterSteps& steps);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_SIMD_OUTER_TILE_H_
