// Fused attention forward, for SIMD tables (attention-inl.h).
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/attention-inl.h"
#include "kernels/simd/half-inl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using namespace attention;  // the common parts of both passes

size_t ScratchSize(AttentionPass pass, size_t num_keys, size_t head_width) {
  const size_t packed = RoundUp(products.packed_size(num_keys, head_width));
  const size_t logits = (pass == AttentionPass::kForward ? kStep : 2 * kBlock) * Columns(num_keys);
  return (pass == AttentionPass::kForward ? 2 : 3) * packed + kStep * head_width + logits;
}

// Computes three maxima in parallel, so that they need not wait for each other. Keys [first, end), at least one.
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

using ForwardHead = Head<AttentionForwardArgs<>>;

// Turns a step's logits into unnormalised probabilities; inverse[r] normalises row r. All maxima come first, then all
// sums, then all logarithms, so that the processor need not wait for one row before it begins the next.
void Softmax(const ForwardHead& head, const Step& step, const Rows& p, float* inverse) {
  const auto& a = head.a;
  float largest[kStep], sum[kStep];
  for (size_t r = 0; r < step.rows; ++r) {
    const size_t begin = AttendBegin(a, step.i + r), end = head.end(step.i + r);
    if (a.slope_H != nullptr && end > begin) AddDistanceBias(head, step.i + r, step.keys, p.at(r));
    // With a negative scale the largest logit becomes the smallest, so the maximum is of scaled logits.
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

// Computes the variance of the mixed values: squares the probabilities and their normalisers in place.
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

// Returns a head's values, and puts its packed keys into the scratch: packed or converted there, or in place if kept.
Rows KeysAndValues(const ForwardHead& head, const CachedHeads& all_kept, Scratch& s) {
  const auto& a = head.a;
  const size_t width = a.head_width;
  if (all_kept.data == nullptr) {
    PackHead(head.k(), a.ldkv, a.num_keys, width, s.packed_k);
    return {const_cast<float*>(head.v()), a.ldkv};
  }
  const CachedHeads kept = all_kept.From(KeyHead(a, head.h), width);
  if (kept.type == CacheType::kFloat) {
    s.packed_k = static_cast<float*>(kept.data);
    return {s.packed_k + kept.room * width, width};
  }
  const Half* const keys = static_cast<Half*>(kept.data);
  float* const values = s.packed_variance;  // unused when keys are float16
  WidenToFloats(keys, Columns(a.num_keys) * width, s.packed_k);
  WidenToFloats(keys + kept.room * width, a.num_keys * width, values);
  return {values, width};
}

void Attend(const AttentionForwardArgs<>& a, const CachedHeads& kept) {
  const size_t width = a.head_width;
  Scratch s(a.scratch, a.num_keys, width);
  Rows v{};
  for (size_t h = 0; h < a.heads; ++h) {
    const ForwardHead head{a, h};
    if (head.first_of_group()) {
      v = KeysAndValues(head, kept, s);
      PackVariance(head, s);
    }
    for (size_t index = 0; index < NumSteps(a.num_queries); ++index) {
      const Step step = StepAt(head, index);
      const Rows p{s.p, Columns(step.keys)};
      float inverse[kStep];
      Logits(head, step, s, p);
      Softmax(head, step, p, inverse);
      Mix(step, p, v.data, v.ld, inverse, {a.out + step.i * a.ldout + h * width, a.ldout}, width);
      if (a.value_variance != nullptr) MixVariance(head, step, p, inverse);
    }
  }
}

void Forward(const AttentionForwardArgs<>& a) { Attend(a, {}); }
void AttendCached(const AttendCachedArgs& a) { Attend(a, a.kept); }

}  // namespace

// Call it after FillGemm and FillElementwise, whose entries it uses.
void FillAttention(OpTable& table) {
  products = table;
  table.attention_scratch_size = ScratchSize;
  table.attention_forward = Forward;
  table.attend_cached = AttendCached;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillAttention)
}  // namespace wisp::kernels
#endif
