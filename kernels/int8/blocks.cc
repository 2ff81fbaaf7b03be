// Products with integer blocks, for whichever kernel runs here. Some rows of x are quantised, then all of them are
// multiplied by one panel after another, while the panel is in the cache.
#include <algorithm>
#include <cstring>

#include "kernels/int8/kernel.h"
#include "kernels/simd/processor.h"

namespace wisp::kernels {
namespace int8 {
namespace {

// Rows quantised together: as many as the tallest tile has; or all remaining rows if there are only a few more, so that
// a panel is read once.
constexpr size_t kBlockRows = 12, kMostBlockRows = 16;

size_t RowsAtOnce(size_t left) { return left <= kMostBlockRows ? left : kBlockRows; }

// A range of columns of a product.
struct Columns {
  size_t first_block, num_blocks;
  bool is_first;  // nothing has been stored yet
};

[[gnu::always_inline]] inline void StoreColumns(const float* from, const float* bias, bool adds, float* y, size_t n) {
  float values[kPanelRows];
  for (size_t j = 0; j < n; ++j) values[j] = from[j];
  if (bias != nullptr) {
    for (size_t j = 0; j < n; ++j) values[j] += bias[j];
  }
  if (adds) {
    for (size_t j = 0; j < n; ++j) values[j] = y[j] + values[j];
  }
  std::memcpy(y, values, n * sizeof(float));
}

// Stores the requested rows of one panel from [rows, kPanelRows] sums.
void StoreSums(const MultiplyPanelsArgs& a, const Columns& columns, size_t panel, size_t row, size_t rows,
               const float* sums) {
  const size_t begin = std::max(panel * kPanelRows, a.first), end = std::min((panel + 1) * kPanelRows, a.first + a.n);
  const bool adds = a.store == kernels::Store::kAdd || !columns.is_first;
  const float* bias = columns.is_first && a.bias_N != nullptr ? a.bias_N + (begin - a.first) : nullptr;
  const bool whole = end - begin == kPanelRows;
  for (size_t r = 0; r < rows; ++r) {
    float* y = a.y_RN + (row + r) * a.ldy + (begin - a.first);
    const float* from = sums + r * kPanelRows + begin % kPanelRows;
    // A constant number of columns compiles to a few vectors.
    whole ? StoreColumns(from, bias, adds, y, kPanelRows) : StoreColumns(from, bias, adds, y, end - begin);
  }
}

// The tile arguments for these columns, beginning at a panel.
BlockTileArgs TileAt(const MultiplyPanelsArgs& a, const Columns& columns, size_t panel, const BlockRow* x,
                     float* sums) {
  const size_t bytes = IntegerPanelBytes(a.w.bits, a.k);
  const std::byte* data = a.w.data + panel * bytes;
  return {.x = x,
          .scales = reinterpret_cast<const Half*>(data) + columns.first_block * kPanelRows,
          .panel = reinterpret_cast<const uint8_t*>(data) + PanelScaleBytes(a.k) +
                   columns.first_block * PanelBlockBytes(a.w.bits),
          .blocks = columns.num_blocks,
          .y = sums,
          .panel_bytes = bytes};
}

void MultiplyPanel(const Kernel& kernel, const MultiplyPanelsArgs& a, const Columns& columns, size_t panel,
                   const BlockRow* x, size_t row, size_t rows) {
  alignas(64) float sums[kMostBlockRows * kPanelRows];
  BlockTileArgs t = TileAt(a, columns, panel, x, sums);
  const std::span<const BlockTile> tiles = kernel.blocks.of_bits[static_cast<size_t>(a.w.bits)];
  for (size_t r = 0; r < rows;) {
    const auto tile = std::find_if(tiles.begin(), tiles.end(), [&](const BlockTile& t) { return t.rows <= rows - r; });
    t.x = x + r;
    t.y = sums + r * kPanelRows;
    tile->multiply(t);
    r += tile->rows;
  }
  StoreSums(a, columns, panel, row, rows, sums);
}

// Multiplies a single row, by as many of the panels [panel, end) at once as the kernel takes, repeatedly. Returns the
// first panel that is left.
size_t MultiplyLoneRow(const Kernel& kernel, const MultiplyPanelsArgs& a, const Columns& columns, size_t panel,
                       size_t end, const BlockRow* x, size_t row) {
  const size_t at_once = kernel.blocks.lone_panels;
  alignas(64) float sums[kMostLonePanels * kPanelRows];
  for (; at_once > 0 && panel + at_once <= end; panel += at_once) {
    kernel.blocks.multiply_lone[static_cast<size_t>(a.w.bits)](TileAt(a, columns, panel, x, sums));
    for (size_t p = 0; p < at_once; ++p) StoreSums(a, columns, panel + p, row, 1, sums + p * kPanelRows);
  }
  return panel;
}

// A lower bit is a better target.
QuantiseBlocksFunction BestQuantiser() {
  for (int64_t left = ProcessorTargets(); left != 0; left &= left - 1) {
    if (const QuantiseBlocksFunction quantise = BlockQuantiser(left & -left)) return quantise;
  }
  return nullptr;
}

}  // namespace

void MultiplyBlocks(const Kernel& kernel, const MultiplyPanelsArgs& a) {
  static const QuantiseBlocksFunction quantise = BestQuantiser();
  if (a.n == 0) return;
  BlockRow x[kMostBlockRows];
  const size_t first_panel = a.first / kPanelRows, end_panel = NumPanels(a.first + a.n), blocks = NumBlocks(a.k);
  for (size_t row = 0, rows = 0; row < a.rows; row += rows) {
    rows = RowsAtOnce(a.rows - row);
    size_t block = 0;
    do {
      const Columns columns{block, std::min(kMostTileBlocks, blocks - block), block == 0};
      const size_t first = block * kBlockColumns, count = std::min(columns.num_blocks * kBlockColumns, a.k - first);
      for (size_t r = 0; r < rows; ++r)
        quantise(a.x_RK + (row + r) * a.ldx + first, count, kernel.blocks.format, a.w.bits, x[r]);
      size_t panel = first_panel;
      if (rows == 1) panel = MultiplyLoneRow(kernel, a, columns, panel, end_panel, x, row);
      for (; panel < end_panel; ++panel) MultiplyPanel(kernel, a, columns, panel, x, row, rows);
      block += columns.num_blocks;
    } while (block < blocks);
  }
}

void MultiplyBlocksOnBest(const MultiplyPanelsArgs& a) {
  if (Kernels().empty()) return ReferenceOps().multiply_panels(a);
  MultiplyBlocks(*Kernels()[0], a);
}

}  // namespace int8
}  // namespace wisp::kernels
