// The op table: every numeric operation of the runtime, as a plain struct of function pointers.
//
// This file is the contract: shapes, what is read, what is assigned or added to, and the largest error against the
// double reference. Ops do not know files, models, users' records or privacy. Arguments are checked when a plan is
// made; ops themselves check nothing, allocate nothing and are thread-safe.
//
//   const OpTable& ops = BestOps();
//   std::vector<float> packed(ops.packed_size(n, k));
//   ops.pack_weights({.w_NK = w, .ldw = k, .packed = packed.data(), .n = n, .k = k});
//   ops.linear_forward({.x_RK = x, .ldx = k, .packed = packed.data(), .bias_N = b, .y_RN = y, .ldy = n,
//                       .rows = r, .n = n, .k = k, .store = Store::kAssign});
//
// Dimension key (outermost first, row-major, in elements; a buffer's name may carry its shape: y_RN):
//   B records   T positions   R rows   D model width   H heads   K head width (or inner size of a product)
//   F inner width of the feed-forward   V or M vocabulary (items)   N columns of a product   P pairs of a rotation
// `ld*` is the distance in elements between the starts of two rows. Any pointer may be aligned to 4 bytes only.
// Every op accepts zero rows, columns or elements. Buffers of one call do not overlap unless the contract says so.
// Other argument structs: attention.h (attention), panels.h (matrices in panels), heads.h (heads), rows.h (looking up
// and moving rows), formed.h (forming each record's gradient), step.h (the end of a step).
//
// Argument structs are templates over the number type: the table uses float; the reference (kernels/reference/) is
// instantiated with float (the specification), double (the truth) and dual numbers (exact derivatives).
#ifndef WISP_KERNELS_KERNELS_H_
#define WISP_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention.h"
#include "kernels/panels.h"
#include "kernels/formed.h"
#include "kernels/half.h"
#include "kernels/heads.h"
#include "kernels/integers.h"
#include "kernels/records.h"
#include "kernels/rows.h"
#include "kernels/step.h"

namespace wisp::kernels {

// kGelu is exact: x * Phi(x), with erf. kGeluTanh is 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). kSigmoid is
// s(x) = 1 / (1 + exp(-x)), and kSilu is x s(x).
enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kSigmoid };

// ---- Products. Max error: 4 * (inner size + 4) * 2^-24 * sum_k |a_k b_k| per element. -------------------------------

// packed = W in the layout that linear_forward of the SAME table reads for the same n and k; `packed_size(n, k)`
// floats.
template <class T = float>
struct PackWeightsArgs {
  const T* w_NK;
  size_t ldw;
  T* packed;
  size_t n, k;
};

// y (=|+=) x W^T + bias. `bias_N` may be null.
template <class T = float>
struct LinearForwardArgs {
  const T* x_RK;
  size_t ldx;
  const T* packed;
  const T* bias_N;
  T* y_RN;
  size_t ldy;
  size_t rows, n, k;
  Store store;
};

// dx (=|+=) dy W, with W unpacked.
template <class T = float>
struct LinearBackwardInputArgs {
  const T* dy_RN;
  size_t lddy;
  const T* w_NK;
  size_t ldw;
  T* dx_RK;
  size_t lddx;
  size_t rows, n, k;
  Store store;
};

// dw (=|+=) scale * dy^T x.
template <class T = float>
struct LinearBackwardWeightArgs {
  const T* dy_RN;
  size_t lddy;
  const T* x_RK;
  size_t ldx;
  T* dw_NK;
  size_t lddw;
  size_t rows, n, k;
  T scale;
  Store store;
};

// out (=|+=) scale * sum over the rows of each record of x: the gradient of a bias. out is [records, n]. If
// records.begin_B is null there is one record, with `rows` rows.
template <class T = float>
struct ColumnSumArgs {
  const T* x_RN;
  size_t ldx;
  T* out_N;
  size_t rows, n;
  T scale;
  Store store;
  Segments records = {};
};

