// Builds the SIMD tables. For each instruction set a table starts as a copy of the reference, and every group of ops
// replaces its entries.
//
// A group is one unit, kernels/simd/<group>.cc:
//
//   #include "kernels/simd/fill.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/simd/<group>.cc"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace wisp::kernels::HWY_NAMESPACE {
//   namespace { ... the ops ... }
//   void FillGroup(OpTable& table) { table.some_op = SomeOp; }
//   }
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE
//   namespace wisp::kernels { WISP_EXPORT_FILL(FillGroup) }
//   #endif
//
// simd.cc chooses the instruction set once; no op dispatches again.
#ifndef WISP_KERNELS_SIMD_FILL_H_
#define WISP_KERNELS_SIMD_FILL_H_

#include "kernels/simd/targets.h"

#include <cstdint>

#include "kernels/kernels.h"

namespace wisp::kernels {

// `target` is one Highway target bit that this processor supports. Unknown targets leave the table unchanged.
void FillGemm(int64_t target, OpTable& table);        // products, also with panels; column_sum
void FillSoftmax(int64_t target, OpTable& table);     // softmax_stats, cross_entropy_gradient
void FillCachedKeys(int64_t target, OpTable& table);  // keep_keys
void FillAttention(int64_t target, OpTable& table);   // attention_forward
void FillAttentionBackward(int64_t target, OpTable& table);
void FillNorm(int64_t target, OpTable& table);         // layer norm, RMS norm
void FillRotary(int64_t target, OpTable& table);       // rotary
void FillActivation(int64_t target, OpTable& table);   // activations, gated activations
void FillElementwise(int64_t target, OpTable& table);  // scale, apply_keep, target_gradient
void FillVariance(int64_t target, OpTable& table);     // linear_variance, layer_norm_variance, activation_variance
void FillExpDouble(int64_t target, OpTable& table);    // exp_double
void FillEmbedding(int64_t target, OpTable& table);    // embed_forward, scatter_add
void FillHalf(int64_t target, OpTable& table);         // scale_half, multiply_half, embed_half
void FillReduce(int64_t target, OpTable& table);       // dot, dot_rows, target_logits, sum_squares, accumulate_on_grid
void FillIntegers(int64_t target, OpTable& table);     // adding outer products as integers
void FillOptimizer(int64_t target, OpTable& table);    // adam, sgd

// `start` with the ops of one instruction set. Both references give the same result.
OpTable BuildTable(int64_t target, const OpTable& start);

using FillFunction = void (*)(OpTable&);

}  // namespace wisp::kernels

// Defines Name(target, table), which calls N_<target>::Name(table). HWY_CHOOSE_X is null if X is not compiled.
#define WISP_EXPORT_FILL(Name)                                          \
  void Name(int64_t target, OpTable& table) {                           \
    FillFunction fill = nullptr;                                        \
    if (target == HWY_AVX3) fill = HWY_CHOOSE_AVX3(Name);               \
    if (target == HWY_AVX2) fill = HWY_CHOOSE_AVX2(Name);               \
    if (target == HWY_SSE4) fill = HWY_CHOOSE_SSE4(Name);               \
    if (target == HWY_NEON) fill = HWY_CHOOSE_NEON(Name);               \
    if (target == HWY_WASM) fill = HWY_CHOOSE_WASM(Name);               \
    if (target == HWY_STATIC_TARGET) fill = &HWY_STATIC_DISPATCH(Name); \
    if (fill != nullptr) fill(table);                                   \
  }

#endif  // WISP_KERNELS_SIMD_FILL_H_
