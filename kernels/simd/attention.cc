// Fused attention for SIMD tables: blocks of queries against the keys they may attend, by the products of the same
// table.
//
// Per head, keys (and in backward values) are packed once; a block of kBlock queries has its logits in scratch, small
// enough for the first-level cache, and nothing right of the causal edge of the block is computed.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/exp-inl.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kBlock = 28;  // queries: two register tiles; more would compute more beyond the causal edge

// The products of this instruction set; set once, when its table is filled, before any call.
OpTable products;

size_t RoundUp(size_t n) { return (n + 15) / 16 * 16; }

// Packed keys, packed values, packed variances of keys; two blocks of logits; one of squared queries.
size_t ScratchSize(size_t, size_t num_keys, size_t head_width) {
  return 3 * RoundUp(products.packed_size(num_keys, head_width)) + 2 * kBlock * num_keys + kBlock * head_width;
}

struct Scratch {
  Scratch(float* scratch, size_t num_keys, size_t head_width) {
    const size_t packed = RoundUp(products.packed_size(num_keys, head_width));
    packed_k = scratch;
    packed_v = packed_k + packed;
    packed_variance = packed_v + packed;
    p = packed_variance + packed;
    dp = p + kBlock * num_keys;
    squares = dp + kBlock * num_keys;
  }
  float *packed_k, *packed_v, *packed_variance, *p, *dp, *squares;
};

template <class Args>
struct Head {
  const Args& a;
  size_t h;
  const float* q() const { return a.q + h * a.head_width; }
  const float* k() const { return a.k + kv_column(); }
  const float* v() const { return a.v + kv_column(); }
  // Where the head that it reads begins in a row of keys, values or their variances.
  size_t kv_column() const { return KeyHead(a, h) * a.head_width; }
  // Whether the heads before it read another head of keys and values.
  bool first_of_group() const { return h == 0 || KeyHead(a, h) != KeyHead(a, h - 1); }
  const uint8_t* keep(size_t query) const {
    return a.keep_HQT == nullptr ? nullptr : a.keep_HQT + (h * a.num_queries + query) * a.num_keys;
  }
  // One past the last key that `query` may attend.
  size_t end(size_t query) const {
    return a.mask == AttentionMask::kCausal ? a.num_keys - a.num_queries + query + 1 : a.num_keys;
  }
};

// out [rows, keys] = rows of `x` times packed^T.
template <class Args>
void MultiplyPacked(const Args& a, const float* x, size_t ldx, const float* packed, size_t rows, size_t keys,
                    float* out) {
  products.linear_forward({.x_RK = x,
                           .ldx = ldx,
                           .packed = packed,
                           .bias_N = nullptr,
                           .y_RN = out,
                           .ldy = keys,
                           .rows = rows,
                           .n = keys,
                           .k = a.head_width,
                           .store = Store::kAssign});
}

void PackHead(const float* w, size_t ldw, size_t keys, size_t width, float* packed) {
  products.pack_weights({.w_NK = w, .ldw = ldw, .packed = packed, .n = keys, .k = width});
}

template <class Args>
void PackVariance(const Head<Args>& head, const Scratch& s) {
  const Args& a = head.a;
  if (a.key_variance == nullptr) return;
  PackHead(a.key_variance + head.kv_column(), a.ldvariance, a.num_keys, a.head_width, s.packed_variance);
}

// p -= scale / 2 * (q o q) variance^T: the correction of Re-Attention, to logits that are yet to be scaled.
template <class Args>
void Correct(const Head<Args>& head, size_t i, size_t rows, size_t keys, const Scratch& s) {
  const Args& a = head.a;
  const D d;
  const V factor = hn::Set(d, -0.5f * a.scale);
  for (size_t r = 0; r < rows; ++r) {
    const float* q = head.q() + (i + r) * a.ldq;
    float* square = s.squares + r * a.head_width;
    ForEachVector(a.head_width, [&](size_t c, size_t count) {
      const V x = LoadSome(d, q + c, count);
      StoreSome(hn::Mul(hn::Mul(x, x), factor), d, square + c, count);
    });
  }
  products.linear_forward({.x_RK = s.squares,
                           .ldx = a.head_width,
                           .packed = s.packed_variance,
                           .bias_N = nullptr,
                           .y_RN = s.p,
                           .ldy = keys,
                           .rows = rows,
                           .n = keys,
                           .k = a.head_width,
                           .store = Store::kAdd});
  const V lowest = hn::Set(d, kLowestCorrectedLogit);
  ForEachVector(rows * keys, [&](size_t j, size_t count) {
    StoreSome(hn::Max(LoadSome(d, s.p + j, count), lowest), d, s.p + j, count);
  });
}