// ---- Layer norm. y = (x - mean) * rstd * gain + bias, rstd = 1 / sqrt(var + epsilon), var with 1/D. -----------------
// Max error 1e-5 relative to the row's largest |y| (|dx|). y and rstd have an additional relative error of 2^-21 |mean|
// rstd.
template <class T = float>
struct LayerNormForwardArgs {
  const T* x_RD;
  const T* gain_D;
  const T* bias_D;
  T* y_RD;
  T* mean_R;  // saved for backward
  T* rstd_R;
  size_t rows, d;
  T epsilon;
};

// dx (=|+=) the derivative. dgain and dbias [records, d] are ASSIGNED the sums over the rows of each record. If
// records.begin_B is null there is one record, with `rows` rows.
template <class T = float>
struct LayerNormBackwardArgs {
  const T* dy_RD;
  const T* x_RD;
  const T* gain_D;
  const T* mean_R;
  const T* rstd_R;
  T* dx_RD;
  T* dgain_D;
  T* dbias_D;
  size_t rows, d;
  Store store;
  Segments records = {};
};

// ---- RMS norm. y = x * rstd * gain, rstd = 1 / sqrt(mean of x^2 + epsilon). -----------------------------------------
// Max error 1e-5 relative to the row's largest |y| (|dx|), for |x| up to 1e15.
template <class T = float>
struct RmsNormForwardArgs {
  const T* x_RD;
  const T* gain_D;
  T* y_RD;
  T* rstd_R;  // saved for backward
  size_t rows, d;
  T epsilon;
};

// dx (=|+=) the derivative. dgain [records, d] is ASSIGNED the sums over the rows of each record, as in layer norm.
template <class T = float>
struct RmsNormBackwardArgs {
  const T* dy_RD;
  const T* x_RD;
  const T* gain_D;
  const T* rstd_R;
  T* dx_RD;
  T* dgain_D;
  size_t rows, d;
  Store store;
  Segments records = {};
};

// ---- Elementwise. Max error 4 ulp of the result. Gelu: 2e-6 absolute for |x| < 10, relative beyond. Gelu by tanh:
// 1e-6 * max(1, |y|). Silu and sigmoid: 1e-6 * |y| + 1e-32. Any finite x is safe; NaN gives NaN, except for relu.
// y may be x.
template <class T = float>
struct ActivationForwardArgs {
  const T* x;
  T* y;
  size_t n;
  Activation kind;
};

// dx = dy * f'(x); dx may be dy. relu'(0) = 0. Max error 3e-6 * |dy|.
template <class T = float>
struct ActivationBackwardArgs {
  const T* dy;
  const T* x;  // the forward input
  T* dx;
  size_t n;
  Activation kind;
};

// y = f(gate) * up, for every kind of f. `gate` and `up` may lie side by side in one matrix. y may be either of them,
// with its stride. Max error: that of f(gate), times |up|, and 1 ulp of y.
template <class T = float>
struct GatedActivationForwardArgs {
  const T* gate_RF;
  size_t ldgate;
  const T* up_RF;
  size_t ldup;
  T* y_RF;
  size_t ldy;
  size_t rows, n;
  Activation kind;
};

// dgate = dy * up * f'(gate), dup = dy * f(gate). Each output may be any of dy, gate and up, with its stride: all
// inputs of an element are read before its outputs are written. dgate must not be dup. Max error 3e-6 * |dy up|, and
// 3e-6 * |dy| * max(1, |f(gate)|).
template <class T = float>
struct GatedActivationBackwardArgs {
  const T* dy_RF;
  size_t lddy;
  const T* gate_RF;
  size_t ldgate;
  const T* up_RF;
  size_t ldup;
  T* dgate_RF;
  size_t lddgate;
  T* dup_RF;
  size_t lddup;
  size_t rows, n;
  Activation kind;
};

// y = f(x), as computed by the standard library. y may be x.
enum class Function { kTanh, kSquare };

