// The reference for attention and rotary positions: a part of reference.h.
#ifndef WISP_KERNELS_REFERENCE_ATTENTION_H_
#define WISP_KERNELS_REFERENCE_ATTENTION_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

template <class T>
void Rotary(const RotaryArgs<T>& a) {
  const size_t num_pairs = a.rotated / 2;
  const bool halves = a.pairs == RotaryPairs::kHalves;
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t h = 0; h < a.heads; ++h) {
      T* x = a.x_RD + r * a.ldx + h * a.head_width;
      for (size_t p = 0; p < num_pairs; ++p) {
        const T c = a.cos_TP[(a.first_position + r) * num_pairs + p];
        T s = a.sin_TP[(a.first_position + r) * num_pairs + p];
        if (a.rotation == Rotation::kInverse) s = T(0) - s;
        T& first = x[halves ? p : 2 * p];
        T& second = x[halves ? p + num_pairs : 2 * p + 1];
        const T before = first;
        first = before * c - second * s;
        second = before * s + second * c;
      }
    }
  }
}

// The keys that a query may attend to: [AttendBegin, AttendEnd).
template <class Args>
size_t AttendEnd(const Args& a, size_t query) {
  return a.mask == AttentionMask::kCausal ? a.num_keys - a.num_queries + query + 1 : a.num_keys;
}

// The amount that distance subtracts from a logit: slope * |position of the query - key|.
template <class T, class Args>
T DistanceBias(const Args& a, size_t head, size_t query, size_t key) {
  if (a.slope_H == nullptr) return T(0);
  const size_t position = a.num_keys - a.num_queries + query;
  return a.slope_H[head] * T(static_cast<double>(std::max(position, key) - std::min(position, key)));
}

// In this table a panel is one position, so keys are cached by rows, as values are.
template <class T>
void KeepRows(const KeepKeysArgs& a, size_t head, T* keys) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t c = 0; c < a.head_width; ++c) {
      const size_t from = r * a.ldkv + head * a.head_width + c, to = (a.position + r) * a.head_width + c;
      if constexpr (std::is_same_v<T, Half>) {
        keys[to] = ToHalf(a.k[from]), keys[a.kept.room * a.head_width + to] = ToHalf(a.v[from]);
      } else {
        keys[to] = a.k[from], keys[a.kept.room * a.head_width + to] = a.v[from];
      }
    }
  }
}

inline void KeepKeys(const KeepKeysArgs& a) {
  for (size_t h = 0; h < a.heads; ++h) {
    void* const head = a.kept.From(h, a.head_width).data;
    a.kept.type == CacheType::kHalf ? KeepRows(a, h, static_cast<Half*>(head))
                                    : KeepRows(a, h, static_cast<float*>(head));
  }
}

// Entry c of the key, or of the value, that a head reads.
enum class KeyOrValue { kKey, kValue };
template <class Args>
auto Attended(const Args& a, KeyOrValue which, size_t head, size_t key, size_t c) {
  return (which == KeyOrValue::kKey ? a.k : a.v)[key * a.ldkv + KeyHead(a, head) * a.head_width + c];
}
inline float Attended(const AttendCachedArgs& a, KeyOrValue which, size_t head, size_t key, size_t c) {
  const void* const kept = a.kept.From(KeyHead(a, head), a.head_width).data;
  const size_t at = ((which == KeyOrValue::kKey ? 0 : a.kept.room) + key) * a.head_width + c;
  return a.kept.type == CacheType::kHalf ? ToFloat(static_cast<const Half*>(kept)[at])
                                         : static_cast<const float*>(kept)[at];
}

// The logit before scaling.
template <class T, class Args>
T AttentionProduct(const Args& a, size_t head, size_t query, size_t key) {
  T dot(0);
  for (size_t c = 0; c < a.head_width; ++c) {
    dot = dot + a.q[query * a.ldq + head * a.head_width + c] * Attended(a, KeyOrValue::kKey, head, key, c);
  }
  if (a.key_variance == nullptr) return dot;
  T variance(0);
  for (size_t c = 0; c < a.head_width; ++c) {
    const T q = a.q[query * a.ldq + head * a.head_width + c];
    variance = variance + q * q * a.key_variance[key * a.ldvariance + KeyHead(a, head) * a.head_width + c];
  }
  const T corrected = dot - T(0.5) * a.scale * variance, lowest(kLowestCorrectedLogit);
  return corrected < lowest ? lowest : corrected;  // NaN stays NaN
}

template <class T, class Args>
T AttentionLogit(const Args& a, size_t head, size_t query, size_t key) {
  return AttentionProduct<T>(a, head, query, key) * a.scale - DistanceBias<T>(a, head, query, key);
}

// True if the logit is at its lower limit, where it has no gradient.
template <class T, class Args>
bool AttentionHeld(const Args& a, size_t head, size_t query, size_t key) {
  return a.key_variance != nullptr && !(T(kLowestCorrectedLogit) < AttentionProduct<T>(a, head, query, key));
}

