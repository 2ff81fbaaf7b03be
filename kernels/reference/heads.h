// The reference for the ops of heads: a part of reference.h.
//
// Functions named ...With take the product or the scaling that they use as an argument, so that a table can give its
// own.
#ifndef WISP_KERNELS_REFERENCE_HEADS_H_
#define WISP_KERNELS_REFERENCE_HEADS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

template <class T>
void SoftmaxStats(const SoftmaxStatsArgs<T>& a) {
  using std::exp;
  for (size_t r = 0; r < a.rows; ++r) {
    if (a.n == 0) continue;
    const T* z = a.z_RN + r * a.ldz;
    T largest = a.max_R[r];
    for (size_t j = 0; j < a.n; ++j) {
      if (largest < z[j]) largest = z[j];
    }
    T sum = a.sum_R[r] * exp(a.max_R[r] - largest);
    const int64_t column = int64_t{a.target_R[r]} - a.first;
    if (column >= 0 && column < static_cast<int64_t>(a.n)) a.target_logit_R[r] = z[column];
    for (size_t j = 0; j < a.n; ++j) {
      const T e = exp(z[j] - largest);
      sum = sum + e;
      if (a.exp_RN != nullptr) a.exp_RN[r * a.ldz + j] = e;
    }
    a.max_R[r] = largest;
    a.sum_R[r] = sum;
  }
}

template <class T>
void CrossEntropyGradient(const CrossEntropyGradientArgs<T>& a) {
  using std::exp;
  for (size_t r = 0; r < a.rows; ++r) {
    const int64_t column = int64_t{a.target_R[r]} - a.first;
    for (size_t j = 0; j < a.n; ++j) {
      T& z = a.z_RN[r * a.ldz + j];
      if (a.weight_R[r] == T(0)) {
        z = T(0);
        continue;
      }
      T p = a.max_R != nullptr ? z * exp(a.max_R[r] - a.lse_R[r]) : exp(z - a.lse_R[r]);
      if (column == static_cast<int64_t>(j)) p = p - T(1);
      z = p * a.weight_R[r];
    }
  }
}

template <class T>
void SoftmaxGradient(const SoftmaxGradientArgs<T>& a) {
  using std::log;
  for (size_t r = 0; r < a.rows; ++r) {
    T* z = a.z_RN + r * a.ldz;
    T lse = T(0);
    if (a.weight_R[r] != T(0)) {
      a.max_R[r] = -std::numeric_limits<T>::infinity();
      a.sum_R[r] = T(0);
      SoftmaxStats<T>({.z_RN = z,
                       .ldz = a.n,
                       .target_R = a.target_R + r,
                       .max_R = a.max_R + r,
                       .sum_R = a.sum_R + r,
                       .target_logit_R = a.target_logit_R + r,
                       .rows = 1,
                       .n = a.n,
                       .first = 0});
      lse = a.max_R[r] + log(a.sum_R[r]);
    }
    CrossEntropyGradient<T>({.z_RN = z,
                             .ldz = a.n,
                             .target_R = a.target_R + r,
                             .lse_R = &lse,
                             .weight_R = a.weight_R + r,
                             .rows = 1,
                             .n = a.n,
                             .first = 0});
  }
}

template <class T>
void SoftmaxStart(const SoftmaxStartArgs<T>& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const size_t begin = a.records.begin(b), end = begin + a.records.size(b);
    const float weight = MakeOptions(a.options_B, b).target_weight;
    for (size_t r = begin; r < end; ++r) {
      a.max_R[r] = T(-std::numeric_limits<float>::infinity());
      a.sum_R[r] = a.target_logit_R[r] = T(0);
      a.weight_R[r] = T(a.target_R[r] < 0 ? 0.0f : weight);
      if (a.none_R != nullptr) a.none_R[r] = -1;
    }
  }
}