template <class T = float>
struct MapArgs {
  const T* x;
  T* y;
  size_t n;
  Function function;
};

// y (=|+=) a * x. y may be x when assigning. With a = 1 it is a copy, bit for bit.
template <class T = float>
struct ScaleArgs {
  const T* x;
  T* y;
  size_t n;
  T a;
  Store store;
};

// y = x * keep * scale, keep in {0, 1}: dropout, forward and backward. y may be x.
template <class T = float>
struct ApplyKeepArgs {
  const T* x;
  const uint8_t* keep;
  T* y;
  size_t n;
  T scale;
};

// ---- Variances (Re-Attention: the effect of noise in the weights on activations). All are >= 0, at most kMaxVariance.
// Max error 2e-5 relative to the largest element of the row.
inline constexpr float kMaxVariance = 1e18f;

// y_RN += weight_variance * sum_k (mean_rk^2 + variance_rk) + bias_variance, then limited to [0, kMaxVariance]. On
// entry `y` holds the product variance (W o W)^T. `variance` may be null: 0.
template <class T = float>
struct LinearVarianceArgs {
  const T* mean_RK;
  size_t ldmean;
  const T* variance_RK;
  size_t ldvariance;
  T* y_RN;
  size_t ldy;
  size_t rows, n, k;
  T weight_variance, bias_variance;
};

// y = x * (gain * rstd)^2. y may be x. It serves RMS norm too, with the rstd that RMS norm saves.
template <class T = float>
struct LayerNormVarianceArgs {
  const T* x_RD;
  const T* gain_D;
  const T* rstd_R;
  T* y_RD;
  size_t rows, d;
};

// y = Var[max(0, N(mean, variance))]: for kRelu, and as an approximation for GELUs. y may be x. Error relative to x.
template <class T = float>
struct ActivationVarianceArgs {
  const T* mean;
  const T* x;  // the variance
  T* y;
  size_t n;
};

// ---- Reductions, in double. Max error 1e-12 relative to the sum of absolute terms. ----------------------------------
// dot(x, y, n) and sum_squares(x, n): see the table. A returned result is complete when the call returns.

// The sum of <x_r, y_r> over the rows with ids_R[r] >= 0.
template <class T = float>
struct DotRowsArgs {
  const T* x_RD;
  size_t ldx;
  const T* y_RD;
  size_t ldy;
  const int32_t* ids_R;
  size_t rows, d;
};

// ---- Sums on an integer grid (the exact noise path; runtime/privacy explains why). ----------------------------------
// r_i = nearest integer to x_i * scale (ties to even; the product is formed in float and must lie within +-2^30); sum_i
// += sign * r_i; returns sum r_i^2 in double. A second call with the opposite sign undoes the first exactly.
template <class T = float>
struct AccumulateOnGridArgs {
  const T* x;
  int64_t* sum;
  size_t n;
  T scale;
  int32_t sign;  // +1 or -1
};

// ---- Exponentials in double (private drawing charges for their error). Max error 4 ulp for x in [-700, 700]. --------
// y_i = exp(x_i); `y` may be `x`. Below -700: between 0 and exp(-700). Above 700: at least exp(700). NaN: arbitrary.
struct ExpDoubleArgs {
  const double* x;
  double* y;
  size_t n;
};

// ---- Optimizers. Max error 8 ulp per element. -----------------------------------------------------------------------
// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
// w -= rate * (m * correction1 / (sqrt(v * correction2) + epsilon) + decay * w)
// with correction_i = 1 / (1 - beta_i^step), passed in. If row_J is given, g is [n / d, d], and row j of it belongs to
// row row_J[j] of w, m and v, whose rows are dense. No row is named twice.
template <class T = float>
struct AdamArgs {
  T* w;
  T* m;
  T* v;
  const T* g;
  size_t n;
  T rate, beta1, beta2, epsilon, decay, correction1, correction2;
  const uint32_t* row_J = nullptr;
  size_t d = 1;
};

