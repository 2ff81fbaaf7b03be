// The common parts of both passes of fused attention, for SIMD tables. Blocks of queries meet the keys that they may
// attend to, by the same table's products.
//
// For each head, keys (and values in backward) are packed once, unless they are stored packed. The logits of kStep
// queries at a time are in scratch, one or two register tiles of them, so that little is computed beyond the causal
// edge.
#if defined(WISP_KERNELS_SIMD_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WISP_KERNELS_SIMD_ATTENTION_INL_H_
#undef WISP_KERNELS_SIMD_ATTENTION_INL_H_
#else
#define WISP_KERNELS_SIMD_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/simd/exp-inl.h"
#include "kernels/simd/gemm_tile-inl.h"
#include "kernels/simd/partial-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE::attention {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr size_t kLanes = HWY_LANES(float);
inline constexpr size_t kStep = std::max<size_t>(1, 14 / kTileRows) * kTileRows;  // queries in a step
inline constexpr size_t kSteps = 4;                                               // steps in a block of backward
inline constexpr size_t kBlock = kSteps * kStep;

// The products of this instruction set. They are set once, when its table is filled, before any call.
inline OpTable products;

inline size_t RoundUp(size_t n) { return (n + 15) / 16 * 16; }

// Columns of a row of logits: whole panels, so that no product has a ragged edge. Packed keys are filled up with zeros.
inline size_t Columns(size_t keys) { return (keys + kPanelWidth - 1) / kPanelWidth * kPanelWidth; }

// Packed keys, packed variances of keys, a step's squared queries and logits. Backward also needs a block's logits and
// their gradients, and packed values.
struct Scratch {
  Scratch(float* scratch, size_t num_keys, size_t head_width) {
    const size_t packed = RoundUp(products.packed_size(num_keys, head_width));
    packed_k = scratch;
    packed_variance = packed_k + packed;
    squares = packed_variance + packed;
    p = squares + kStep * head_width;
    dp = p + kBlock * Columns(num_keys);
    packed_v = dp + kBlock * Columns(num_keys);
  }
  float *packed_k, *packed_variance, *squares, *p, *dp, *packed_v;
};

template <class Args>
struct Head {
  const Args& a;
  size_t h;
  const float* q() const { return a.q + h * a.head_width; }
  const float* k() const { return a.k + kv_column(); }
  const float* v() const { return a.v + kv_column(); }
  // The column of the head's key or value in a row of keys, values or their variances.
  size_t kv_column() const { return KeyHead(a, h) * a.head_width; }
  // True if the previous head reads another key head.
  bool first_of_group() const { return h == 0 || KeyHead(a, h) != KeyHead(a, h - 1); }
  const uint8_t* keep(size_t query) const {
    return a.keep_HQT == nullptr ? nullptr : a.keep_HQT + (h * a.num_queries + query) * a.num_keys;
  }
  // One past the last key that `query` may attend to.
  size_t end(size_t query) const {
    return a.mask == AttentionMask::kCausal ? a.num_keys - a.num_queries + query + 1 : a.num_keys;
  }
};

// A step: up to kStep queries, beginning at i, against keys [0, keys).
struct Step {
  size_t i, rows, keys;
};

inline size_t NumSteps(size_t queries) { return (queries + kStep - 1) / kStep; }

// Steps have sizes as equal as possible, because low tiles are slow.
template <class Args>
Step StepAt(const Head<Args>& head, size_t index) {
  const size_t queries = head.a.num_queries, steps = NumSteps(queries);
  const size_t begin = queries * index / steps, end = queries * (index + 1) / steps;
  return {.i = begin, .rows = end - begin, .keys = head.end(end - 1)};
}

// Rows of logits, or of the probabilities and gradients that replace them.
struct Rows {
  float* data;
  size_t ld;
  float* at(size_t r) const { return data + r * ld; }
};

// out = the step's rows of `x` times packed^T, with zeros after the last key.
template <class Args>
void MultiplyPacked(const Args& a, const float* x, size_t ldx, const float* packed, const Step& step, const Rows& out,
                    Store store = Store::kAssign) {
  products.linear_forward({.x_RK = x,
                           .ldx = ldx,
                           .packed = packed,
                           .bias_N = nullptr,
                           .y_RN = out.data,
                           .ldy = out.ld,
                           .rows = step.rows,
                           .n = Columns(step.keys),
                           .k = a.head_width,
                           .store = store});
}

