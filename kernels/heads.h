// Arguments of the heads' ops: softmax with cross-entropy over tiles of classes, with a separate target, and over few
// classes; and bounds of representations.
//
// A part of the op table's contract. kernels/kernels.h includes this file and states what holds for all ops.
#ifndef WISP_KERNELS_HEADS_H_
#define WISP_KERNELS_HEADS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/records.h"

namespace wisp::kernels {

// The type for sums: double for float, otherwise the number type itself.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

// ---- Softmax with cross-entropy over tiles of classes. --------------------------------------------------------------
// Running log-sum-exp over the tiles of a row. softmax_start begins it and cross_entropy_loss ends it: lse = max +
// log(sum). If target_R[r] lies in [first, first + n), target_logit_R[r] is assigned.
// Max error of the finished lse: 2e-6 * max(1, |lse|). If exp_RN is given, it becomes exp(z - max_R), with max_R as
// this call leaves it. exp_RN is z_RN or has the same layout elsewhere. Its relative error is 3e-7 (1 + |z - max_R|);
// it is zero below exp(-80).
template <class T = float>
struct SoftmaxStatsArgs {
  const T* z_RN;
  size_t ldz;
  const int32_t* target_R;
  T* max_R;
  T* sum_R;
  T* target_logit_R;
  size_t rows, n;
  int32_t first;
  T* exp_RN = nullptr;
};

// In place: z = (exp(z - lse_R) - [target_R == first + j]) * weight_R, the gradient of the weighted cross-entropy at
// the logits. Rows with weight 0 (padding) become zero, whatever they hold. Max error 2e-6 * |weight| absolute. If
// max_R is given, z holds exp(z - max_R) in place of z, as SoftmaxStats leaves it; lse_R is at least max_R.
template <class T = float>
struct CrossEntropyGradientArgs {
  T* z_RN;
  size_t ldz;
  const int32_t* target_R;
  const T* lse_R;
  const T* weight_R;
  size_t rows, n;
  int32_t first;
  const T* max_R = nullptr;
};

// All of it for rows whose classes are one tile, after softmax_start: max, sum and target_logit are assigned as by
// softmax_stats, and z as by cross_entropy_gradient. Rows with weight 0 become zero, and their three numbers stay.
// Errors are those of the two ops. Null in tables of the host, except for the reference.
template <class T = float>
struct SoftmaxGradientArgs {
  T* z_RN;
  size_t ldz;
  const int32_t* target_R;
  const T* weight_R;
  T* max_R;
  T* sum_R;
  T* target_logit_R;
  size_t rows, n;
};

// Before the first tile: max = -inf, sum = 0, target_logit = 0, and weight = the target_weight of the row's record, or
// 0 if the row has no target (target < 0). If none_R is given it becomes -1: these are targets for softmax_stats when
// no target is one of the classes.
template <class T = float>
struct SoftmaxStartArgs {
  const int32_t* target_R;
  T* max_R;
  T* sum_R;
  T* target_logit_R;
  T* weight_R;
  Segments records;
  const RecordOptions* options_B;  // null: the defaults of RecordOptions
  int32_t* none_R = nullptr;
};

// kInSum: a row's running sum contains its target's exponential. kBeside: it does not, because the target is separate
// from the classes.
enum class TargetTerm { kInSum, kBeside };

// After the last tile. lse_R is assigned; with kBeside the target's term is added to it (lse is 0 then for rows of
// weight 0). For each record, loss_B = the sum over its rows of weight * (lse - target_logit), in double; rows of
// weight 0 do not count. loss_B is in host memory and complete when the call returns. Max error of lse 2e-6 * max(1,
// |lse|), given max and sum.
template <class T = float>
struct CrossEntropyLossArgs {
  const T* max_R;
  const T* sum_R;
  const T* target_logit_R;
  const T* weight_R;
  T* lse_R;
  Wide<T>* loss_B;
  Segments records;
  TargetTerm target;
};

// ---- A target beside the classes (sampled softmax). -----------------------------------------------------------------
// For each row with a target (>= 0): target_logit = <x, w[target]> + bias[target], with the product in double, rounded
// before the bias is added. If the target is one of class_N, ascending and distinct, the logit z of that class becomes
// -inf. Other rows stay. `bias_M` may be null. Max error 2 ulp of the sum of magnitudes.
template <class T = float>
struct TargetLogitsArgs {
  const T* x_RK;
  const T* w_MK;
  const T* bias_M;
  const int32_t* target_R;
  T* target_logit_R;
  T* z_RN;
  const int32_t* class_N;
  size_t rows, n, k;
};

// The target's part of the gradient. With g = (exp(target_logit - lse) - 1) * weight, or 0 if the weight is 0: dw_r = g
// x_r and dx_r += g w[target_r]. Max error 4 ulp of the sum of magnitudes, and 2e-6 * |weight| of g.
template <class T = float>
struct TargetGradientArgs {
  const T* x_RK;
  const T* w_MK;
  const int32_t* target_R;
  const T* target_logit_R;
  const T* lse_R;
  const T* weight_R;
  T* dx_RK;
  T* dw_RK;
  size_t rows, k;
};

// ---- Few classes: softmax with cross-entropy of whole rows, in double. ----------------------------------------------
// loss = log(sum of exp(z)) - z[target] and dz = softmax(z) - [target]; either may be null. Targets are 0 to n - 1.
// loss_R is in host memory and complete when the call returns. Max error 4 ulp of a double and of a float.
template <class T = float>
struct ClassCrossEntropyArgs {
  const T* z_RN;
  const int32_t* target_R;
  Wide<T>* loss_R;
  T* dz_RN;
  size_t rows, n;
};

// ---- Bounds of representations, in double. --------------------------------------------------------------------------
// y_r = x_r min(1, bound / ||x_r||) + noise_r; bound 0: no bound. `noise_RD` may be null. Max error 2 ulp of the sum of
// magnitudes.
template <class T = float>
struct ClipRowsArgs {
  const T* x_RD;
  const T* noise_RD;
  T* y_RD;
  size_t rows, d;
  double bound;
};

// With y = clip_rows(x): dx = the derivative, from dy. With kTanh, x = tanh(p), and dx is the derivative with respect
// to p. Max error 1e-6 relative to the row's largest |dy|.
enum class Before { kNothing, kTanh };

template <class T = float>
struct ClipRowsBackwardArgs {
  const T* x_RD;
  const T* dy_RD;
  T* dx_RD;
  size_t rows, d;
  double bound;
  Before before;
};

// ---- Means over the rows of each record. ----------------------------------------------------------------------------
// y_b = the mean of record b's rows of x, summed in their order; 0 for a record without rows. Max error 4 ulp times the
// number of rows, of the mean of magnitudes.
template <class T = float>
struct MeanRowsArgs {
  const T* x_RD;
  T* y_BD;
  Segments records;
  size_t d;
};

// For each row r of record b: dx_r = dy_b / (its number of rows). Max error 2 ulp.
template <class T = float>
struct MeanRowsBackwardArgs {
  const T* dy_BD;
  T* dx_RD;
  Segments records;
  size_t d;
};

// ---- Scoring on a device. -------------------------------------------------------------------------------------------
// y = x W^T + bias. Each `tile` rows of W are packed alone, in their order, tile_stride floats from one to the next.
// The bits are those of linear_forward for each tile. `bias_N` may be null.
template <class T = float>
struct ScoreTilesArgs {
  const T* x_RK;
  const T* packed;
  size_t tile, tile_stride;
  const T* bias_N;
  T* y_RN;
  size_t rows, n, k;
};

// The k best of each row's scores, best first, ties by smaller column. Column j of row r is excluded if bit j % 32 of
// excluded_RW[r * words + j / 32] is set, words = (n + 31) / 32. Entries of best_RK after the first `count` are {-1,
// 0}. A score that is not finite is left out and reported. Exact.
// `scratch` has top_k_scratch_size(rows, n, k) words (a field of the table). k is at most kMostTopK.
inline constexpr size_t kMostTopK = 256;

struct Scored {
  int32_t item;
  float score;
};
struct TopKSummary {
  uint32_t count;
  uint32_t not_finite;  // 1: a score that is not excluded is not finite
};
struct TopKArgs {
  const float* score_RN;
  const uint32_t* excluded_RW;
  Scored* best_RK;
  TopKSummary* summary_R;
  uint64_t* scratch;
  size_t rows, n, k;
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_HEADS_H_
