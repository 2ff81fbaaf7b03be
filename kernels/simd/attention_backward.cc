// Fused attention backward, for SIMD tables (attention-inl.h). It sums over the queries of kSteps steps together,
// because a tile with few terms mostly loads and stores.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/attention_backward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/attention-inl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using namespace attention;  // the common parts of both passes

HWY_INLINE float DotRow(const float* x, const float* y, size_t n) {
  const D d;
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
  if (i < n) sum = hn::MulAdd(LoadPartial(d, x + i, n - i), LoadPartial(d, y + i, n - i), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// dp = p (dp - delta) scale
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

// Sets dp = delta where a corrected logit is at its lower limit, so that its dS is 0.
void StopHeldGradient(const float* logits, float* dp, size_t keys, float delta) {
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
    if (a.key_variance != nullptr) StopHeldGradient(row, drow, keys, delta);
    if (a.slope_H != nullptr) AddDistanceBias(head, step.i + r, keys, row);
    Exponentials(row, begin, end, keys, a.scale, a.lse_HQ[head.h * a.num_queries + step.i + r]);
    SoftmaxGradientRow(row, drow, keys, delta, a.scale);
    if (keep != nullptr) ApplyKeepRow(row, keep, keys, a.keep_scale);
  }
}

// dq -= scale (dS variance) o q: the correction's part of the gradient.
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

// dP = dout v^T;  dS = P (keep dP - <dout, out>) scale;  dq = dS k. Leaves (P keep) in p and dS in dp.
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

// dv (=|+=) (P keep)^T dout;  dk (=|+=) dS^T q, for the steps [first, end). Keys that only the later steps may attend
// to use only those steps.
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

// The last block of a head comes first. Its queries may attend to all keys, so it assigns what the other blocks add to.
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

// Call it after FillGemm and FillElementwise, whose entries it uses.
void FillAttentionBackward(OpTable& table) {
  products = table;
  table.attention_backward = ForTraining(Backward);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillAttentionBackward)
}  // namespace wisp::kernels
#endif