// row -= slope / scale * |position - j|: the linear bias of ALiBi, to logits that are yet to be scaled.
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

// The block's logits before scaling, without the bias by distance.
template <class Args>
void Logits(const Head<Args>& head, size_t i, size_t rows, size_t keys, const Scratch& s) {
  MultiplyPacked(head.a, head.q() + i * head.a.ldq, head.a.ldq, s.packed_k, rows, keys, s.p);
  if (head.a.key_variance != nullptr) Correct(head, i, rows, keys, s);
}

// In place over row[0, keys): exp(scale * row - shift) inside [first, end), 0 outside. Returns the sum.
HWY_INLINE float Exponentials(float* row, size_t first, size_t end, size_t keys, float scale, float shift) {
  const D d;
  const V scale_v = hn::Set(d, scale), shift_v = hn::Set(d, shift);
  std::fill(row, row + first, 0.0f);
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
  std::fill(row + end, row + keys, 0.0f);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_INLINE float RowMax(const float* row, size_t first, size_t end) {
  const D d;
  V largest = hn::Set(d, row[first]);
  size_t j = first;
  for (; j + kLanes <= end; j += kLanes) largest = hn::Max(largest, hn::LoadU(d, row + j));
  float max = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; j < end; ++j) max = std::max(max, row[j]);
  return max;
}

HWY_INLINE void ApplyKeepRow(float* row, const uint8_t* keep, size_t keys, float scale) {
  products.apply_keep({.x = row, .keep = keep, .y = row, .n = keys, .scale = scale});
}

using ForwardHead = Head<AttentionForwardArgs<>>;

// Turns a block's logits into unnormalised probabilities; inverse[r] is what normalises row r.
void SoftmaxBlock(const ForwardHead& head, size_t i, size_t rows, size_t keys, float* p, float* inverse) {
  const auto& a = head.a;
  for (size_t r = 0; r < rows; ++r) {
    float* row = p + r * keys;
    const size_t end = head.end(i + r);
    float& lse = a.lse_HQ[head.h * a.num_queries + i + r];
    lse = inverse[r] = 0;
    if (end <= a.first_key) {
      std::fill(row, row + keys, 0.0f);
      continue;
    }
    if (a.slope_H != nullptr) AddDistanceBias(head, i + r, keys, row);
    // A negative scale would turn the largest into the smallest: the maximum is of scaled logits.
    const float largest = a.scale * RowMax(row, a.first_key, end);
    const float sum = Exponentials(row, a.first_key, end, keys, a.scale, largest);
    lse = largest + std::log(sum);
    inverse[r] = 1.0f / sum;
    if (a.keep_HQT != nullptr) ApplyKeepRow(row, head.keep(i + r), keys, a.keep_scale);
  }
}

// out [rows, width] = diag(inverse) p w, for unnormalised probabilities p.
void MixBlock(const float* p, size_t keys, const float* w, size_t ldw, const float* inverse, float* out, size_t ldout,
              size_t rows, size_t width) {
  products.linear_backward_input({.dy_RN = p,
                                  .lddy = keys,
                                  .w_NK = w,
                                  .ldw = ldw,
                                  .dx_RK = out,
                                  .lddx = ldout,
                                  .rows = rows,
                                  .n = keys,
                                  .k = width,
                                  .store = Store::kAssign});
  for (size_t r = 0; r < rows; ++r) {
    float* row = out + r * ldout;
    products.scale({.x = row, .y = row, .n = width, .a = inverse[r], .store = Store::kAssign});
  }
}

// The same for the variance: probabilities and what normalises them are squared, in place.
void MixVarianceBlock(const ForwardHead& head, size_t i, size_t rows, size_t keys, float* p, float* inverse) {
  const auto& a = head.a;
  const D d;
  ForEachVector(rows * keys, [&](size_t j, size_t count) {
    const V x = LoadSome(d, p + j, count);
    StoreSome(hn::Mul(x, x), d, p + j, count);
  });
  for (size_t r = 0; r < rows; ++r) inverse[r] *= inverse[r];
  MixBlock(p, keys, a.value_variance + head.kv_column(), a.ldvariance, inverse,
           a.out_variance + i * a.ldout_variance + head.h * a.head_width, a.ldout_variance, rows, a.head_width);
}