template <class T>
void CrossEntropyLoss(const CrossEntropyLossArgs<T>& a) {
  using std::exp;
  using std::log;
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const size_t begin = a.records.begin(b), end = begin + a.records.size(b);
    a.loss_B[b] = Wide<T>(0);
    for (size_t r = begin; r < end; ++r) {
      const T target = a.target_logit_R[r], max = a.max_R[r], largest = max < target ? target : max;
      const bool counts = !(a.weight_R[r] == T(0));
      if (a.target == TargetTerm::kInSum) {
        a.lse_R[r] = max + log(a.sum_R[r]);
      } else {
        a.lse_R[r] = counts ? largest + log(a.sum_R[r] * exp(max - largest) + exp(target - largest)) : T(0);
      }
      if (counts) a.loss_B[b] = a.loss_B[b] + Wide<T>(a.weight_R[r]) * (Wide<T>(a.lse_R[r]) - Wide<T>(target));
    }
  }
}

template <class T>
Wide<T> WideDot(const T* x, const T* y, size_t n) {
  Wide<T> sum(0);
  for (size_t i = 0; i < n; ++i) sum = sum + Wide<T>(x[i]) * Wide<T>(y[i]);
  return sum;
}

// `dot` is used as OpTable::dot.
template <class T, class Product>
void TargetLogitsWith(const TargetLogitsArgs<T>& a, Product&& dot) {
  for (size_t r = 0; r < a.rows; ++r) {
    if (a.target_R[r] < 0) continue;
    const int32_t* hit = std::lower_bound(a.class_N, a.class_N + a.n, a.target_R[r]);
    if (hit != a.class_N + a.n && *hit == a.target_R[r])
      a.z_RN[r * a.n + static_cast<size_t>(hit - a.class_N)] = T(-std::numeric_limits<float>::infinity());
    const size_t target = static_cast<size_t>(a.target_R[r]);
    a.target_logit_R[r] = static_cast<T>(dot(a.x_RK + r * a.k, a.w_MK + target * a.k, a.k));
    if (a.bias_M != nullptr) a.target_logit_R[r] = a.target_logit_R[r] + a.bias_M[target];
  }
}

// `scale` is used as OpTable::scale.
template <class T, class Scaling>
void TargetGradientWith(const TargetGradientArgs<T>& a, Scaling&& scale) {
  using std::exp;
  for (size_t r = 0; r < a.rows; ++r) {
    const T weight = a.weight_R[r];
    const T g = weight == T(0) ? T(0) : (exp(a.target_logit_R[r] - a.lse_R[r]) - T(1)) * weight;
    scale(ScaleArgs<T>{.x = a.x_RK + r * a.k, .y = a.dw_RK + r * a.k, .n = a.k, .a = g, .store = Store::kAssign});
    if (g == T(0)) continue;
    const T* w = a.w_MK + static_cast<size_t>(a.target_R[r]) * a.k;
    scale(ScaleArgs<T>{.x = w, .y = a.dx_RK + r * a.k, .n = a.k, .a = g, .store = Store::kAdd});
  }
}

// log(sum of exp(z)).
template <class T>
Wide<T> LogSumExp(const T* z, size_t n) {
  using std::exp;
  using std::log;
  const Wide<T> max(*std::max_element(z, z + n));
  Wide<T> sum(0);
  for (size_t j = 0; j < n; ++j) sum = sum + exp(Wide<T>(z[j]) - max);
  return max + log(sum);
}

template <class T>
void ClassCrossEntropy(const ClassCrossEntropyArgs<T>& a) {
  using std::exp;
  for (size_t r = 0; a.n > 0 && r < a.rows; ++r) {
    const T* z = a.z_RN + r * a.n;
    const auto target = static_cast<size_t>(a.target_R[r]);
    const Wide<T> lse = LogSumExp(z, a.n);
    if (a.loss_R != nullptr) a.loss_R[r] = lse - Wide<T>(z[target]);
    for (size_t j = 0; a.dz_RN != nullptr && j < a.n; ++j)
      a.dz_RN[r * a.n + j] = static_cast<T>(exp(Wide<T>(z[j]) - lse) - Wide<T>(j == target ? 1.0 : 0.0));
  }
}

// min(1, bound / ||x||); 1 if bound is 0.
template <class T>
Wide<T> ClipScale(const T* x, size_t n, double bound) {
  using std::sqrt;
  if (bound == 0) return Wide<T>(1);
  const Wide<T> norm = sqrt(WideDot(x, x, n));
  return Wide<T>(bound) < norm ? Wide<T>(bound) / norm : Wide<T>(1);
}

