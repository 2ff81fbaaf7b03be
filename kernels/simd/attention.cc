// Fused attention for SIMD tables: blocks of queries against the keys they may attend, by the same table's products.
//
// Per head, keys (and in backward values) are packed once. kStep queries at a time have their logits in scratch, a
// register tile or two of them: hardly anything right of the causal edge is computed. Backward sums over the queries of
// kSteps steps at once, for a tile of few summands is mostly loading and storing.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/exp-inl.h"
#include "kernels/simd/gemm_tile-inl.h"
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
constexpr size_t kStep = std::max<size_t>(1, 14 / kTileRows) * kTileRows;  // queries
constexpr size_t kSteps = 4;                                               // of a block of backward
constexpr size_t kBlock = kSteps * kStep;

// The products of this instruction set; set once, when its table is filled, before any call.
OpTable products;

size_t RoundUp(size_t n) { return (n + 15) / 16 * 16; }

// Columns of a row of logits: whole panels, so that no product has a ragged edge. Packed keys end in zeros.
size_t Columns(size_t keys) { return (keys + kPanelWidth - 1) / kPanelWidth * kPanelWidth; }

// Packed keys, packed variances of keys, a step's squared queries and logits. For backward a block's logits, as much
// for their gradients, and packed values.
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

size_t ScratchSize(AttentionPass pass, size_t num_keys, size_t head_width) {
  const size_t packed = RoundUp(products.packed_size(num_keys, head_width));
  const size_t logits = (pass == AttentionPass::kForward ? kStep : 2 * kBlock) * Columns(num_keys);
  return (pass == AttentionPass::kForward ? 2 : 3) * packed + kStep * head_width + logits;
}

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

// Up to kStep queries, from i on, against keys [0, keys).
struct Step {
  size_t i, rows, keys;
};

size_t NumSteps(size_t queries) { return (queries + kStep - 1) / kStep; }

// As even as possible: low tiles are slow.
template <class Args>
Step StepAt(const Head<Args>& head, size_t index) {
  const size_t queries = head.a.num_queries, steps = NumSteps(queries);
  const size_t begin = queries * index / steps, end = queries * (index + 1) / steps;
  return {.i = begin, .rows = end - begin, .keys = head.end(end - 1)};
}

// Rows of logits, or of what they become.
struct Rows {
  float* data;
  size_t ld;
  float* at(size_t r) const { return data + r * ld; }
};

// out = the step's rows of `x` times packed^T, zeros behind the last key.
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

// The step's logits before scaling, without the bias by distance.
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

// Three at a time, so that they need not wait for each other. Keys [first, end), at least one.
HWY_INLINE float RowMax(const float* row, size_t first, size_t end) {
  const D d;
  const V lowest = hn::Set(d, row[first]);
  V m0 = lowest, m1 = lowest, m2 = lowest;
  size_t j = first;
  for (; j + 3 * kLanes <= end; j += 3 * kLanes) {
    m0 = hn::Max(m0, hn::LoadU(d, row + j));
    m1 = hn::Max(m1, hn::LoadU(d, row + j + kLanes));
    m2 = hn::Max(m2, hn::LoadU(d, row + j + 2 * kLanes));
  }
  for (; j + kLanes <= end; j += kLanes) m0 = hn::Max(m0, hn::LoadU(d, row + j));
  if (j < end) m1 = hn::Max(m1, hn::IfThenElse(hn::FirstN(d, end - j), LoadPartial(d, row + j, end - j), lowest));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, hn::Max(m1, m2))));
}

HWY_INLINE void ApplyKeepRow(float* row, const uint8_t* keep, size_t keys, float scale) {
  products.apply_keep({.x = row, .keep = keep, .y = row, .n = keys, .scale = scale});
}

using ForwardHead = Head<AttentionForwardArgs<>>;

// Turns a step's logits into unnormalised probabilities; inverse[r] is what normalises row r. First all maxima, then
// all sums, then all logarithms: the processor need not wait for one row's before it begins with the next.
void Softmax(const ForwardHead& head, const Step& step, const Rows& p, float* inverse) {
  const auto& a = head.a;
  float largest[kStep], sum[kStep];
  for (size_t r = 0; r < step.rows; ++r) {
    const size_t begin = AttendBegin(a, step.i + r), end = head.end(step.i + r);
    if (a.slope_H != nullptr && end > begin) AddDistanceBias(head, step.i + r, step.keys, p.at(r));
    // A negative scale would turn the largest into the smallest: the maximum is of scaled logits.
    largest[r] = end > begin ? a.scale * RowMax(p.at(r), begin, end) : 0;
  }
  for (size_t r = 0; r < step.rows; ++r) {
    const size_t begin = AttendBegin(a, step.i + r), end = head.end(step.i + r);
    sum[r] = 0;
    if (end > begin) {
      sum[r] = Exponentials(p.at(r), begin, end, step.keys, a.scale, largest[r]);
      if (a.keep_HQT != nullptr) ApplyKeepRow(p.at(r), head.keep(step.i + r), step.keys, a.keep_scale);
    } else {
      std::fill(p.at(r), p.at(r) + step.keys, 0.0f);
    }
  }
  float* lse = a.lse_HQ + head.h * a.num_queries + step.i;
  for (size_t r = 0; r < step.rows; ++r) {
    lse[r] = sum[r] != 0 ? largest[r] + std::log(sum[r]) : 0;  // NaN stays NaN
    inverse[r] = sum[r] != 0 ? 1.0f / sum[r] : 0;
  }
}

