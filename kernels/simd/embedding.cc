// Gathers and scatters rows of a table, for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/embedding.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>

#include "kernels/reference/panels.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

// y = scale * x + z; a null z counts as zero. y may be x or z.
HWY_INLINE void ScaleAddRow(const float* x, const float* z, float* y, size_t n, float scale) {
  const D d;
  const V factor = hn::Set(d, scale);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V add = z != nullptr ? hn::LoadU(d, z + i) : hn::Zero(d);
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, x + i), add), d, y + i);
  }
  if (i == n) return;
  const V add = z != nullptr ? LoadPartial(d, z + i, n - i) : hn::Zero(d);
  StorePartial(hn::MulAdd(factor, LoadPartial(d, x + i, n - i), add), d, y + i, n - i);
}

void EmbedForward(const EmbedForwardArgs<>& a) {
  for (size_t t = 0; t < a.rows; ++t) {
    float* y = a.y_TD + t * a.d;
    if (a.ids_T[t] < 0) {
      std::fill(y, y + a.d, 0.0f);
      continue;
    }
    const size_t row = a.position_T != nullptr ? static_cast<size_t>(a.position_T[t]) : t;
    const float* position = a.positions_TD != nullptr ? a.positions_TD + row * a.d : nullptr;
    ScaleAddRow(a.table_MD + static_cast<size_t>(a.ids_T[t]) * a.d, position, y, a.d, a.scale);
  }
}

// Panels of floats give the numbers of EmbedForward.
void EmbedPanels(const EmbedPanelsArgs& a) {
  if (a.table.bits != PanelBits::kThirtyTwo || a.half_positions_TD != nullptr) return reference::EmbedPanels(a);
  for (size_t t = 0; t < a.rows; ++t) {
    float* y = a.y_TD + t * a.d;
    if (a.ids_T[t] < 0) {
      std::fill(y, y + a.d, 0.0f);
      continue;
    }
    WidenPanels(a.table, static_cast<size_t>(a.ids_T[t]), 1, a.d, y);
    ScaleAddRow(y, a.positions_TD != nullptr ? a.positions_TD + t * a.d : nullptr, y, a.d, a.scale);
  }
}

void ScatterAdd(const ScatterAddArgs<>& a) {
  for (size_t t = 0; t < a.rows; ++t) {
    if (a.ids_T[t] < 0) continue;
    float* row = a.table_MD + static_cast<size_t>(a.ids_T[t]) * a.ldtable;
    ScaleAddRow(a.dx_TD + t * a.lddx, row, row, a.d, a.scale);
  }
}

}  // namespace

void FillEmbedding(OpTable& table) {
  table.embed_forward = EmbedForward;
  table.embed_panels = EmbedPanels;
  table.scatter_add = ForTraining(ScatterAdd);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillEmbedding)
}  // namespace wisp::kernels
#endif