// m = momentum m + g; w -= rate * (m + decay * w). `m` may be null if momentum is 0 (then m = g). row_J is as in Adam.
template <class T = float>
struct SgdArgs {
  T* w;
  T* m;
  const T* g;
  size_t n;
  T rate, momentum, decay;
  const uint32_t* row_J = nullptr;
  size_t d = 1;
};

struct OpTable {
  const char* name;  // "reference", "AVX3", "AVX2", "NEON", ...
  // True if attention and rotary take several records in one call. On the host one record at a time stays in cache.
  bool takes_records;
  uint32_t processors;  // of a device; 0 on the host
  // The largest factor that products can represent; beyond it a factor becomes infinite. 0: that of float32.
  float largest_factor;

  size_t (*packed_size)(size_t n, size_t k);
  void (*pack_weights)(const PackWeightsArgs<>&);
  void (*linear_forward)(const LinearForwardArgs<>&);
  void (*linear_backward_input)(const LinearBackwardInputArgs<>&);
  void (*linear_backward_weight)(const LinearBackwardWeightArgs<>&);
  void (*column_sum)(const ColumnSumArgs<>&);

  void (*layer_norm_forward)(const LayerNormForwardArgs<>&);
  void (*layer_norm_backward)(const LayerNormBackwardArgs<>&);

  void (*rms_norm_forward)(const RmsNormForwardArgs<>&);
  void (*rms_norm_backward)(const RmsNormBackwardArgs<>&);
  void (*rotary)(const RotaryArgs<>&);

  size_t (*attention_scratch_size)(AttentionPass pass, size_t num_keys, size_t head_width);
  void (*attention_forward)(const AttentionForwardArgs<>&);
  void (*attention_backward)(const AttentionBackwardArgs<>&);
  // Keys are kept in panels of this many positions. 0: attention reads rows only, and the next two are null.
  size_t cached_panel;
  void (*keep_keys)(const KeepKeysArgs&);
  void (*attend_cached)(const AttendCachedArgs&);

  void (*activation_forward)(const ActivationForwardArgs<>&);
  void (*activation_backward)(const ActivationBackwardArgs<>&);
  void (*gated_activation_forward)(const GatedActivationForwardArgs<>&);
  void (*gated_activation_backward)(const GatedActivationBackwardArgs<>&);
  void (*map)(const MapArgs<>&);
  void (*scale)(const ScaleArgs<>&);
  void (*clear)(const ClearArgs&);
  void (*apply_keep)(const ApplyKeepArgs<>&);
  void (*draw_keep)(const DrawKeepArgs&);

  void (*linear_variance)(const LinearVarianceArgs<>&);
  void (*layer_norm_variance)(const LayerNormVarianceArgs<>&);
  void (*activation_variance)(const ActivationVarianceArgs<>&);

  void (*embed_forward)(const EmbedForwardArgs<>&);
  void (*embed_half)(const EmbedHalfArgs&);
  void (*embed_variance)(const EmbedVarianceArgs<>&);
  void (*position_ids)(const PositionIdsArgs&);
  void (*scatter_add)(const ScatterAddArgs<>&);
  void (*copy_rows)(const CopyRowsArgs<>&);
  void (*gather_columns)(const GatherColumnsArgs<>&);

  void (*scale_half)(const ScaleHalfArgs&);
  void (*multiply_half)(const MultiplyHalfArgs&);

  void (*multiply_panels)(const MultiplyPanelsArgs&);
  void (*embed_panels)(const EmbedPanelsArgs&);