template <class T, class Args>
T AttentionKeep(const Args& a, size_t head, size_t query, size_t key) {
  if (a.keep_HQT == nullptr) return T(1);
  return a.keep_HQT[(head * a.num_queries + query) * a.num_keys + key] != 0 ? a.keep_scale : T(0);
}

template <class T, class Args>
void Attend(const Args& a) {
  using std::exp;
  using std::log;
  for (size_t h = 0; h < a.heads; ++h) {
    for (size_t i = 0; i < a.num_queries; ++i) {
      T* out = a.out + i * a.ldout + h * a.head_width;
      for (size_t c = 0; c < a.head_width; ++c) {
        out[c] = T(0);
        if (a.value_variance != nullptr) a.out_variance[i * a.ldout_variance + h * a.head_width + c] = T(0);
      }
      T& lse = a.lse_HQ[h * a.num_queries + i];
      lse = T(0);
      const size_t begin = AttendBegin(a, i), end = AttendEnd(a, i);
      if (end <= begin) continue;
      T largest = AttentionLogit<T>(a, h, i, begin);
      for (size_t j = begin + 1; j < end; ++j) {
        const T logit = AttentionLogit<T>(a, h, i, j);
        if (largest < logit) largest = logit;
      }
      T sum(0);
      for (size_t j = begin; j < end; ++j) sum = sum + exp(AttentionLogit<T>(a, h, i, j) - largest);
      lse = largest + log(sum);
      for (size_t j = begin; j < end; ++j) {
        const T p = exp(AttentionLogit<T>(a, h, i, j) - largest) / sum * AttentionKeep<T>(a, h, i, j);
        const size_t first = KeyHead(a, h) * a.head_width;
        for (size_t c = 0; c < a.head_width; ++c) out[c] = out[c] + p * Attended(a, KeyOrValue::kValue, h, j, c);
        if (a.value_variance == nullptr) continue;
        for (size_t c = 0; c < a.head_width; ++c) {
          T& variance = a.out_variance[i * a.ldout_variance + h * a.head_width + c];
          variance = variance + p * p * a.value_variance[j * a.ldvariance + first + c];
        }
      }
    }
  }
}

template <class T>
void AttentionForward(const AttentionForwardArgs<T>& a) {
  Attend<T>(a);
}
inline void AttendCached(const AttendCachedArgs& a) { Attend<float>(a); }

// With P = softmax, m = keep, dP = dout v^T:  dv += (P m)^T dout;  dS = P (m dP - <dout, out>) scale;  dq = dS k;  dk =
// dS^T q. Re-Attention: dq -= scale (dS key_variance) o q, and dS = 0 if the logit is at its limit.
template <class T>
void AttentionBackward(const AttentionBackwardArgs<T>& a) {
  using std::exp;
  const size_t width = a.heads * a.head_width;
  const size_t kv_width = (a.kv_heads == 0 ? a.heads : a.kv_heads) * a.head_width;
  for (size_t i = 0; i < a.num_queries; ++i) {
    for (size_t c = 0; c < width; ++c) a.dq[i * a.ldq + c] = T(0);
  }
  for (size_t j = 0; j < a.num_keys; ++j) {
    for (size_t c = 0; c < kv_width; ++c) a.dk[j * a.ldkv + c] = a.dv[j * a.ldkv + c] = T(0);
  }
  for (size_t h = 0; h < a.heads; ++h) {
    const size_t first = h * a.head_width, kv_first = KeyHead(a, h) * a.head_width;
    for (size_t i = 0; i < a.num_queries; ++i) {
      const T* dout = a.dout + i * a.ldout + first;
      T delta(0);
      for (size_t c = 0; c < a.head_width; ++c) delta = delta + dout[c] * a.out[i * a.ldout + first + c];
      for (size_t j = AttendBegin(a, i); j < AttendEnd(a, i); ++j) {
        const T p = exp(AttentionLogit<T>(a, h, i, j) - a.lse_HQ[h * a.num_queries + i]);
        const T keep = AttentionKeep<T>(a, h, i, j);
        T dp(0);
        for (size_t c = 0; c < a.head_width; ++c) dp = dp + dout[c] * a.v[j * a.ldkv + kv_first + c];
        const T ds = AttentionHeld<T>(a, h, i, j) ? T(0) : p * (keep * dp - delta) * a.scale;
        for (size_t c = 0; c < a.head_width; ++c) {
          T& dv = a.dv[j * a.ldkv + kv_first + c];
          T& dk = a.dk[j * a.ldkv + kv_first + c];
          T& dq = a.dq[i * a.ldq + first + c];
          dv = dv + p * keep * dout[c];
          dk = dk + ds * a.q[i * a.ldq + first + c];
          dq = dq + ds * a.k[j * a.ldkv + kv_first + c];
          if (a.key_variance == nullptr) continue;
          dq = dq - ds * a.scale * a.q[i * a.ldq + first + c] * a.key_variance[j * a.ldvariance + kv_first + c];
        }
      }
    }
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_ATTENTION_H_