void Forward(const AttentionForwardArgs<>& a) {
  const size_t width = a.head_width;
  const Scratch s(a.scratch, a.num_keys, width);
  for (size_t h = 0; h < a.heads; ++h) {
    const ForwardHead head{a, h};
    if (head.first_of_group()) {
      PackHead(head.k(), a.ldkv, a.num_keys, width, s.packed_k);
      PackVariance(head, s);
    }
    for (size_t i = 0; i < a.num_queries; i += kBlock) {
      const size_t rows = std::min(kBlock, a.num_queries - i);
      const size_t keys = head.end(i + rows - 1);
      float inverse[kBlock];
      Logits(head, i, rows, keys, s);
      SoftmaxBlock(head, i, rows, keys, s.p, inverse);
      MixBlock(s.p, keys, head.v(), a.ldkv, inverse, a.out + i * a.ldout + h * width, a.ldout, rows, width);
      if (a.value_variance != nullptr) MixVarianceBlock(head, i, rows, keys, s.p, inverse);
    }
  }
}

HWY_INLINE float DotRow(const float* x, const float* y, size_t n) {
  const D d;
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
  if (i < n) sum = hn::MulAdd(LoadPartial(d, x + i, n - i), LoadPartial(d, y + i, n - i), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// dp <- p (dp - delta) scale
HWY_INLINE void SoftmaxGradientRow(const float* p, float* dp, size_t keys, float delta, float scale) {
  const D d;
  const V delta_v = hn::Set(d, delta), scale_v = hn::Set(d, scale);
  size_t j = 0;
  for (; j + kLanes <= keys; j += kLanes) {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, p + j), scale_v), hn::Sub(hn::LoadU(d, dp + j), delta_v)), d, dp + j);
  }
  if (j == keys) return;
  const size_t left = keys - j;
  StorePartial(hn::Mul(hn::Mul(LoadPartial(d, p + j, left), scale_v), hn::Sub(LoadPartial(d, dp + j, left), delta_v)),
               d, dp + j, left);
}

// Where a corrected logit is held at its lowest, dp <- delta: its dS is 0.
void StopGradientOfHeld(const float* logits, float* dp, size_t keys, float delta) {
  const D d;
  const V lowest = hn::Set(d, kLowestCorrectedLogit), delta_v = hn::Set(d, delta);
  ForEachVector(keys, [&](size_t j, size_t count) {
    const auto held = hn::Le(LoadSome(d, logits + j, count), lowest);
    StoreSome(hn::IfThenElse(held, delta_v, LoadSome(d, dp + j, count)), d, dp + j, count);
  });
}

void ZeroRows(float* x, size_t ld, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) std::fill(x + r * ld, x + r * ld + n, 0.0f);
}

void AddTransposed(const float* dy, const float* x, size_t ldx, float* out, size_t ldout, size_t rows, size_t keys,
                   size_t width) {
  products.linear_backward_weight({.dy_RN = dy,
                                   .lddy = keys,
                                   .x_RK = x,
                                   .ldx = ldx,
                                   .dw_NK = out,
                                   .lddw = ldout,
                                   .rows = rows,
                                   .n = keys,
                                   .k = width,
                                   .scale = 1.0f,
                                   .store = Store::kAdd});
}

// Turns a block's logits and dP into (P keep) and dS, row by row.
template <class Args>
void SoftmaxBackwardBlock(const Head<Args>& head, size_t i, size_t rows, size_t keys, float* p, float* dp) {
  const auto& a = head.a;
  for (size_t r = 0; r < rows; ++r) {
    float* row = p + r * keys;
    const size_t end = head.end(i + r);
    if (end <= a.first_key) {
      std::fill(row, row + keys, 0.0f);
      std::fill(dp + r * keys, dp + (r + 1) * keys, 0.0f);
      continue;
    }
    const size_t at = (i + r) * a.ldout + head.h * a.head_width;
    const float delta = DotRow(a.dout + at, a.out + at, a.head_width);
    const uint8_t* keep = head.keep(i + r);
    if (keep != nullptr) ApplyKeepRow(dp + r * keys, keep, keys, a.keep_scale);
    if (a.key_variance != nullptr) StopGradientOfHeld(row, dp + r * keys, keys, delta);
    if (a.slope_H != nullptr) AddDistanceBias(head, i + r, keys, row);
    Exponentials(row, a.first_key, end, keys, a.scale, a.lse_HQ[head.h * a.num_queries + i + r]);
    SoftmaxGradientRow(row, dp + r * keys, keys, delta, a.scale);
    if (keep != nullptr) ApplyKeepRow(row, keep, keys, a.keep_scale);
  }
}