// out [rows, width] = diag(inverse) p w, for unnormalised probabilities p.
void Mix(const Step& step, const Rows& p, const float* w, size_t ldw, const float* inverse, const Rows& out,
         size_t width) {
  products.linear_backward_input({.dy_RN = p.data,
                                  .lddy = p.ld,
                                  .w_NK = w,
                                  .ldw = ldw,
                                  .dx_RK = out.data,
                                  .lddx = out.ld,
                                  .rows = step.rows,
                                  .n = step.keys,
                                  .k = width,
                                  .store = Store::kAssign});
  const D d;
  for (size_t r = 0; r < step.rows; ++r) {
    float* row = out.at(r);
    const V factor = hn::Set(d, inverse[r]);
    ForEachVector(width, [&](size_t c, size_t count) {
      StoreSome(hn::Mul(LoadSome(d, row + c, count), factor), d, row + c, count);
    });
  }
}

// The same for the variance: probabilities and what normalises them are squared, in place.
void MixVariance(const ForwardHead& head, const Step& step, const Rows& p, float* inverse) {
  const auto& a = head.a;
  const D d;
  for (size_t r = 0; r < step.rows; ++r) {
    float* row = p.at(r);
    for (size_t j = 0; j < step.keys; j += kLanes) {
      const V x = hn::LoadU(d, row + j);
      hn::StoreU(hn::Mul(x, x), d, row + j);
    }
    inverse[r] *= inverse[r];
  }
  Mix(step, p, a.value_variance + head.kv_column(), a.ldvariance, inverse,
      {a.out_variance + step.i * a.ldout_variance + head.h * a.head_width, a.ldout_variance}, a.head_width);
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
    for (size_t index = 0; index < NumSteps(a.num_queries); ++index) {
      const Step step = StepAt(head, index);
      const Rows p{s.p, Columns(step.keys)};
      float inverse[kStep];
      Logits(head, step, s, p);
      Softmax(head, step, p, inverse);
      Mix(step, p, head.v(), a.ldkv, inverse, {a.out + step.i * a.ldout + h * width, a.ldout}, width);
      if (a.value_variance != nullptr) MixVariance(head, step, p, inverse);
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

// out [keys, width] (=|+=) dy^T x, over `rows` rows and the keys from `first_key` on.
void AddTransposed(const Rows& dy, const float* x, size_t ldx, const Rows& out, size_t rows, size_t first_key,
                   size_t keys, size_t width, Store store) {
  products.linear_backward_weight({.dy_RN = dy.data + first_key,
                                   .lddy = dy.ld,
                                   .x_RK = x,
                                   .ldx = ldx,
                                   .dw_NK = out.at(first_key),
                                   .lddw = out.ld,
                                   .rows = rows,
                                   .n = keys,
                                   .k = width,
                                   .scale = 1.0f,
                                   .store = store});
}

using BackwardHead = Head<AttentionBackwardArgs<>>;

// Turns a step's logits and dP into (P keep) and dS, row by row.
void SoftmaxBackward(const BackwardHead& head, const Step& step, const Rows& p, const Rows& dp) {
  const auto& a = head.a;
  for (size_t r = 0; r < step.rows; ++r) {
    float *row = p.at(r), *drow = dp.at(r);
    const size_t begin = AttendBegin(a, step.i + r), end = head.end(step.i + r), keys = step.keys;
    if (end <= begin) {
      std::fill(row, row + keys, 0.0f);
      std::fill(drow, drow + keys, 0.0f);
      continue;
    }
    const size_t at = (step.i + r) * a.ldout + head.h * a.head_width;
    const float delta = DotRow(a.dout + at, a.out + at, a.head_width);
    const uint8_t* keep = head.keep(step.i + r);
    if (keep != nullptr) ApplyKeepRow(drow, keep, keys, a.keep_scale);
    if (a.key_variance != nullptr) StopGradientOfHeld(row, drow, keys, delta);
    if (a.slope_H != nullptr) AddDistanceBias(head, step.i + r, keys, row);
    Exponentials(row, begin, end, keys, a.scale, a.lse_HQ[head.h * a.num_queries + step.i + r]);
    SoftmaxGradientRow(row, drow, keys, delta, a.scale);
    if (keep != nullptr) ApplyKeepRow(row, keep, keys, a.keep_scale);
  }
}

// dq -= scale (dS variance) o q: the correction's share of the gradient.
void CorrectQueryGradient(const BackwardHead& head, const Step& step, const Scratch& s, const Rows& ds) {
  const auto& a = head.a;
  const size_t width = a.head_width;
  products.linear_backward_input({.dy_RN = ds.data,
                                  .lddy = ds.ld,
                                  .w_NK = a.key_variance + head.kv_column(),
                                  .ldw = a.ldvariance,
                                  .dx_RK = s.squares,
                                  .lddx = width,
                                  .rows = step.rows,
                                  .n = step.keys,
                                  .k = width,
                                  .store = Store::kAssign});
  const D d;
  const V factor = hn::Set(d, -a.scale);
  for (size_t r = 0; r < step.rows; ++r) {
    const float* q = head.q() + (step.i + r) * a.ldq;
    float* dq = a.dq + (step.i + r) * a.ldq + head.h * width;
    ForEachVector(width, [&](size_t c, size_t count) {
      const V weighted = hn::Mul(LoadSome(d, s.squares + r * width + c, count), factor);
      StoreSome(hn::MulAdd(weighted, LoadSome(d, q + c, count), LoadSome(d, dq + c, count)), d, dq + c, count);
    });
  }
}

// dP = dout v^T;  dS = P (keep dP - <dout, out>) scale;  dq = dS k. Leaves (P keep) and dS in p and dp.
void QueryGradient(const BackwardHead& head, const Step& step, const Scratch& s, const Rows& p, const Rows& dp) {
  const auto& a = head.a;
  const size_t width = a.head_width;
  Logits(head, step, s, p);
  MultiplyPacked(a, a.dout + step.i * a.ldout + head.h * width, a.ldout, s.packed_v, step, dp);
  SoftmaxBackward(head, step, p, dp);
  products.linear_backward_input({.dy_RN = dp.data,
                                  .lddy = dp.ld,
                                  .w_NK = head.k(),
                                  .ldw = a.ldkv,
                                  .dx_RK = a.dq + step.i * a.ldq + head.h * width,
                                  .lddx = a.ldq,
                                  .rows = step.rows,
                                  .n = step.keys,
                                  .k = width,
                                  .store = Store::kAssign});
  if (a.key_variance != nullptr) CorrectQueryGradient(head, step, s, dp);
}

// dv (=|+=) (P keep)^T dout;  dk (=|+=) dS^T q, for the steps [first, end). Keys that only the later of them may attend
// take these alone.
void KeyAndValueGradients(const BackwardHead& head, size_t first, size_t end, const Rows& p, const Rows& ds,
                          Store store) {
  const auto& a = head.a;
  const size_t width = a.head_width, begin = StepAt(head, first).i;
  const Step last = StepAt(head, end - 1);
  const Rows dk{a.dk + head.kv_column(), a.ldkv}, dv{a.dv + head.kv_column(), a.ldkv};
  size_t done = 0;
  for (size_t index = first; index < end; ++index) {
    const Step step = StepAt(head, index);
    const size_t at = step.i - begin, rows = last.i + last.rows - step.i, keys = step.keys - done;
    const float* dout = a.dout + step.i * a.ldout + head.h * width;
    AddTransposed({p.at(at), p.ld}, dout, a.ldout, dv, rows, done, keys, width, store);
    AddTransposed({ds.at(at), ds.ld}, head.q() + step.i * a.ldq, a.ldq, dk, rows, done, keys, width, store);
    done += keys;
  }
}

void ZeroKeyAndValueGradients(const AttentionBackwardArgs<>& a) {
  for (size_t h = 0; h < a.heads; ++h) {
    const size_t column = BackwardHead{a, h}.kv_column();
    for (size_t t = 0; t < a.num_keys; ++t) {
      std::fill_n(a.dk + t * a.ldkv + column, a.head_width, 0.0f);
      std::fill_n(a.dv + t * a.ldkv + column, a.head_width, 0.0f);
    }
  }
}

// The last block of a head comes first: its queries may attend all keys, so it assigns what the others add to.
void Backward(const AttentionBackwardArgs<>& a) {
  const size_t width = a.head_width, steps = NumSteps(a.num_queries);
  if (steps == 0) return ZeroKeyAndValueGradients(a);
  const Scratch s(a.scratch, a.num_keys, width);
  for (size_t h = 0; h < a.heads; ++h) {
    const BackwardHead head{a, h};
    Store store = Store::kAdd;
    if (head.first_of_group()) {
      PackHead(head.k(), a.ldkv, a.num_keys, width, s.packed_k);
      PackHead(head.v(), a.ldkv, a.num_keys, width, s.packed_v);
      PackVariance(head, s);
      store = Store::kAssign;
    }
    for (size_t end = steps; end > 0;) {
      const size_t first = (end - 1) / kSteps * kSteps, begin = StepAt(head, first).i;
      const size_t columns = Columns(StepAt(head, end - 1).keys);
      const Rows p{s.p, columns}, dp{s.dp, columns};
      for (size_t index = first; index < end; ++index) {
        const Step step = StepAt(head, index);
        QueryGradient(head, step, s, {p.at(step.i - begin), columns}, {dp.at(step.i - begin), columns});
      }
      KeyAndValueGradients(head, first, end, p, dp, store);
      store = Store::kAdd;
      end = first;
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
