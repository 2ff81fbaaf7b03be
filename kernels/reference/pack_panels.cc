// Makes matrices in panels, converts them to floats and checks them (kernels/panels.h). This runs offline, so the code
// is plain.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/panels.h"
#include "kernels/reference/panels.h"

namespace wisp::kernels {
namespace {

// The number of largest magnitude, with its sign; the first of several.
float Largest(std::span<const float> w) {
  float largest = 0;
  for (const float x : w) largest = std::abs(x) > std::abs(largest) ? x : largest;
  return largest;
}

// Packs `count` columns of one row into a block. `scale` and `bytes` are the row's place in its panel.
bool PackBlock(PanelBits bits, std::span<const float> w, Half& scale, std::byte* bytes) {
  const float largest = Largest(w);
  scale = ToHalf(bits == PanelBits::kEight ? std::abs(largest) / 127 : largest / -8);
  if (!IsFinite(scale)) return false;
  const float step = ToFloat(scale), low = bits == PanelBits::kEight ? -127 : -8,
              high = bits == PanelBits::kEight ? 127 : 7;
  for (size_t c = 0; c < w.size(); ++c) {
    const float q = step == 0 ? 0 : std::clamp(std::nearbyint(w[c] / step), low, high);
    const auto stored = static_cast<uint32_t>(static_cast<int32_t>(q) + IntegerOffset(bits));
    if (bits == PanelBits::kEight) {
      bytes[c / 4 * kPanelRows * 4 + c % 4] = static_cast<std::byte>(stored);
    } else {
      std::byte& pair = bytes[c / 8 * kPanelRows * 4 + c % 4];
      pair = c % 8 < 4 ? (pair & std::byte{0xf0}) | static_cast<std::byte>(stored)
                       : (pair & std::byte{0x0f}) | static_cast<std::byte>(stored << 4);
    }
  }
  return true;
}

// Packs a row into a panel of floats that is all zero.
void PackFloats(const float* w_K, size_t n, size_t k, std::byte* to) {
  for (size_t i = 0; i < k; ++i) reinterpret_cast<float*>(to)[FloatInPanels(n, i, k)] = w_K[i];
}

// Converts a few columns of all rows at a time, because neighbouring rows share the lines of a panel.
void WidenFloats(PanelMatrix w, size_t first, size_t n, size_t k, float* y_NK) {
  const auto* floats = reinterpret_cast<const float*>(w.data);
  for (size_t begin = 0; begin < k; begin += kBlockColumns) {
    const size_t end = std::min(k, begin + kBlockColumns);
    for (size_t row = 0; row < n; ++row) {
      for (size_t i = begin; i < end; ++i) y_NK[row * k + i] = floats[FloatInPanels(first + row, i, k)];
    }
  }
}

std::byte FilledUp(PanelBits bits) { return bits == PanelBits::kEight ? std::byte{0x80} : std::byte{0x88}; }

}  // namespace

bool PackPanels(PanelBits bits, const float* w_NK, size_t n, size_t k, std::byte* to) {
  if (bits == PanelBits::kThirtyTwo) {
    std::fill(to, to + PanelMatrixBytes(bits, n, k), std::byte{0});
    for (size_t row = 0; row < n; ++row) PackFloats(w_NK + row * k, row, k, to);
    return true;
  }
  for (size_t p = 0; p < NumPanels(n); ++p) {
    std::byte* panel = to + p * IntegerPanelBytes(bits, k);
    auto* scales = reinterpret_cast<Half*>(panel);
    std::fill(panel, panel + PanelScaleBytes(k), std::byte{0});
    std::fill(panel + PanelScaleBytes(k), panel + IntegerPanelBytes(bits, k), FilledUp(bits));
    for (size_t r = 0; r < std::min(kPanelRows, n - p * kPanelRows); ++r) {
      const float* row = w_NK + (p * kPanelRows + r) * k;
      for (size_t b = 0; b < NumBlocks(k); ++b) {
        const size_t first = b * kBlockColumns, count = std::min(kBlockColumns, k - first);
        std::byte* block = panel + PanelScaleBytes(k) + b * PanelBlockBytes(bits) + r * 4;
        if (!PackBlock(bits, {row + first, count}, scales[b * kPanelRows + r], block)) return false;
      }
    }
  }
  return true;
}

void WidenPanels(PanelMatrix w, size_t first, size_t n, size_t k, float* y_NK) {
  if (w.bits == PanelBits::kThirtyTwo) return WidenFloats(w, first, n, k, y_NK);
  for (size_t row = first; row < first + n; ++row) {
    for (size_t i = 0; i < k; i += kBlockColumns) {
      const float scale = reference::BlockScale(w, row, i, k);
      for (size_t c = i; c < std::min(k, i + kBlockColumns); ++c)
        *y_NK++ = scale * static_cast<float>(reference::BlockInteger(w, row, c, k));
    }
  }
}

bool HasFiniteNumbers(PanelMatrix w, size_t n, size_t k) {
  if (w.bits == PanelBits::kThirtyTwo) {
    const auto* floats = reinterpret_cast<const float*>(w.data);
    return std::all_of(floats, floats + PanelMatrixBytes(w.bits, n, k) / sizeof(float),
                       [](float x) { return std::isfinite(x); });
  }
  for (size_t p = 0; p < NumPanels(n); ++p) {
    const auto* scales = reinterpret_cast<const Half*>(w.data + p * IntegerPanelBytes(w.bits, k));
    if (!std::all_of(scales, scales + NumBlocks(k) * kPanelRows, IsFinite)) return false;
  }
  return true;
}

}  // namespace wisp::kernels
