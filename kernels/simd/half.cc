// Float16 tables read in place, for SIMD tables: converted in registers, then multiplied by one vector or scaled.
//
// A product takes whole rows and one x, as for scoring a catalogue. It reads each number once from the mapped table,
// half the bytes of packed floats. Each row has its own vector of sums; the vectors of four rows are added up together.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/half.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/half-inl.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DFour = hn::FixedTag<float, 4>;
using Four = hn::Vec<DFour>;
constexpr size_t kLanes = HWY_LANES(float);

HWY_INLINE V Widen(const Half* from) { return ConvertFloat16(D(), from); }

void ScaleHalf(const ScaleHalfArgs& a) {
  const D d;
  const V factor = hn::Set(d, a.a);
  HWY_ALIGN Half end[kLanes] = {};
  for (size_t i = 0; i < a.n; i += kLanes) {
    const size_t count = std::min(kLanes, a.n - i);
    const Half* from = a.x + i;
    if (HWY_UNLIKELY(count < kLanes)) {
      std::memcpy(end, from, count * sizeof(Half));
      from = end;
    }
    const V product = hn::Mul(factor, Widen(from));
    StoreSome(a.store == Store::kAdd ? hn::Add(product, LoadSome(d, a.y + i, count)) : product, d, a.y + i, count);
  }
}

// y (=|+=) factor * a row of float16, or of floats if `halves` is null.
HWY_INLINE void ScaleRow(const float* floats, const Half* halves, size_t n, float factor, Store store, float* y) {
  if (halves != nullptr) return ScaleHalf({.x = halves, .y = y, .n = n, .a = factor, .store = store});
  const D d;
  for (size_t i = 0; i < n; i += kLanes) {
    const V product = hn::Mul(hn::Set(d, factor), LoadSome(d, floats + i, n - i));
    StoreSome(store == Store::kAdd ? hn::Add(product, LoadSome(d, y + i, n - i)) : product, d, y + i, n - i);
  }
}

void EmbedHalf(const EmbedHalfArgs& a) {
  const auto at = [&](const auto* table, size_t row) { return table == nullptr ? nullptr : table + row * a.d; };
  const bool has_positions = a.positions_TD != nullptr || a.half_positions_TD != nullptr;
  for (size_t t = 0; t < a.rows; ++t) {
    float* y = a.y_TD + t * a.d;
    if (a.ids_T[t] < 0) {
      std::fill(y, y + a.d, 0.0f);
      continue;
    }
    const auto row = static_cast<size_t>(a.ids_T[t]);
    ScaleRow(at(a.table_MD, row), at(a.half_table_MD, row), a.d, a.scale, Store::kAssign, y);
    if (has_positions) ScaleRow(at(a.positions_TD, t), at(a.half_positions_TD, t), a.d, 1.0f, Store::kAdd, y);
  }
}

// The sums over 128-bit blocks of the first, second, ... lanes.
template <class Tag>
HWY_INLINE Four AddBlocks(Tag d, hn::Vec<Tag> v) {
  if constexpr (hn::MaxLanes(Tag()) == 4) {
    (void)d;
    return v;
  } else {
    const hn::Half<Tag> half;
    return AddBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The sums of all lanes of four vectors.
HWY_INLINE Four AddUp(V a, V b, V c, V e) {
  const D d;
  const V even = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
  const V odd = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
  return AddBlocks(d, hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd)));
}

constexpr size_t kRows = 8;
constexpr size_t kAhead = 4 * kRows;

// The products of kRows rows, beginning at `w` and `distance` elements apart, in kRows / 4 vectors.
HWY_INLINE void MultiplyRows(const Half* w, size_t distance, const float* x_K, size_t size, Four* products) {
  const D d;
  // Later rows are prefetched: beyond the second-level cache, the processor's own prefetching leaves a fifth of the
  // time waiting (100,000 x 64, Sapphire Rapids, November 2026).
  const auto ahead = reinterpret_cast<uintptr_t>(w) + kAhead * distance * sizeof(Half);
  for (size_t i = 0; i < kRows * distance * sizeof(Half); i += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + i));
  V sums[kRows];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  size_t k = 0;
  for (; k + kLanes <= size; k += kLanes) {
    const V x = hn::LoadU(d, x_K + k);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(Widen(w + r * distance + k), x, sums[r]);
  }
  if (HWY_UNLIKELY(k < size)) {
    HWY_ALIGN Half ends[kRows * kLanes] = {};
    for (size_t r = 0; r < kRows; ++r) std::memcpy(ends + r * kLanes, w + r * distance + k, (size - k) * sizeof(Half));
    const V x = LoadPartial(d, x_K + k, size - k);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(Widen(ends + r * kLanes), x, sums[r]);
  }
#pragma GCC unroll 2
  for (size_t i = 0; i < kRows / 4; ++i)
    products[i] = AddUp(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
}

// The last rows are computed together with some earlier ones, which are computed twice, with the same bits. Fewer than
// kRows rows in all are computed one at a time: with a distance of 0, one row is read kRows times.
void MultiplyHalf(const MultiplyHalfArgs& a) {
  const DFour four;
  const bool few = a.n < kRows;
  for (size_t j = 0; j < a.n; j += few ? 1 : kRows) {
    const size_t first = few ? j : std::min(j, a.n - kRows);
    Four products[kRows / 4];
    MultiplyRows(a.w_NK + first * a.ldw, few ? 0 : a.ldw, a.x_K, a.k, products);
    if (few) {
      a.y_N[j] = hn::GetLane(products[0]) + (a.bias_N != nullptr ? a.bias_N[j] : 0.0f);
      continue;
    }
#pragma GCC unroll 2
    for (size_t i = 0; i < kRows / 4; ++i) {
      const Four bias = a.bias_N != nullptr ? hn::LoadU(four, a.bias_N + first + 4 * i) : hn::Zero(four);
      hn::StoreU(hn::Add(products[i], bias), four, a.y_N + first + 4 * i);
    }
  }
}

}  // namespace

void FillHalf(OpTable& table) {
  table.scale_half = ScaleHalf;
  table.multiply_half = MultiplyHalf;
  table.embed_half = EmbedHalf;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillHalf)
}  // namespace wisp::kernels
#endif
