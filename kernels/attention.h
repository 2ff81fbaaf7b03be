// Arguments of attention and of the rotations of its queries and keys.
//
// A part of the op table's contract. kernels/kernels.h includes this file and states what holds for all ops.
#ifndef WISP_KERNELS_ATTENTION_H_
#define WISP_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/records.h"

namespace wisp::kernels {

// If a table takes several records in one call (OpTable::takes_records), record b has rows [begin(b), begin(b) +
// size(b)) of every buffer with rows. `records` without begin_B means one record, which the other fields describe.

enum class AttentionMask { kCausal, kFull };
enum class AttentionPass { kForward, kBackward };
enum class RotaryPairs { kHalves, kInterleaved };
enum class Rotation { kForward, kInverse };

// ---- Rotary positions. ----------------------------------------------------------------------------------------------
// Rotates in place rows of [heads, head_width] whose starts are ldx apart. The first `rotated` entries of each head
// (even, at most head_width) are rotated in pairs; the others stay. Pair p is (p, p + rotated / 2) with kHalves and
// (2p, 2p + 1) with kInterleaved. Let c and s be the cosine and sine of its angle. Then (a, b) becomes (a c - b s, a s
// + b c). With kInverse it becomes (a c + b s, b c - a s), which undoes the rotation and takes a gradient back. c and s
// of row r are cos_TP[(first_position + r) * rotated / 2 + p] and likewise sin_TP. The caller makes the tables; they
// begin with position 0.
// With several records, row r of each stands at position first_position + r, and `rows` is ignored.
// Max error 3 * 2^-24 * (|a c| + |b s|), for the second entry with |a s| + |b c|. A rotation keeps lengths to the same
// accuracy.
template <class T = float>
struct RotaryArgs {
  T* x_RD;
  size_t ldx;
  const T* cos_TP;
  const T* sin_TP;
  size_t rows, heads, head_width, rotated, first_position;
  RotaryPairs pairs;
  Rotation rotation;
  Segments records = {};
};

// ---- Keys and values that later queries read. -----------------------------------------------------------------------
// A table may keep them in its own order (OpTable::cached_panel), so that attention need not pack all keys again for
// each new query. Each head has space for `room` positions, a multiple of cached_panel: first its keys in panels, then
// its values by rows. They are float32 or float16 (rounded to nearest; infinite from 65520 on). Heads lie one after
// another.
enum class CacheType : uint8_t { kFloat, kHalf };

constexpr size_t CacheElementBytes(CacheType type) { return type == CacheType::kHalf ? sizeof(Half) : sizeof(float); }

struct CachedHeads {
  void* data = nullptr;  // of the first head, aligned as a vector; null: nothing is kept
  size_t room = 0;
  CacheType type = CacheType::kFloat;
  // The keys and values from head `head` on.
  CachedHeads From(size_t head, size_t head_width) const {
    return {.data = static_cast<char*>(data) + head * 2 * room * head_width * CacheElementBytes(type),
            .room = room,
            .type = type};
  }
};

// Stores `rows` rows of keys and values, the first one at `position`. Writes nothing else, so threads may store
// different rows at the same time. The row stride is ldkv; heads are as in k and v of attention.
struct KeepKeysArgs {
  const float* k;
  const float* v;
  size_t ldkv;
  size_t rows, heads, head_width, position;
  CachedHeads kept;
};

// ---- Fused attention of one record, all heads. ----------------------------------------------------------------------
// Head h of row t of q is q[t * ldq + h * head_width ...]; likewise k, v, out. Query i stands at key position num_keys
// - num_queries + i. It attends to keys j >= first_key (earlier ones are padding) and, if causal, to j <= its own
// position. With a `window`, it attends to no key more than window - 1 positions before its own. A query without keys
// gets output 0 and lse 0, and passes no gradient.
// Probabilities P = softmax(scale * q k^T); out = (P * keep) v. keep is keep_HQT[...] * keep_scale, or 1 if null
// (keep_HQT holds 0 or 1, [heads, num_queries, num_keys]).
// Grouped queries: `kv_heads` divides heads. k and v have that many heads of head_width, and query head h reads head h
// / (heads / kv_heads) of them (`KeyHead`). dk and dv are then sums over the query heads that read them. Variances of
// keys and values have as many heads as k; slopes and keep masks have those of q. 0 means `heads`.
// `scratch` has attention_scratch_size(pass, num_keys, head_width) floats (a field of the table). The size for backward
// is enough for forward.
// Max error of forward: 2e-5 relative to the largest |v|. Backward: relative to the largest |gradient| in the same
// buffer; or, if that is smaller because terms cancel (one key: P = 1, dS = 0), to the largest |dout| * |v| * scale *
// max(|q|, |k|). Backward takes P from a rounded lse, so its error grows by 2^-23 times the largest |lse|.
//
// Re-Attention: `key_variance` is the variance of each key's entries (stride ldvariance, heads as in k). It lowers the
// logit of key j for query i by half the variance that the keys give it:
//     scale * max(kLowestCorrectedLogit, <q_i, k_j> - scale / 2 * sum_c q_ic^2 key_variance_jc)
// The gradient of q passes through this correction too. Variances are constants, 0 to the largest float. A logit at the
// lower limit passes no gradient; keys that are all at the limit are attended to equally. If all variances are zero,
// the bits are the same as without. With `value_variance`, out_variance_i = sum_j (P keep)_ij^2 value_variance_j is
// assigned (stride ldout_variance); max error 2e-5 relative to the largest value_variance.
//
// ALiBi: with `slope_H`, the logit of key j for query i in head h is lowered by slope_H[h] * |position of i - j|;
// `scale` must then not be 0. If all slopes are zero, the bits are the same as without. If all keys are at their lowest
// corrected logit, the bias is lost in rounding.

// With several records, each attends to its own keys. num_queries and num_keys are its rows, and first_key is
// first_key_B[b] (in host memory). lse of record b begins at begin(b) * heads, its keep mask at begin(b) * keep_row.

// Below this limit a float's last place is not small compared with 1. The largest exponent of a softmax would then be a
// rounding error instead of 0, and the sum could be 0 or infinite.
inline constexpr float kLowestCorrectedLogit = -1e6f;

template <class T = float>
struct AttentionForwardArgs {
  const T* q;
  const T* k;
  const T* v;
  size_t ldq, ldkv;
  T* out;
  size_t ldout;
  T* lse_HQ;  // log-sum-exp of each row's scaled logits, saved for backward
  const uint8_t* keep_HQT;
  T keep_scale;
  T* scratch;
  size_t num_queries, num_keys, heads, head_width, first_key;
  T scale;
  AttentionMask mask;
  const T* key_variance = nullptr;
  const T* value_variance = nullptr;
  size_t ldvariance = 0;
  T* out_variance = nullptr;
  size_t ldout_variance = 0;
  const T* slope_H = nullptr;
  size_t kv_heads = 0;  // 0: as many as heads
  Segments records = {};
  const uint32_t* first_key_B = nullptr;
  size_t keep_row = 0;
  size_t window = 0;  // 0: no window
};

// Attention over what keep_keys stored, from the first key head to be read on, in place of k, v and ldkv. With float32
// the bits are those of attention over k and v. With float16 they are those of k and v rounded to float16; not with
// key_variance.
struct AttendCachedArgs : AttentionForwardArgs<> {
  CachedHeads kept;
};

// dq, dk, dv are ASSIGNED (same strides as q, k, v: ldq for dq, ldkv for dk and dv).
template <class T = float>
struct AttentionBackwardArgs {
  const T* q;
  const T* k;
  const T* v;
  size_t ldq, ldkv;
  const T* out;
  const T* dout;
  size_t ldout;  // of out and dout
  const T* lse_HQ;
  const uint8_t* keep_HQT;
  T keep_scale;
  T* dq;
  T* dk;
  T* dv;
  T* scratch;
  size_t num_queries, num_keys, heads, head_width, first_key;
  T scale;
  AttentionMask mask;
  const T* key_variance = nullptr;
  size_t ldvariance = 0;
  const T* slope_H = nullptr;
  size_t kv_heads = 0;  // 0: as many as heads
  Segments records = {};
  const uint32_t* first_key_B = nullptr;
  size_t keep_row = 0;
  size_t window = 0;  // 0: no window
};

// The head of k and v that query head `head` reads.
template <class Args>
constexpr size_t KeyHead(const Args& a, size_t head) {
  return a.kv_heads == 0 ? head : head / (a.heads / a.kv_heads);
}

// The first key that a query may attend to, after padding and keys outside its window.
template <class Args>
constexpr size_t AttendBegin(const Args& a, size_t query) {
  const size_t behind = a.num_keys - a.num_queries + query + 1;  // the end of the keys up to the query's own position
  const size_t begin = a.window == 0 || behind <= a.window ? 0 : behind - a.window;
  return begin < a.first_key ? a.first_key : begin;
}

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_ATTENTION_H_
