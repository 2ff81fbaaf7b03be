// Matrices in panels, one result element after another. Sessions on a device convert such weights to float32 when they
// copy them there (runtime/device/device_weights.h). These ops serve callers that keep the stored form on the
// device.
#include "kernels/panels.h"

#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/half.h"

namespace wisp::kernels::cuda {
namespace {

// One row of an integer matrix of k columns.
struct BlockRow {
  const std::byte* panel;
  PanelBits bits;
  size_t row, k;

  __device__ BlockRow(const PanelMatrix& w, size_t n, size_t columns)
      : panel(w.data + n / kPanelRows * IntegerPanelBytes(w.bits, columns)),
        bits(w.bits),
        row(n % kPanelRows),
        k(columns) {}
  __device__ float Scale(size_t block) const {
    return AsFloat(reinterpret_cast<const Half*>(panel)[block * kPanelRows + row]);
  }
  __device__ int32_t Integer(size_t column) const {
    const size_t c = column % kBlockColumns;
    const auto* at =
        reinterpret_cast<const uint8_t*>(panel) + PanelScaleBytes(k) + column / kBlockColumns * PanelBlockBytes(bits);
    if (bits == PanelBits::kEight) return at[(c / 4 * kPanelRows + row) * 4 + c % 4] - IntegerOffset(bits);
    const uint32_t pair = at[(c / 8 * kPanelRows + row) * 4 + c % 4];
    return static_cast<int32_t>(c % 8 < 4 ? pair & 15 : pair >> 4) - IntegerOffset(bits);
  }
};

// An element of a float matrix of k columns.
__device__ float FloatAt(const PanelMatrix& w, size_t n, size_t column, size_t k) {
  return reinterpret_cast<const float*>(w.data)[FloatInPanels(n, column, k)];
}

void MultiplyFloats(const MultiplyPanelsArgs& a) {
  ForEachElement(a.rows, a.n, [a] __device__(size_t r, size_t j) {
    float y = a.bias_N != nullptr ? a.bias_N[j] : 0.0f;
    for (size_t i = 0; i < a.k; ++i) y += FloatAt(a.w, a.first + j, i, a.k) * a.x_RK[r * a.ldx + i];
    Put(a.y_RN[r * a.ldy + j], y, a.store);
  });
}

void MultiplyPanels(const MultiplyPanelsArgs& a) {
  if (a.w.bits == PanelBits::kThirtyTwo) return MultiplyFloats(a);
  ForEachElement(a.rows, a.n, [a] __device__(size_t r, size_t j) {
    const BlockRow w(a.w, a.first + j, a.k);
    const float* x = a.x_RK + r * a.ldx;
    float y = a.bias_N != nullptr ? a.bias_N[j] : 0.0f;
    for (size_t first = 0; first < a.k; first += kBlockColumns) {
      const size_t end = first + kBlockColumns < a.k ? first + kBlockColumns : a.k;
      float sum = 0;
      for (size_t i = first; i < end; ++i) sum += static_cast<float>(w.Integer(i)) * x[i];
      y += w.Scale(first / kBlockColumns) * sum;
    }
    Put(a.y_RN[r * a.ldy + j], y, a.store);
  });
}

// Gives the numbers of EmbedStage.
void EmbedFloats(const EmbedPanelsArgs& a) {
  ForEachElement(a.rows, a.d, [a] __device__(size_t t, size_t i) {
    float y = 0;
    if (a.ids_T[t] >= 0) {
      y = a.scale * FloatAt(a.table, static_cast<size_t>(a.ids_T[t]), i, a.d);
      if (a.positions_TD != nullptr) y += a.positions_TD[t * a.d + i];
      if (a.half_positions_TD != nullptr) y += AsFloat(a.half_positions_TD[t * a.d + i]);
    }
    a.y_TD[t * a.d + i] = y;
  });
}

void EmbedPanels(const EmbedPanelsArgs& a) {
  if (a.table.bits == PanelBits::kThirtyTwo) return EmbedFloats(a);
  ForEachElement(a.rows, a.d, [a] __device__(size_t t, size_t i) {
    float y = 0;
    if (a.ids_T[t] >= 0) {
      const BlockRow row(a.table, static_cast<size_t>(a.ids_T[t]), a.d);
      y = __fmul_rn(a.scale, __fmul_rn(row.Scale(i / kBlockColumns), static_cast<float>(row.Integer(i))));
      if (a.positions_TD != nullptr) y = __fadd_rn(y, a.positions_TD[t * a.d + i]);
      if (a.half_positions_TD != nullptr) y = __fadd_rn(y, AsFloat(a.half_positions_TD[t * a.d + i]));
    }
    a.y_TD[t * a.d + i] = y;
  });
}

}  // namespace

void FillPanels(OpTable& table) {
  table.multiply_panels = MultiplyPanels;
  table.embed_panels = EmbedPanels;
}

}  // namespace wisp::kernels::cuda