  void (*softmax_start)(const SoftmaxStartArgs<>&);
  void (*softmax_stats)(const SoftmaxStatsArgs<>&);
  void (*cross_entropy_loss)(const CrossEntropyLossArgs<>&);
  void (*cross_entropy_gradient)(const CrossEntropyGradientArgs<>&);
  void (*softmax_gradient)(const SoftmaxGradientArgs<>&);
  void (*target_logits)(const TargetLogitsArgs<>&);
  void (*target_gradient)(const TargetGradientArgs<>&);
  void (*class_cross_entropy)(const ClassCrossEntropyArgs<>&);
  void (*clip_rows)(const ClipRowsArgs<>&);
  void (*clip_rows_backward)(const ClipRowsBackwardArgs<>&);
  void (*mean_rows)(const MeanRowsArgs<>&);
  void (*mean_rows_backward)(const MeanRowsBackwardArgs<>&);

  double (*dot)(const float* x, const float* y, size_t n);
  double (*dot_rows)(const DotRowsArgs<>&);
  double (*sum_squares)(const float* x, size_t n);
  double (*accumulate_on_grid)(const AccumulateOnGridArgs<>&);
  void (*exp_double)(const ExpDoubleArgs&);

  void (*adam)(const AdamArgs<>&);
  void (*sgd)(const SgdArgs<>&);

  // Scoring on a device. Null in a build for inference, except for a device.
  void (*score_tiles)(const ScoreTilesArgs<>&);
  size_t (*top_k_scratch_size)(size_t rows, size_t n, size_t k);
  void (*top_k)(const TopKArgs&);

  // Gradients of many records in one call; null in tables of the host, except for the reference.
  void (*record_weight_gradients)(const RecordWeightGradientsArgs<>&);
  void (*record_scatter_add)(const RecordScatterAddArgs<>&);
  void (*add_rows)(const AddRowsArgs<>&);
  void (*squares_of_rows)(const SquaresOfRowsArgs<>&);
  void (*accumulate_rows_on_grid)(const AccumulateRowsOnGridArgs<>&);
  void (*accumulate_slots_on_grid)(const AccumulateSlotsOnGridArgs<>&);

  // Adding outer products as integers; null in a device's table.
  void (*quantise_rows)(const QuantiseRowsArgs&);
  double (*outer_squares)(const OuterSquaresArgs<>&);
  double (*integer_outer_squares)(const OuterSquaresArgs<int16_t>&);
  void (*accumulate_outer)(const AccumulateOuterArgs&);

  // The end of a step in a device's memory; null in tables of the host, except for the reference.
  void (*noised_sum)(const NoisedSumArgs<>&);
  void (*add_squared_moves)(const AddSquaredMovesArgs<>&);

  // Releases what pack_weights allocated beside the buffer; null if it allocates nothing. Call it once for each packed
  // buffer.
  void (*release_packed)(float* packed);
};

// A build for inference sets the ops to null that only training and privacy call: backward, softmax with cross-entropy,
// masks, gathering and clearing, reductions, sums on a grid, exp_double, optimizers. linear_backward_input stays,
// because attention uses it.
template <class Function>
constexpr Function* ForTraining(Function* op) {
#ifdef WISP_INFERENCE_ONLY
  (void)op;
  return nullptr;
#else
  return op;
#endif
}

// The specification, in float: slow, plain loops.
const OpTable& ReferenceOps();

// The fastest table for this processor, chosen once.
const OpTable& BestOps();

// For inference only, with one session for each thread: linear layers by XNNPACK. Null if this build lacks XNNPACK or
// it does not run here. x of linear_forward must be readable for 16 bytes past its end.
const OpTable* XnnpackOps();

// For inference only: the fastest table with linear layers over 8-bit integers. Weights and inputs are quantised
// symmetrically by row, and apart from that products are exact: each factor is off by up to half of 1/127 of the
// largest of its row. A row's result does not depend on other rows. A row of x with NaN or infinity gives NaNs. Packed
// weights take a quarter of the memory. Null if we have no vector code for this processor.
const OpTable* Int8Ops();

// Every table this build has and this processor can run, reference first. For tests and `--ops`.
std::span<const OpTable* const> AllOps();

// Null if this build or processor has no such table.
const OpTable* FindOps(std::string_view name);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_KERNELS_H_
