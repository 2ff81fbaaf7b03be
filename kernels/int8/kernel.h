// An int8 kernel: one instruction set's register tiles for the layout that int8.cc packs. Internal to kernels/int8/ and
// its tests. The runtime uses only Int8Ops() and OpTable::multiply_panels of kernels/kernels.h.
//
// A product is y = scale of the row * scale of the channel * sum_k qx qw + bias, with qx and qw integers from -127 to
// 127. Every kernel computes the same sums exactly in 32 bits (127 * 127 * 4096 < 2^26; with the shift 255 * 127 * 4096
// < 2^27). It then applies the same three float operations in the same order. So all kernels give the same bits.
#ifndef WISP_KERNELS_INT8_KERNEL_H_
#define WISP_KERNELS_INT8_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/panels.h"
#include "kernels/kernels.h"

namespace wisp::kernels::int8 {

inline constexpr size_t kMaxInner = 4096;  // the float table computes longer products
inline constexpr size_t kMaxTileRows = 14;
inline constexpr size_t kGroup = 4;  // inner indices whose weights are stored together, for most kernels

// The format in which a kernel reads quantised activations.
enum class Format {
  kSigned,   // int8
  kShifted,  // plus 128, as uint8: x86 multiplies such numbers by int8; the sums' start subtracts the offset
  kWide,     // int16
};

constexpr size_t GetBytes(Format f) { return f == Format::kWide ? 2 : 1; }

// Bytes between the quantised rows of a tile. This is a constant, so that one pointer addresses all rows. It is a cache
// line more than a power of two; otherwise all rows would share one set of the cache. Quantising may write up to 64
// bytes past a row's end.
constexpr size_t RowBytes(Format f) { return kMaxInner * GetBytes(f) + 64; }

// A panel has W channels: W scales (float), W starts of sums (int32; -128 times the sum of the channel's weights), then
// for each group of inner indices the weights of W channels. The last panel is filled with channels of zeros.
struct TileArgs {
  const uint8_t* x;      // rows, RowBytes apart
  const float* scale_R;  // scale of each row
  const uint8_t* panel;  // first panel of the tile
  size_t panel_bytes;    // bytes of each panel
  size_t groups;         // groups of inner indices
  const float* bias;     // `cols` numbers, or null
  float* y;
  size_t ldy;
  size_t cols;  // columns of y in this tile: at least one in every panel, possibly fewer than the last panel has
  bool add;     // true: adds to y; false: y is not read
};

struct Tile {
  size_t rows, panels;
  void (*multiply)(const TileArgs&);
};

// ---- Matrices of blocks (kernels/panels.h). -------------------------------------------------------------------------
// The sums of a block are exact. A tile converts each sum to float, multiplies it by the weights' scale, and adds that
// times the scale of x to y, block after block. It uses a fused multiply-add if the processor has one.
inline constexpr size_t kMostLonePanels = 4;  // the most panels that a single row of x is multiplied by at once
// the most blocks of a row in one call; longer rows are added up in several
inline constexpr size_t kMostTileBlocks = 64;

// A row of x in blocks. `q` has Format::kSigned or kWide; zeros fill the last block.
struct BlockRow {
  alignas(64) int8_t q[kMostTileBlocks * kBlockColumns * 2];
  float scale[kMostTileBlocks];
  int32_t start[kMostTileBlocks];  // the start of a sum: minus IntegerOffset times the sum of the block's integers
};

struct BlockTileArgs {
  const BlockRow* x;     // the rows
  const Half* scales;    // scales of the panel, from the first block on
  const uint8_t* panel;  // integers of the panel, from the first block on
  size_t blocks;
  float* y;                // [rows, kPanelRows], assigned; for several panels [panels, kPanelRows]
  size_t panel_bytes = 0;  // from one panel to the next, if several are multiplied together
};

struct BlockTile {
  size_t rows;
  void (*multiply)(const BlockTileArgs&);
};

struct BlockTiles {
  Format format;
  std::span<const BlockTile> of_bits[2];  // by PanelBits; tallest first; the last one has height 1
  // By PanelBits: how many panels a single row is multiplied by at once, at most kMostLonePanels; 0 if that does not
  // pay.
  size_t lone_panels = 0;
  void (*multiply_lone[2])(const BlockTileArgs&) = {};
};

struct Kernel {
  const char* name;
  Format format;
  size_t panel_width;
  size_t group = kGroup;  // inner indices of a group: 4 or 2
  // Tallest first; of equal height, wider ones first. There is one of each height for one panel, and one of height 1.
  std::span<const Tile> tiles;
  BlockTiles blocks;
};

// Each is null if this build or this processor does not support it.
const Kernel* Avx512VnniKernel();
const Kernel* AvxVnniKernel();
const Kernel* ArmDotKernel();
const Kernel* ArmKernel();
const Kernel* PortableKernel(int64_t target);  // `target`: one Highway target bit that this processor supports

// Quantises a row: q_i = nearest integer (ties to even) to x_i * 127 / max |x|. Returns the scale max |x| / 127. A row
// whose largest magnitude is below 2^-100 becomes zeros with scale 0; a row with NaN or infinity becomes zeros with
// scale NaN. Zeros fill the last group. `sum` gets the sum of the row's integers; may be null.
using QuantiseFunction = float (*)(const float* x, size_t k, Format format, uint8_t* q, int32_t* sum);
QuantiseFunction Quantiser(int64_t target);

// Quantises k columns of a row, block by block: q_i = nearest integer (ties to even) to x_i * 127 / max |x|. A block
// whose largest magnitude is below 2^-100 becomes zeros; a block with NaN or infinity becomes zeros with scale NaN.
using QuantiseBlocksFunction = void (*)(const float* x, size_t k, Format format, PanelBits weights, BlockRow& row);
QuantiseBlocksFunction BlockQuantiser(int64_t target);

// kGroup 8-bit inputs at p, as one number to broadcast.
__attribute__((always_inline)) inline int32_t LoadGroup(const uint8_t* p) {
  int32_t group;
  __builtin_memcpy(&group, p, sizeof(group));
  return group;
}

// The kernels that this processor can run, fastest first.
std::span<const Kernel* const> Kernels();

// The ops of one kernel. kernels/kernels.h has their contracts.
size_t PackedSize(const Kernel& kernel, size_t n, size_t k);
void PackWeights(const Kernel& kernel, const PackWeightsArgs<>& a);
void LinearForward(const Kernel& kernel, const LinearForwardArgs<>& a);
void MultiplyBlocks(const Kernel& kernel, const MultiplyPanelsArgs& a);  // in blocks.cc

// Uses the fastest kernel that this processor can run, or else the reference.
void MultiplyBlocksOnBest(const MultiplyPanelsArgs& a);

}  // namespace wisp::kernels::int8

#endif  // WISP_KERNELS_INT8_KERNEL_H_
