// Chooses the copy of a function for a target, in units of kernels/int8/ that Highway compiles once for each
// instruction set. Include before any Highway header.
#ifndef WISP_KERNELS_INT8_CHOOSE_H_
#define WISP_KERNELS_INT8_CHOOSE_H_

#include "kernels/simd/targets.h"

// N_<target>::Name, or null if it is not compiled. HWY_CHOOSE_X is null if X is not compiled.
#define WISP_INT8_CHOOSE(target, Name)                          \
  ((target) == HWY_AVX3            ? HWY_CHOOSE_AVX3(Name)      \
   : (target) == HWY_AVX2          ? HWY_CHOOSE_AVX2(Name)      \
   : (target) == HWY_SSE4          ? HWY_CHOOSE_SSE4(Name)      \
   : (target) == HWY_NEON          ? HWY_CHOOSE_NEON(Name)      \
   : (target) == HWY_WASM          ? HWY_CHOOSE_WASM(Name)      \
   : (target) == HWY_STATIC_TARGET ? &HWY_STATIC_DISPATCH(Name) \
                                   : nullptr)

#endif  // WISP_KERNELS_INT8_CHOOSE_H_
