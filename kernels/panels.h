// Matrices in panels of rows, as they are multiplied: how large models are stored (docs/small-models.md). They hold
// small integers, in blocks with a scale each, or floats.
//
// Integers: a row of W is cut in blocks of 32 neighbouring columns. A block has a scale, a half, and 32 integers: of 8
// bits from -127 to 127, or of 4 bits from -8 to 7. A weight is scale * integer.
//
// The layout is one for all processors, and is read where the file is mapped. A panel of integers is 16 rows:
//   scales     for each block 16 halves, one of each row; zeros up to a multiple of 64 bytes
//   integers   for each block, for each group of 4 columns (8 bits) or of 8 (4 bits), for each row 4 bytes
// A byte holds an integer plus 128, or two integers plus 8: column i of the group below, column 4 + i above.
// The last panel and the last block are filled up with rows of scale 0 and columns of integers 0. What a reader
// computes depends on neither.
//
// A panel of floats is 32 rows: column after column, each the 32 floats of these rows. Rows of zeros fill up the last.
//
// A part of the op table's contract: kernels/kernels.h, which includes this, says what holds for all ops.
#ifndef WISP_KERNELS_PANELS_H_
#define WISP_KERNELS_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/half.h"
#include "kernels/rows.h"

namespace wisp::kernels {

enum class PanelBits : uint8_t { kEight, kFour, kThirtyTwo };  // of a number; the last: floats

inline constexpr size_t kBlockColumns = 32;  // of a block
inline constexpr size_t kPanelRows = 16;     // of a panel of integers
inline constexpr size_t kFloatPanelRows = 32;

constexpr size_t NumBlocks(size_t k) { return (k + kBlockColumns - 1) / kBlockColumns; }
constexpr size_t NumPanels(size_t n) { return (n + kPanelRows - 1) / kPanelRows; }
// Of a panel of integers: its scales; the integers of one of its blocks; all of it. Bytes.
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
// Which of the floats of such a matrix of k columns is that of a row and column.
constexpr size_t FloatInPanels(size_t row, size_t column, size_t k) {
  return row / kFloatPanelRows * kFloatPanelRows * k + column * kFloatPanelRows + row % kFloatPanelRows;
}
// What is added to an integer before it is stored.
constexpr int32_t IntegerOffset(PanelBits bits) { return bits == PanelBits::kEight ? 128 : 8; }

// Where such a matrix lies, on 64 bytes; its number of rows and columns is known to who reads it.
struct PanelMatrix {
  const std::byte* data = nullptr;
  PanelBits bits = PanelBits::kEight;
};

// y (=|+=) x W^T + bias for rows [first, first + n) of W, of k columns. `bias_N` may be null; it and y begin at row
// `first`. Beside integers x may be rounded to 8 bits as it comes, symmetrically, each block of it on its own: off by
// up to max |x of the block| / 254. Beside that the max error is that of products. A row of y does not depend on the
// rows of x beside it, nor an element on `first` and `n`. Beside integers a NaN or infinity in a row of x gives NaNs.
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

// embed_forward where the table is such a matrix, of d columns; positions are floats, halves or none. The product with
// `scale` is rounded before the position is added. Of a table of floats whose positions are no halves y is instead what
// embed_forward of the same op table gives, to the bit.
struct EmbedPanelsArgs {
  PanelMatrix table;
  const float* positions_TD;  // the row for t = 0, as in embed_forward
  const Half* half_positions_TD;
  const int32_t* ids_T;
  float* y_TD;
  size_t rows, d;
  float scale;
};

// Rows [first, first + n) of W as floats, exactly; y is dense.
void WidenPanels(PanelMatrix w, size_t first, size_t n, size_t k, float* y_NK);

// The nearest such matrix of n rows of k floats: `to` has PanelMatrixBytes. Each block's scale is the half nearest to
// its largest magnitude / 127, or of 4 bits its largest number / -8, and its integers are the nearest to w / scale.
// Floats stay as they are. Returns false where a scale is beyond what halves hold; then the bytes mean nothing.
bool PackPanels(PanelBits bits, const float* w_NK, size_t n, size_t k, std::byte* to);

// Whether all scales are finite, or all floats. Any bytes of which that is true are such a matrix.
bool HasFiniteNumbers(PanelMatrix w, size_t n, size_t k);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_PANELS_H_
