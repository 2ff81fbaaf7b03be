// Stores the keys and values that attention reads of the past, for SIMD tables: keys in the panels that this table's
// products read, values by rows (kernels/attention.h has the layout).
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/cached_keys.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/gemm_tile-inl.h"
#include "kernels/simd/half-inl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

// The packing of this instruction set. It is set once, when its table is filled, before any call.
void (*pack_weights)(const PackWeightsArgs<>&);

void Copy(const float* from, size_t n, float* to) { std::copy_n(from, n, to); }
void Copy(const float* from, size_t n, Half* to) { NarrowToHalves(from, n, to); }

void PackPanel(const float* k, size_t ldk, size_t width, float* panel) {
  pack_weights({.w_NK = k, .ldw = ldk, .packed = panel, .n = kPanelWidth, .k = width});
}

void PackPanel(const float* k, size_t ldk, size_t width, Half* panel) {
  HWY_ALIGN float column[kPanelWidth];
  for (size_t c = 0; c < width; ++c) {
    for (size_t j = 0; j < kPanelWidth; ++j) column[j] = k[j * ldk + c];
    NarrowToHalves(column, kPanelWidth, panel + c * kPanelWidth);
  }
}

// Stores rows k of the positions [begin, end) of one panel. Other threads may store other positions of the same panel.
template <class T>
void KeepInPanel(const float* k, size_t ldk, size_t begin, size_t end, size_t width, T* panel) {
  if (end - begin == kPanelWidth) return PackPanel(k, ldk, width, panel);
  for (size_t j = begin; j < end; ++j, k += ldk) {
    for (size_t c = 0; c < width; ++c) Copy(k + c, 1, panel + c * kPanelWidth + j);
  }
}

template <class T>
void KeepHead(const KeepKeysArgs& a, size_t head, T* keys) {
  const size_t width = a.head_width, end = a.position + a.rows;
  const float *k = a.k + head * width, *v = a.v + head * width;
  for (size_t t = a.position; t < end;) {
    const size_t panel = t / kPanelWidth * kPanelWidth, stop = std::min(end, panel + kPanelWidth);
    KeepInPanel(k + (t - a.position) * a.ldkv, a.ldkv, t - panel, stop - panel, width, keys + panel * width);
    t = stop;
  }
  T* values = keys + a.kept.room * width;
  for (size_t r = 0; r < a.rows; ++r) Copy(v + r * a.ldkv, width, values + (a.position + r) * width);
}

void KeepKeys(const KeepKeysArgs& a) {
  for (size_t h = 0; h < a.heads; ++h) {
    void* const head = a.kept.From(h, a.head_width).data;
    a.kept.type == CacheType::kHalf ? KeepHead(a, h, static_cast<Half*>(head))
                                    : KeepHead(a, h, static_cast<float*>(head));
  }
}

}  // namespace

// Call it after FillGemm, whose packing it uses.
void FillCachedKeys(OpTable& table) {
  pack_weights = table.pack_weights;
  table.cached_panel = kPanelWidth;
  table.keep_keys = KeepKeys;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillCachedKeys)
}  // namespace wisp::kernels
#endif
