// Matrices in panels of rows, which are multiplied in place. Large models are stored so (docs/small-models.md). A panel
// holds small integers, in blocks with a scale each, or floats.
//
// Integers: a row of W is cut into blocks of 32 neighbouring columns. A block has a float16 scale and 32 integers,
// either 8-bit from -127 to 127 or 4-bit from -8 to 7. A weight is scale * integer.
//
// All processors use the same layout and read it from the mapped file. A panel of integers has 16 rows:
//   scales     for each block 16 float16 numbers, one for each row; zeros up to a multiple of 64 bytes
//   integers   for each block, for each group of 4 columns (8-bit) or 8 columns (4-bit), for each row 4 bytes
// A byte holds an integer plus 128, or two integers plus 8: column i of the group in the low bits, column 4 + i in the
// high bits. The last panel is filled with rows of scale 0, and the last block with integers 0. Results depend on
// neither.
//
// A panel of floats has 32 rows: column after column, each with the 32 floats of these rows. The last one is filled
// with rows of zeros.
//
// A part of the op table's contract. kernels/kernels.h includes this file and states what holds for all ops.
#ifndef WISP_KERNELS_PANELS_H_
#define WISP_KERNELS_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/half.h"
#include "kernels/rows.h"

namespace wisp::kernels {

enum class PanelBits : uint8_t { kEight, kFour, kThirtyTwo };  // bits of a number; kThirtyTwo: floats

inline constexpr size_t kBlockColumns = 32;  // columns of a block
inline constexpr size_t kPanelRows = 16;     // rows of a panel of integers
inline constexpr size_t kFloatPanelRows = 32;

constexpr size_t NumBlocks(size_t k) { return (k + kBlockColumns - 1) / kBlockColumns; }
constexpr size_t NumPanels(size_t n) { return (n + kPanelRows - 1) / kPanelRows; }
// Bytes in a panel of integers: of its scales, of the integers of one block, and of the whole panel.
constexpr size_t PanelScaleBytes(size_t k) { return (NumBlocks(k) * kPanelRows * sizeof(Half) + 63) / 64 * 64; }
constexpr size_t PanelBlockBytes(PanelBits bits) {
  return kPanelRows * kBlockColumns / (bits == PanelBits::kEight ? 1 : 2);
}
constexpr size_t IntegerPanelBytes(PanelBits bits, size_t k) {
  return PanelScaleBytes(k) + NumBlocks(k) * PanelBlockBytes(bits);
}
constexpr size_t PanelRows(PanelBits bits) { return bits == PanelBits::kThirtyTwo ? kFloatPanelRows : kPanelRows; }
constexpr size_t PanelMatrixBytes(PanelBits bits, size_t n, size_t k) {
  if (bits != PanelBits::kThirtyTwo) return NumPanels(n) * IntegerPanelBytes(bits, k);
  return (n + kFloatPanelRows - 1) / kFloatPanelRows * kFloatPanelRows * k * sizeof(float);
}
// The index of the float at this row and column of a matrix of k columns.
constexpr size_t FloatInPanels(size_t row, size_t column, size_t k) {
  return row / kFloatPanelRows * kFloatPanelRows * k + column * kFloatPanelRows + row % kFloatPanelRows;
}
// The offset that is added to an integer before it is stored.
constexpr int32_t IntegerOffset(PanelBits bits) { return bits == PanelBits::kEight ? 128 : 8; }

// The address of such a matrix, 64-byte aligned. The reader knows its numbers of rows and columns.
struct PanelMatrix {
  const std::byte* data = nullptr;
  PanelBits bits = PanelBits::kEight;
};

// y (=|+=) x W^T + bias for rows [first, first + n) of W, which has k columns. `bias_N` may be null; it and y begin at
// row `first`. With integers, x may be rounded to 8 bits, symmetrically and block by block: off by up to max |x of the
// block| / 254. The remaining max error is that of products. A row of y does not depend on other rows of x, and an
// element does not depend on `first` and `n`. With integers, NaN or infinity in a row of x gives NaNs.
struct MultiplyPanelsArgs {
  PanelMatrix w;
  size_t first;
  const float* x_RK;
  size_t ldx;
  const float* bias_N;
  float* y_RN;
  size_t ldy;
  size_t rows, n, k;
  Store store;
};

// embed_forward if the table is such a matrix, of d columns. Positions are float32, float16 or absent. The product with
// `scale` is rounded before the position is added. With a table of floats and positions that are not float16, y has the
// bits of embed_forward of the same op table.
struct EmbedPanelsArgs {
  PanelMatrix table;
  const float* positions_TD;  // the row for t = 0, as in embed_forward
  const Half* half_positions_TD;
  const int32_t* ids_T;
  float* y_TD;
  size_t rows, d;
  float scale;
};

// Converts rows [first, first + n) of W to floats, exactly; y is dense.
void WidenPanels(PanelMatrix w, size_t first, size_t n, size_t k, float* y_NK);

// Rounds n rows of k floats to the nearest such matrix; `to` has PanelMatrixBytes. Each block's scale is the float16
// nearest to its largest magnitude / 127 or, for 4 bits, to the number of largest magnitude / -8. Its integers are
// nearest to w / scale. Floats stay unchanged. Returns false if a scale exceeds float16; the bytes are then invalid.
bool PackPanels(PanelBits bits, const float* w_NK, size_t n, size_t k, std::byte* to);

// True if all scales, or all floats, are finite. Any bytes for which this holds are a valid matrix.
bool HasFiniteNumbers(PanelMatrix w, size_t n, size_t k);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_PANELS_H_
