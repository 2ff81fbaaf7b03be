// Arguments of attention and of the rotations of its queries and keys.
//
// A part of the op table's contract: kernels/kernels.h, which includes this, says what holds for all of them.
#ifndef WISP_KERNELS_ATTENTION_H_
#define WISP_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/records.h"

namespace wisp::kernels {

// Where a table takes several records in one call (OpTable::takes_records), what lies where for each: record b has rows
// [begin(b), begin(b) + size(b)) of everything that has rows. `records` without begin_B: one record, as told otherwise.

enum class AttentionMask { kCausal, kFull };
enum class AttentionPass { kForward, kBackward };
enum class RotaryPairs { kHalves, kInterleaved };
enum class Rotation { kForward, kInverse };

// ---- Rotary positions. ----------------------------------------------------------------------------------------------
// In place: rows of [heads, head_width], the starts of two of them ldx apart. The first `rotated` entries of each head
// (even, at most head_width) are rotated in pairs, the others stay. Pair p is (p, p + rotated / 2) with kHalves and
// (2p, 2p + 1) with kInterleaved. With c and s the cosine and sine of its angle (a, b) becomes (a c - b s, a s + b c),
// and with kInverse (a c + b s, b c - a s): what undoes it, and what takes a gradient back. c and s of row r are
// cos_TP[(first_position + r) * rotated / 2 + p], likewise sin_TP: the tables begin with position 0, and the
// caller makes them.
// Of several records row r of each stands at position first_position + r, and `rows` is not read.
// Max error 3 * 2^-24 * (|a c| + |b s|), of the other with |a s| + |b c|. A rotation keeps lengths as nearly.
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
// A table may keep them in an order of its own (OpTable::kept_panel), so that attention need not pack all keys again
// for one query more. Each head has room for `room` positions, a multiple of kept_panel: first its keys in panels, then
// its values by rows, as floats or as halves (rounded to the nearest; from 65520 on not finite). Heads lie one behind
// the other.
enum class KeptType : uint8_t { kFloat, kHalf };

constexpr size_t KeptElementBytes(KeptType type) { return type == KeptType::kHalf ? sizeof(Half) : sizeof(float); }

struct KeptHeads {
  void* data = nullptr;  // of the first head, aligned as a vector; null: nothing is kept
  size_t room = 0;
  KeptType type = KeptType::kFloat;
  // The same from head `head` on.
  KeptHeads From(size_t head, size_t head_width) const {
    return {.data = static_cast<char*>(data) + head * 2 * room * head_width * KeptElementBytes(type),
            .room = room,
            .type = type};
  }
};

// Puts `rows` rows of keys and of values, the first of them at `position`, in their places, and writes nothing else:
// threads may keep different rows at once. Row strides ldkv, heads as in k and v of attention.
struct KeepKeysArgs {
  const float* k;
  const float* v;
  size_t ldkv;
  size_t rows, heads, head_width, position;
  KeptHeads kept;
};

// ---- Fused attention of one record, all heads. ----------------------------------------------------------------------
// Head h of row t of q is q[t * ldq + h * head_width ...]; likewise k, v, out. Query i stands at key position
// num_keys - num_queries + i. It attends keys j >= first_key (earlier ones are padding) and, when causal, j <= its own
// position. With a `window` it attends no key further back than window - 1 positions before its own. A query that may
// attend nothing gets output 0 and lse 0, and passes no gradient.
// probabilities P = softmax(scale * q k^T); out = (P * keep) v, where keep = keep_HQT[...] * keep_scale, or 1 if null
// (keep_HQT holds 0 or 1, [heads, num_queries, num_keys]).
// Grouped queries: with `kv_heads`, which divides heads, k and v have that many heads of head_width, and query head h
// reads head h / (heads / kv_heads) of them (`KeyHead`). dk and dv are then sums over the query heads that read them.
// The variances of keys and values have as many heads as k; slopes and keep masks have those of q. 0 means `heads`.
// `scratch`: attention_scratch_size(pass, num_keys, head_width) floats (a field of the table). What is enough for
// backward is enough for forward.
// Max error 2e-5 relative to the largest |v| (forward); backward: to the largest |gradient| of the same buffer, or,
// where that is smaller because terms cancel (one key: P = 1, dS = 0), to the largest |dout| * |v| * scale * max(|q|,
// |k|). As it takes P from a rounded lse, backward's error grows by 2^-23 times the largest |lse|.
//
// With `key_variance` (Re-Attention: the variance of each key's entries, strides ldvariance, heads as in k) the logit
// of key j for query i is lowered by half the variance that the keys give it:
//     scale * max(kLowestCorrectedLogit, <q_i, k_j> - scale / 2 * sum_c q_ic^2 key_variance_jc)
// and the gradient reaches q through the correction too; the variances are constants, 0 to the largest float. A logit
// that is held at its lowest passes no gradient: keys that are all held are attended alike. All variances zero: the
// same bits as without. With `value_variance`, out_variance_i = sum_j (P keep)_ij^2 value_variance_j is assigned,
// strides ldout_variance; max error 2e-5 relative to the largest value_variance.
//
// With `slope_H` (ALiBi: a linear bias by distance) the logit of key j for query i is lowered by slope_H[h] * |position
// of i - j| in head h; `scale` must not be 0 then. All of them zero: the same bits as without. Among keys that are all
// held at their lowest corrected logit the bias is lost in rounding.

// Of several records each attends its own keys: num_queries and num_keys are its rows, first_key is first_key_B[b]
// (in host memory), lse of record b begins at begin(b) * heads, and its keep mask at begin(b) * keep_row.

// Beyond it a float's last place is no longer small beside 1: the largest exponent of a softmax would not be 0 but
// whatever rounding makes of it, and the sum 0 or infinite.
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
  size_t window = 0;  // 0: none
};

// The same over what keep_keys kept, from the first head of keys that is read on, in place of k, v and ldkv. Of floats:
// the same bits. Of halves: the bits of k and v that were rounded to halves; not with key_variance.
struct AttendKeptArgs : AttentionForwardArgs<> {
  KeptHeads kept;
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
  size_t window = 0;  // 0: none
};

// The head of k and v that query head `head` < heads reads.
template <class Args>
constexpr size_t KeyHead(const Args& a, size_t head) {
  return a.kv_heads == 0 ? head : head / (a.heads / a.kv_heads);
}

// The first key that a query may attend, where padding and what is outside its window end.
template <class Args>
constexpr size_t AttendBegin(const Args& a, size_t query) {
  const size_t behind = a.num_keys - a.num_queries + query + 1;  // its own position
  const size_t begin = a.window == 0 || behind <= a.window ? 0 : behind - a.window;
  return begin < a.first_key ? a.first_key : begin;
}

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_ATTENTION_H_
