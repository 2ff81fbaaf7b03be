// The ops of kernels/panels.h, one element after another.
#ifndef WISP_KERNELS_REFERENCE_PANELS_H_
#define WISP_KERNELS_REFERENCE_PANELS_H_

#include "kernels/panels.h"

namespace wisp::kernels::reference {

inline float BlockScale(const PanelMatrix& w, size_t n, size_t column, size_t k) {
  const std::byte* panel = w.data + n / kPanelRows * IntegerPanelBytes(w.bits, k);
  return ToFloat(reinterpret_cast<const Half*>(panel)[column / kBlockColumns * kPanelRows + n % kPanelRows]);
}

inline int32_t BlockInteger(const PanelMatrix& w, size_t n, size_t column, size_t k) {
  const std::byte* panel = w.data + n / kPanelRows * IntegerPanelBytes(w.bits, k);
  const std::byte* block = panel + PanelScaleBytes(k) + column / kBlockColumns * PanelBlockBytes(w.bits);
  const size_t c = column % kBlockColumns;
  if (w.bits == PanelBits::kEight)
    return static_cast<int32_t>(block[(c / 4 * kPanelRows + n % kPanelRows) * 4 + c % 4]) - IntegerOffset(w.bits);
  const auto pair = static_cast<uint32_t>(block[(c / 8 * kPanelRows + n % kPanelRows) * 4 + c % 4]);
  return static_cast<int32_t>(c % 8 < 4 ? pair & 15 : pair >> 4) - IntegerOffset(w.bits);
}

inline float PanelWeight(const PanelMatrix& w, size_t n, size_t column, size_t k) {
  if (w.bits == PanelBits::kThirtyTwo) return reinterpret_cast<const float*>(w.data)[FloatInPanels(n, column, k)];
  return BlockScale(w, n, column, k) * static_cast<float>(BlockInteger(w, n, column, k));
}

inline void MultiplyPanels(const MultiplyPanelsArgs& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.n; ++j) {
      float sum = a.bias_N != nullptr ? a.bias_N[j] : 0.0f;
      for (size_t i = 0; i < a.k; ++i) sum += a.x_RK[r * a.ldx + i] * PanelWeight(a.w, a.first + j, i, a.k);
      float& y = a.y_RN[r * a.ldy + j];
      y = a.store == Store::kAdd ? y + sum : sum;
    }
  }
}

inline void EmbedPanels(const EmbedPanelsArgs& a) {
  for (size_t t = 0; t < a.rows; ++t) {
    for (size_t i = 0; i < a.d; ++i) {
      float& y = a.y_TD[t * a.d + i];
      y = a.ids_T[t] < 0 ? 0.0f : a.scale * PanelWeight(a.table, static_cast<size_t>(a.ids_T[t]), i, a.d);
      if (a.ids_T[t] >= 0 && a.positions_TD != nullptr) y += a.positions_TD[t * a.d + i];
      if (a.ids_T[t] >= 0 && a.half_positions_TD != nullptr) y += ToFloat(a.half_positions_TD[t * a.d + i]);
    }
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_PANELS_H_