template <class T>
void ClipRows(const ClipRowsArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    const Wide<T> scale = ClipScale(a.x_RD + r * a.d, a.d, a.bound);
    for (size_t i = r * a.d; i < (r + 1) * a.d; ++i)
      a.y_RD[i] = static_cast<T>(scale * Wide<T>(a.x_RD[i])) + (a.noise_RD != nullptr ? a.noise_RD[i] : T(0));
  }
}

// y = s x. If ||x|| > C: s = C / ||x|| and dx = s (dy - x <x, dy> / ||x||^2). Otherwise s = 1 and dx = dy. For x =
// tanh(p): dp = dx (1 - x^2).
template <class T>
void ClipRowsBackward(const ClipRowsBackwardArgs<T>& a) {
  const Wide<T> one(1);
  for (size_t r = 0; r < a.rows; ++r) {
    const T *x = a.x_RD + r * a.d, *dy = a.dy_RD + r * a.d;
    const Wide<T> scale = ClipScale(x, a.d, a.bound);
    const Wide<T> radial = scale < one ? WideDot(x, dy, a.d) / WideDot(x, x, a.d) : Wide<T>(0);
    for (size_t i = 0; i < a.d; ++i) {
      const Wide<T> xi(x[i]), slope = a.before == Before::kTanh ? one - xi * xi : one;
      a.dx_RD[r * a.d + i] = static_cast<T>(scale * (Wide<T>(dy[i]) - xi * radial) * slope);
    }
  }
}

template <class T>
void MeanRows(const MeanRowsArgs<T>& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const size_t rows = a.records.size(b);
    const T* x = a.x_RD + a.records.begin(b) * a.d;
    T* y = a.y_BD + b * a.d;
    for (size_t i = 0; i < a.d; ++i) y[i] = T(0);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < a.d; ++i) y[i] = y[i] + x[r * a.d + i];
    }
    const T share = rows > 0 ? T(1) / T(static_cast<float>(rows)) : T(0);
    for (size_t i = 0; i < a.d; ++i) y[i] = y[i] * share;
  }
}

template <class T>
void MeanRowsBackward(const MeanRowsBackwardArgs<T>& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const size_t begin = a.records.begin(b), rows = a.records.size(b);
    const T share = rows > 0 ? T(1) / T(static_cast<float>(rows)) : T(0);
    for (size_t r = begin; r < begin + rows; ++r) {
      for (size_t i = 0; i < a.d; ++i) a.dx_RD[r * a.d + i] = a.dy_BD[b * a.d + i] * share;
    }
  }
}

template <class T>
void ScoreTiles(const ScoreTilesArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.n; ++j) {
      const T* w = a.packed + j / a.tile * a.tile_stride + j % a.tile * a.k;
      T sum = a.bias_N != nullptr ? a.bias_N[j] : T(0);
      for (size_t i = 0; i < a.k; ++i) sum = sum + a.x_RK[r * a.k + i] * w[i];
      a.y_RN[r * a.n + j] = sum;
    }
  }
}

inline void TopK(const TopKArgs& a) {
  const auto better = [](const Scored& x, const Scored& y) {
    return x.score != y.score ? x.score > y.score : x.item < y.item;
  };
  for (size_t r = 0; r < a.rows; ++r) {
    const float* score = a.score_RN + r * a.n;
    const uint32_t* excluded = a.excluded_RW + r * ((a.n + 31) / 32);
    Scored* best = a.best_RK + r * a.k;
    TopKSummary& summary = a.summary_R[r] = {};
    for (size_t j = 0; j < a.n; ++j) {
      if ((excluded[j / 32] >> (j % 32) & 1) != 0) continue;
      if (!std::isfinite(score[j])) {
        summary.not_finite = 1;
        continue;
      }
      // Insert it after all that are at least as good.
      const Scored one = {static_cast<int32_t>(j), score[j]};
      size_t place = summary.count;
      while (place > 0 && better(one, best[place - 1])) --place;
      if (place == a.k) continue;
      if (summary.count < a.k) ++summary.count;
      std::copy_backward(best + place, best + summary.count - 1, best + summary.count);
      best[place] = one;
    }
    std::fill(best + summary.count, best + a.k, Scored{-1, 0});
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_HEADS_H_
