// The inference table whose linear layers multiply 8-bit integers.
//
// This is the fastest SIMD table with packed_size, pack_weights and linear_forward replaced. Weights are quantised
// symmetrically when they are packed, with a scale for each output channel; inputs are quantised as they come, with a
// scale for each row. Embeddings, layer norm, attention and activations stay float.
// Products exceed the error that kernels/kernels.h promises: each factor is off by up to half of 1/127 of the largest
// of its row. Products of more than kMaxInner terms stay float too, because a tile's quantised rows lie on the stack.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/int8/kernel.h"
#include "kernels/simd/processor.h"

namespace wisp::kernels {
namespace int8 {
namespace {

constexpr size_t kScratchBytes =
    std::max(kMaxTileRows * RowBytes(Format::kShifted), size_t{6} * RowBytes(Format::kWide));

struct Available {
  std::array<const Kernel*, 8> kernels = {};
  size_t count = 0;
  QuantiseFunction quantise = nullptr;

  Available() {
    Add(Avx512VnniKernel());
    Add(AvxVnniKernel());
    Add(ArmDotKernel());
    Add(ArmKernel());
    // A lower bit is a better target.
    for (int64_t left = ProcessorTargets(); left != 0; left &= left - 1) {
      const int64_t target = left & -left;
      if (quantise == nullptr) quantise = Quantiser(target);
      Add(PortableKernel(target));
    }
    if (quantise == nullptr) count = 0;
  }
  void Add(const Kernel* kernel) {
    if (kernel != nullptr && count < kernels.size()) kernels[count++] = kernel;
  }
};

const Available& All() {
  static const Available available;
  return available;
}

size_t Groups(const Kernel& kernel, size_t k) { return (k + kernel.group - 1) / kernel.group; }

// Floats of one panel: for each channel a scale, a start, and its weights of each group.
size_t PanelFloats(const Kernel& kernel, size_t k) {
  return kernel.panel_width * 2 + kernel.panel_width * kernel.group / sizeof(float) * Groups(kernel, k);
}

// Packs channel `j` of a panel; all zeros if `w` is null.
void PackChannel(const Kernel& kernel, const float* w, size_t k, size_t j, uint8_t* panel) {
  alignas(64) uint8_t row[RowBytes(Format::kSigned)];
  const size_t stride = kernel.panel_width * sizeof(float);
  float scale = 0;
  int32_t sum = 0;
  if (w != nullptr) scale = All().quantise(w, k, Format::kSigned, row, &sum);
  const int32_t start = -128 * sum;
  std::memcpy(panel + j * sizeof(float), &scale, sizeof(scale));
  std::memcpy(panel + stride + j * sizeof(float), &start, sizeof(start));
  uint8_t* to = panel + 2 * stride + j * kernel.group;
  for (size_t i = 0; i < Groups(kernel, k) * kernel.group; i += kernel.group, to += kernel.panel_width * kernel.group) {
    if (w != nullptr) {
      std::memcpy(to, row + i, kernel.group);
    } else {
      std::memset(to, 0, kernel.group);
    }
  }
}

// Computes `rows` rows of y from their quantised x, with the widest tiles that fit; the last one is ragged.
void MultiplyRows(const Kernel& kernel, const LinearForwardArgs<>& a, size_t row, size_t rows, const uint8_t* x,
                  const float* scales) {
  const size_t width = kernel.panel_width;
  TileArgs t{.x = x,
             .scale_R = scales,
             .panel = reinterpret_cast<const uint8_t*>(a.packed),
             .panel_bytes = PanelFloats(kernel, a.k) * sizeof(float),
             .groups = Groups(kernel, a.k),
             .bias = a.bias_N,
             .y = a.y_RN + row * a.ldy,
             .ldy = a.ldy,
             .add = a.store == Store::kAdd};
  // Tiles of equal height begin with the widest and end with one of a single panel.
  auto tile = std::find_if(kernel.tiles.begin(), kernel.tiles.end(), [&](const Tile& one) { return one.rows == rows; });
  for (size_t left = a.n; left != 0; left -= t.cols) {
    while ((tile->panels - 1) * width >= left) ++tile;
    t.cols = std::min(tile->panels * width, left);
    tile->multiply(t);
    t.panel += tile->panels * t.panel_bytes;
    t.y += t.cols;
    if (t.bias != nullptr) t.bias += t.cols;
  }
}

}  // namespace

std::span<const Kernel* const> Kernels() { return {All().kernels.data(), All().count}; }

size_t PackedSize(const Kernel& kernel, size_t n, size_t k) {
  if (k > kMaxInner) return BestOps().packed_size(n, k);
  return (n + kernel.panel_width - 1) / kernel.panel_width * PanelFloats(kernel, k);
}

void PackWeights(const Kernel& kernel, const PackWeightsArgs<>& a) {
  if (a.k > kMaxInner) return BestOps().pack_weights(a);
  for (size_t first = 0; first < a.n; first += kernel.panel_width) {
    uint8_t* panel = reinterpret_cast<uint8_t*>(a.packed + first / kernel.panel_width * PanelFloats(kernel, a.k));
    for (size_t j = 0; j < kernel.panel_width; ++j) {
      PackChannel(kernel, first + j < a.n ? a.w_NK + (first + j) * a.ldw : nullptr, a.k, j, panel);
    }
  }
}

void LinearForward(const Kernel& kernel, const LinearForwardArgs<>& a) {
  if (a.k > kMaxInner) return BestOps().linear_forward(a);
  alignas(64) uint8_t x[kScratchBytes];
  float scales[kMaxTileRows];
  const QuantiseFunction quantise = All().quantise;
  for (size_t row = 0; row < a.rows;) {
    const auto tallest = std::find_if(kernel.tiles.begin(), kernel.tiles.end(),
                                      [&](const Tile& tile) { return tile.rows <= a.rows - row; });
    const size_t rows = tallest->rows;
    for (size_t r = 0; r < rows; ++r) {
      scales[r] = quantise(a.x_RK + (row + r) * a.ldx, a.k, kernel.format, x + r * RowBytes(kernel.format), nullptr);
    }
    MultiplyRows(kernel, a, row, rows, x, scales);
    row += rows;
  }
}

}  // namespace int8

namespace {

size_t BestPackedSize(size_t n, size_t k) { return int8::PackedSize(*int8::Kernels()[0], n, k); }
void BestPackWeights(const PackWeightsArgs<>& a) { int8::PackWeights(*int8::Kernels()[0], a); }
void BestLinearForward(const LinearForwardArgs<>& a) { int8::LinearForward(*int8::Kernels()[0], a); }

OpTable MakeTable() {
  OpTable table = BestOps();
  table.packed_size = BestPackedSize;
  table.pack_weights = BestPackWeights;
  table.linear_forward = BestLinearForward;
  if (!int8::Kernels().empty()) table.name = int8::Kernels()[0]->name;
  return table;
}

}  // namespace

const OpTable* Int8Ops() {
  static const OpTable table = MakeTable();
  return int8::Kernels().empty() ? nullptr : &table;
}

}  // namespace wisp::kernels