inline void PackHead(const float* w, size_t ldw, size_t keys, size_t width, float* packed) {
  products.pack_weights({.w_NK = w, .ldw = ldw, .packed = packed, .n = keys, .k = width});
}

template <class Args>
void PackVariance(const Head<Args>& head, const Scratch& s) {
  const Args& a = head.a;
  if (a.key_variance == nullptr) return;
  PackHead(a.key_variance + head.kv_column(), a.ldvariance, a.num_keys, a.head_width, s.packed_variance);
}

// p -= scale / 2 * (q o q) variance^T: Re-Attention's correction of logits that are not scaled yet.
template <class Args>
void Correct(const Head<Args>& head, const Step& step, const Scratch& s, const Rows& p) {
  const Args& a = head.a;
  const D d;
  const V factor = hn::Set(d, -0.5f * a.scale), lowest = hn::Set(d, kLowestCorrectedLogit);
  for (size_t r = 0; r < step.rows; ++r) {
    const float* q = head.q() + (step.i + r) * a.ldq;
    float* square = s.squares + r * a.head_width;
    ForEachVector(a.head_width, [&](size_t c, size_t count) {
      const V x = LoadSome(d, q + c, count);
      StoreSome(hn::Mul(hn::Mul(x, x), factor), d, square + c, count);
    });
  }
  MultiplyPacked(a, s.squares, a.head_width, s.packed_variance, step, p, Store::kAdd);
  for (size_t r = 0; r < step.rows; ++r) {
    for (float *at = p.at(r), *end = at + step.keys; at < end; at += kLanes) {
      const V x = hn::LoadU(d, at);
      hn::StoreU(hn::IfThenElse(hn::Lt(x, lowest), lowest, x), d, at);  // not Max, which may hide a NaN
    }
  }
}

// row -= slope / scale * |position - j|: ALiBi's linear bias for logits that are not scaled yet.
template <class Args>
void AddDistanceBias(const Head<Args>& head, size_t query, size_t keys, float* row) {
  const Args& a = head.a;
  const D d;
  const V factor = hn::Set(d, a.slope_H[head.h] / a.scale),
          position = hn::Set(d, static_cast<float>(a.num_keys - a.num_queries + query));
  ForEachVector(keys, [&](size_t j, size_t count) {
    const V distance = hn::Abs(hn::Sub(position, hn::Iota(d, static_cast<float>(j))));
    StoreSome(hn::NegMulAdd(factor, distance, LoadSome(d, row + j, count)), d, row + j, count);
  });
}

// The step's logits before scaling and without the bias by distance.
template <class Args>
void Logits(const Head<Args>& head, const Step& step, const Scratch& s, const Rows& p) {
  MultiplyPacked(head.a, head.q() + step.i * head.a.ldq, head.a.ldq, s.packed_k, step, p);
  if (head.a.key_variance != nullptr) Correct(head, step, s, p);
}

// In place over row[0, keys): exp(scale * row - shift) inside [first, end), 0 outside. Returns the sum.
HWY_INLINE float Exponentials(float* row, size_t first, size_t end, size_t keys, float scale, float shift) {
  const D d;
  const V scale_v = hn::Set(d, scale), shift_v = hn::Set(d, shift);
  if (first > 0) std::fill(row, row + first, 0.0f);
  V sum = hn::Zero(d);
  size_t j = first;
  for (; j + kLanes <= end; j += kLanes) {
    const V p = ExpNonPositive(d, hn::MulSub(scale_v, hn::LoadU(d, row + j), shift_v));
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, row + j);
  }
  if (j < end) {
    V p = ExpNonPositive(d, hn::MulSub(scale_v, LoadPartial(d, row + j, end - j), shift_v));
    p = hn::IfThenElseZero(hn::FirstN(d, end - j), p);
    sum = hn::Add(sum, p);
    StorePartial(p, d, row + j, end - j);
  }
  for (size_t k = end; k < keys; k += kLanes) StoreSome(hn::Zero(d), d, row + k, keys - k);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_INLINE void ApplyKeepRow(float* row, const uint8_t* keep, size_t keys, float scale) {
  products.apply_keep({.x = row, .keep = keep, .y = row, .n = keys, .scale = scale});
}

}  // namespace wisp::kernels::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif  // WISP_KERNELS_SIMD_ATTENTION_INL_H_
