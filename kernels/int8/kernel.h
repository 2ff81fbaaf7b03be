// What an int8 kernel is: one instruction set's register tiles over the layout that int8.cc packs. Internal to
// kernels/int8/ and its tests; the runtime sees Int8Ops() and OpTable::multiply_panels of kernels/kernels.h only.
//
// A product is y = scale of the row * scale of the channel * sum_k qx qw + bias, with qx and qw whole numbers from -127
// to 127. Every kernel forms the same sums, exactly, in 32 bits (127 * 127 * 4096 < 2^26; with the shift 255 * 127 *
// 4096 < 2^27), and finishes them with the same three float operations in the same order: results are equal to the bit
// on all of them.
#ifndef WISP_KERNELS_INT8_KERNEL_H_
#define WISP_KERNELS_INT8_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/panels.h"
#include "kernels/kernels.h"

namespace wisp::kernels::int8 {

inline constexpr size_t kMaxInner = 4096;  // longer products are left to the float table
inline constexpr size_t kMaxTileRows = 14;
inline constexpr size_t kGroup = 4;  // inner indices that lie together

// How a kernel reads quantised activations.
enum class Format {
  kSigned,   // int8
  kShifted,  // 128 more, as uint8: what x86 multiplies int8 with. The sums' start takes it back.
  kWide,     // int16
};

constexpr size_t BytesOf(Format f) { return f == Format::kWide ? 2 : 1; }

// Between the quantised rows of a tile: a constant, so that one pointer addresses all of them. A line more than a power
// of two, or all rows would share one set of the cache. Quantising may write up to 64 bytes past a row's end.
constexpr size_t RowBytes(Format f) { return kMaxInner * BytesOf(f) + 64; }

// A panel is W channels: W scales (float), W starts of sums (int32; -128 times the sum of the channel's weights), then
// for each group of 4 inner indices W times 4 weights. The last panel is filled up with channels of zeros.
struct TileArgs {
  const uint8_t* x;      // the rows, RowBytes apart
  const float* scale_R;  // theirs
  const uint8_t* panel;  // the first of those that the tile spans
  size_t panel_bytes;    // of each
  size_t groups;         // of inner indices
  const float* bias;     // `cols` of them, or null
  float* y;
  size_t ldy;
  size_t cols;  // those that y has; more than none of every panel, less than all of the last at most
  bool add;     // onto y; otherwise y is not read
};

struct Tile {
  size_t rows, panels;
  void (*multiply)(const TileArgs&);
};

// ---- Matrices of blocks (kernels/panels.h). -------------------------------------------------------------------------
// The sums of a block are exact. A tile turns each into a float, multiplies it by the weights' scale and adds that
// times the scale of x to y's sum, block after block: a fused multiply-add where the processor has one.
inline constexpr size_t kMostLonePanels = 4;   // that a lone row of x is multiplied by at once
inline constexpr size_t kMostTileBlocks = 64;  // of a row in one go; longer ones are added up in several

// A row of x in blocks. `q` is in Format::kSigned or kWide; zeros fill the last block.
struct BlockRow {
  alignas(64) int8_t q[kMostTileBlocks * kBlockColumns * 2];
  float scale[kMostTileBlocks];
  int32_t start[kMostTileBlocks];  // of a sum: minus IntegerOffset times the sum of the block's integers
};

struct BlockTileArgs {
  const BlockRow* x;     // the rows
  const Half* scales;    // of the panel, from the first block on
  const uint8_t* panel;  // its integers, from the first block on
  size_t blocks;
  float* y;                // [rows, kPanelRows], assigned; of several panels [panels, kPanelRows]
  size_t panel_bytes = 0;  // from one panel to the next, where several are multiplied at once
};

struct BlockTile {
  size_t rows;
  void (*multiply)(const BlockTileArgs&);
};

struct BlockTiles {
  Format format;
  std::span<const BlockTile> of_bits[2];  // by PanelBits; tallest first, the last has height 1
  // By PanelBits, of one row: so many panels at once, at most kMostLonePanels; 0 where that does not pay.
  size_t lone_panels = 0;
  void (*multiply_lone[2])(const BlockTileArgs&) = {};
};

struct Kernel {
  const char* name;
  Format format;
  size_t panel_width;
  // Tallest first, wider ones before narrower ones of the same height; there is one of each height for one panel, and
  // one of height 1.
  std::span<const Tile> tiles;
  BlockTiles blocks;
};

// Each is null where this build or this processor has none.
const Kernel* Avx512VnniKernel();
const Kernel* AvxVnniKernel();
const Kernel* ArmDotKernel();
const Kernel* PortableKernel(int64_t target);  // `target`: one Highway target bit, supported by this processor

// Quantises a row: q_i = nearest integer (ties to even) to x_i * 127 / max |x|, and returns the scale max |x| / 127. A
// row whose largest magnitude is below 2^-100 becomes zeros with scale 0, one that holds a NaN or an infinity zeros
// with scale NaN. Zeros fill the last group. `sum`: of the row's integers; may be null.
using QuantiseFunction = float (*)(const float* x, size_t k, Format format, uint8_t* q, int32_t* sum);
QuantiseFunction Quantiser(int64_t target);

// Quantises k columns of a row, block by block: q_i = nearest integer (ties to even) to x_i * 127 / max |x|. A block
// below 2^-100 becomes zeros, one that holds a NaN or an infinity zeros with scale NaN.
using QuantiseBlocksFunction = void (*)(const float* x, size_t k, Format format, PanelBits weights, BlockRow& row);
QuantiseBlocksFunction BlockQuantiser(int64_t target);

// kGroup inputs of 8 bits at p, as one number to broadcast.
__attribute__((always_inline)) inline int32_t LoadGroup(const uint8_t* p) {
  int32_t group;
  __builtin_memcpy(&group, p, sizeof(group));
  return group;
}

// The kernels that run here, fastest first.
std::span<const Kernel* const> Kernels();

// The ops of one kernel; their contracts are in kernels/kernels.h.
size_t PackedSize(const Kernel& kernel, size_t n, size_t k);
void PackWeights(const Kernel& kernel, const PackWeightsArgs<>& a);
void LinearForward(const Kernel& kernel, const LinearForwardArgs<>& a);
void MultiplyBlocks(const Kernel& kernel, const MultiplyPanelsArgs& a);  // blocks.cc

// By the fastest kernel that runs here, or else the reference.
void MultiplyBlocksOnBest(const MultiplyPanelsArgs& a);

}  // namespace wisp::kernels::int8

#endif  // WISP_KERNELS_INT8_KERNEL_H_
