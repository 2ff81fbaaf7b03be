// Arguments of the ops of heads: softmax with cross-entropy over tiles of classes, with a target beside the classes,
// and over few classes; bounds of representations.
//
// A part of the op table's contract: kernels/kernels.h, which includes this, says what holds for all of them.
#ifndef WISP_KERNELS_HEADS_H_
#define WISP_KERNELS_HEADS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/records.h"

namespace wisp::kernels {

// What sums of floats are taken in; every other number stays what it is.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

// ---- Softmax with cross-entropy over tiles of classes. --------------------------------------------------------------
// Running log-sum-exp over the tiles of a row: it starts with softmax_start and ends with cross_entropy_loss, lse = max
// + log(sum). Where target_R[r] lies in [first, first + n), target_logit_R[r] is assigned.
// Max error of the finished lse: 2e-6 * max(1, |lse|). Where exp_RN is given, which is z_RN or lies elsewhere in the
// same way, it becomes exp(z - max_R), with max_R as the call leaves it; relative error 3e-7 (1 + |z - max_R|), zero
// below exp(-80).
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

// In place: z <- (exp(z - lse_R) - [target_R == first + j]) * weight_R: the gradient of the weighted cross-entropy at
// the logits. Rows with weight 0 (padding) become zero whatever they hold. Max error 2e-6 * |weight| absolute. Where
// max_R is given z holds exp(z - max_R) in place of z, as SoftmaxStats leaves it; lse_R is not less than it.
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

// Before the first tile: max <- -inf, sum <- 0, target_logit <- 0, and weight <- the target_weight of the row's record,
// 0 where the row has no target (target < 0). Where none_R is given it becomes -1: targets for softmax_stats where no
// target is one of the classes.
template <class T = float>
struct SoftmaxStartArgs {
  const int32_t* target_R;
  T* max_R;
  T* sum_R;
  T* target_logit_R;
  T* weight_R;
  Segments records;
  const RecordOptions* options_B;  // null: as RecordOptions has them
  int32_t* none_R = nullptr;
};

// Whether the running sum of a row holds its target's exponential, or the target stands beside the classes.
enum class TargetTerm { kInSum, kBeside };

// After the last tile: lse_R, to which the target's term is added with kBeside (0 then for rows of weight 0), and of
// each record loss_B <- the sum over its rows of weight * (lse - target_logit), in double; rows of weight 0 do not
// count. loss_B lies in host memory, and has arrived when the call returns. Max error of lse 2e-6 * max(1, |lse|),
// given max and sum.
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
// Of each row with a target (>= 0): target_logit <- <x, w[target]> + bias[target], the product in double, rounded
// before the bias is added; and where the target is one of class_N, ascending and distinct, that logit z becomes
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

// The target's part of the gradient: with g = (exp(target_logit - lse) - 1) * weight, or 0 where the weight is 0,
// dw_r <- g x_r and dx_r += g w[target_r]. Max error 4 ulp of the sum of magnitudes, and 2e-6 * |weight| of g.
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
// loss <- log(sum of exp(z)) - z[target] and dz <- softmax(z) - [target]; either may be null. Targets are 0 to n - 1.
// loss_R lies in host memory, and has arrived when the call returns. Max error 4 ulp of a double and of a float.
template <class T = float>
struct ClassCrossEntropyArgs {
  const T* z_RN;
  const int32_t* target_R;
  Wide<T>* loss_R;
  T* dz_RN;
  size_t rows, n;
};

// ---- Bounds of representations, in double. --------------------------------------------------------------------------
// y_r <- x_r min(1, bound / ||x_r||) + noise_r; bound 0: none. `noise_RD` may be null. Max error 2 ulp of the sum of
// magnitudes.
template <class T = float>
struct ClipRowsArgs {
  const T* x_RD;
  const T* noise_RD;
  T* y_RD;
  size_t rows, d;
  double bound;
};

// With y = clip_rows(x): dx <- the derivative, from dy. With kTanh, x = tanh(p), and dx becomes the derivative by p.
// Max error 1e-6 relative to the row's largest |dy|.
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
// y_b <- the mean of record b's rows of x, summed in their order; records of no row give 0. Max error 4 ulp times the
// number of rows, of the mean of magnitudes.
template <class T = float>
struct MeanRowsArgs {
  const T* x_RD;
  T* y_BD;
  Segments records;
  size_t d;
};

// Each row r of record b: dx_r <- dy_b / (its number of rows). Max error 2 ulp.
template <class T = float>
struct MeanRowsBackwardArgs {
  const T* dy_BD;
  T* dx_RD;
  Segments records;
  size_t d;
};

// ---- Scoring on a device. -------------------------------------------------------------------------------------------
// y <- x W^T + bias, where each `tile` rows of W are packed alone, in their order, tile_stride floats from one to the
// next: what linear_forward makes of each tile, bit for bit. `bias_N` may be null.
template <class T = float>
struct ScoreTilesArgs {
  const T* x_RK;
  const T* packed;
  size_t tile, tile_stride;
  const T* bias_N;
  T* y_RN;
  size_t rows, n, k;
};

// The k best of each row's scores, best first, equal ones by smaller column. What is excluded is not looked at: column
// j of row r where bit j % 32 of excluded_RW[r * words + j / 32] is set, words = (n + 31) / 32. Places of best_RK
// beyond `count` of them are {-1, 0}. A score that is no finite number is left out, and said. Exact.
// `scratch`: top_k_scratch_size(rows, n, k) words (a field of the table). k at most kMostTopK.
inline constexpr size_t kMostTopK = 256;

struct Scored {
  int32_t item;
  float score;
};
struct TopKSummary {
  uint32_t count;
  uint32_t not_finite;  // 1: a score that is not excluded is no finite number
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
