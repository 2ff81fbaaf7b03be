// Products with matrices of blocks, over whichever kernel runs here: some rows of x are quantised, then every panel is
// multiplied by all of them while it lies in the cache.
#include <algorithm>

#include "kernels/int8/kernel.h"
#include "kernels/simd/processor.h"

namespace wisp::kernels {
namespace int8 {
namespace {

constexpr size_t kMostBlockRows = 12;  // at once: as many as the tallest tile has

// Some columns of a product.
struct Columns {
  size_t first_block, num_blocks;
  bool is_first;  // nothing has been stored yet
};

// Of the rows of one panel those that are asked for, from [rows, kPanelRows] of sums.
void Store(const MultiplyBlocksArgs& a, const Columns& columns, size_t panel, size_t row, size_t rows,
           const float* sums) {
  const size_t begin = std::max(panel * kPanelRows, a.first), end = std::min((panel + 1) * kPanelRows, a.first + a.n);
  const bool adds = a.store == kernels::Store::kAdd || !columns.is_first;
  const float* bias = columns.is_first && a.bias_N != nullptr ? a.bias_N + (begin - a.first) : nullptr;
  for (size_t r = 0; r < rows; ++r) {
    float* y = a.y_RN + (row + r) * a.ldy + (begin - a.first);
    const float* from = sums + r * kPanelRows + begin % kPanelRows;
    for (size_t j = 0; j < end - begin; ++j) {
      const float value = bias != nullptr ? from[j] + bias[j] : from[j];
      y[j] = adds ? y[j] + value : value;
    }
  }
}

void MultiplyPanel(const Kernel& kernel, const MultiplyBlocksArgs& a, const Columns& columns, size_t panel,
                   const BlockRow* x, size_t row, size_t rows) {
  const std::byte* data = a.w.data + panel * PanelBytes(a.w.bits, a.k);
  alignas(64) float sums[kMostBlockRows * kPanelRows];
  BlockTileArgs t{.x = x,
                  .scales = reinterpret_cast<const Half*>(data) + columns.first_block * kPanelRows,
                  .panel = reinterpret_cast<const uint8_t*>(data) + PanelScaleBytes(a.k) +
                           columns.first_block * PanelBlockBytes(a.w.bits),
                  .blocks = columns.num_blocks,
                  .y = sums};
  const std::span<const BlockTile> tiles = kernel.blocks.of_bits[static_cast<size_t>(a.w.bits)];
  for (size_t r = 0; r < rows;) {
    const auto tile = std::find_if(tiles.begin(), tiles.end(), [&](const BlockTile& t) { return t.rows <= rows - r; });
    t.x = x + r;
    t.y = sums + r * kPanelRows;
    tile->multiply(t);
    r += tile->rows;
  }
  Store(a, columns, panel, row, rows, sums);
}

// A lower bit is a better target.
QuantiseBlocksFunction BestQuantiser() {
  for (int64_t left = ProcessorTargets(); left != 0; left &= left - 1) {
    if (const QuantiseBlocksFunction quantise = BlockQuantiser(left & -left)) return quantise;
  }
  return nullptr;
}

void MultiplyOnBest(const MultiplyBlocksArgs& a) { MultiplyBlocks(*Kernels()[0], a); }

}  // namespace

void MultiplyBlocks(const Kernel& kernel, const MultiplyBlocksArgs& a) {
  static const QuantiseBlocksFunction quantise = BestQuantiser();
  if (a.n == 0) return;
  BlockRow x[kMostBlockRows];
  const size_t first_panel = a.first / kPanelRows, end_panel = NumPanels(a.first + a.n), blocks = NumBlocks(a.k);
  for (size_t row = 0; row < a.rows; row += kMostBlockRows) {
    const size_t rows = std::min(kMostBlockRows, a.rows - row);
    size_t block = 0;
    do {
      const Columns columns{block, std::min(kMostTileBlocks, blocks - block), block == 0};
      const size_t first = block * kBlockColumns, count = std::min(columns.num_blocks * kBlockColumns, a.k - first);
      for (size_t r = 0; r < rows; ++r)
        quantise(a.x_RK + (row + r) * a.ldx + first, count, kernel.blocks.format, a.w.bits, x[r]);
      for (size_t panel = first_panel; panel < end_panel; ++panel)
        MultiplyPanel(kernel, a, columns, panel, x, row, rows);
      block += columns.num_blocks;
    } while (block < blocks);
  }
}

void FillBlocks(OpTable& table) {
  if (!Kernels().empty()) table.multiply_blocks = MultiplyOnBest;
}

}  // namespace int8
}  // namespace wisp::kernels