// dq -= scale (dS variance) o q: the correction's share of the gradient.
void CorrectQueryGradient(const Head<AttentionBackwardArgs<>>& head, size_t i, size_t rows, size_t keys,
                          const Scratch& s) {
  const auto& a = head.a;
  const size_t width = a.head_width;
  products.linear_backward_input({.dy_RN = s.dp,
                                  .lddy = keys,
                                  .w_NK = a.key_variance + head.kv_column(),
                                  .ldw = a.ldvariance,
                                  .dx_RK = s.squares,
                                  .lddx = width,
                                  .rows = rows,
                                  .n = keys,
                                  .k = width,
                                  .store = Store::kAssign});
  const D d;
  const V factor = hn::Set(d, -a.scale);
  for (size_t r = 0; r < rows; ++r) {
    const float* q = head.q() + (i + r) * a.ldq;
    float* dq = a.dq + (i + r) * a.ldq + head.h * width;
    ForEachVector(width, [&](size_t c, size_t count) {
      const V weighted = hn::Mul(LoadSome(d, s.squares + r * width + c, count), factor);
      StoreSome(hn::MulAdd(weighted, LoadSome(d, q + c, count), LoadSome(d, dq + c, count)), d, dq + c, count);
    });
  }
}

// dP = dout v^T;  dv += (P keep)^T dout;  dS = P (keep dP - <dout, out>) scale;  dq = dS k;  dk += dS^T q.
void Backward(const AttentionBackwardArgs<>& a) {
  const size_t width = a.head_width;
  const Scratch s(a.scratch, a.num_keys, width);
  for (size_t h = 0; h < a.heads; ++h) {
    const Head<AttentionBackwardArgs<>> head{a, h};
    float *dk = a.dk + head.kv_column(), *dv = a.dv + head.kv_column();
    if (head.first_of_group()) {
      PackHead(head.k(), a.ldkv, a.num_keys, width, s.packed_k);
      PackHead(head.v(), a.ldkv, a.num_keys, width, s.packed_v);
      PackVariance(head, s);
      ZeroRows(dk, a.ldkv, a.num_keys, width);
      ZeroRows(dv, a.ldkv, a.num_keys, width);
    }
    for (size_t i = 0; i < a.num_queries; i += kBlock) {
      const size_t rows = std::min(kBlock, a.num_queries - i);
      const size_t keys = head.end(i + rows - 1);
      const float* q = head.q() + i * a.ldq;
      const float* dout = a.dout + i * a.ldout + h * width;
      Logits(head, i, rows, keys, s);
      MultiplyPacked(a, dout, a.ldout, s.packed_v, rows, keys, s.dp);
      SoftmaxBackwardBlock(head, i, rows, keys, s.p, s.dp);
      AddTransposed(s.p, dout, a.ldout, dv, a.ldkv, rows, keys, width);
      AddTransposed(s.dp, q, a.ldq, dk, a.ldkv, rows, keys, width);
      products.linear_backward_input({.dy_RN = s.dp,
                                      .lddy = keys,
                                      .w_NK = head.k(),
                                      .ldw = a.ldkv,
                                      .dx_RK = a.dq + i * a.ldq + h * width,
                                      .lddx = a.ldq,
                                      .rows = rows,
                                      .n = keys,
                                      .k = width,
                                      .store = Store::kAssign});
      if (a.key_variance != nullptr) CorrectQueryGradient(head, i, rows, keys, s);
    }
  }
}

}  // namespace

// After FillGemm and FillElementwise, whose entries it uses.
void FillAttention(OpTable& table) {
  products = table;
  table.attention_scratch_size = ScratchSize;
  table.attention_forward = Forward;
  table.attention_backward = ForTraining(Backward);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillAttention)
}  // namespace wisp::kernels
#endif
