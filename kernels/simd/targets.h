// Which instruction sets the SIMD tables are compiled for. Include before any Highway header, in every unit of
// kernels/simd/.
//
// x86-64: AVX3 (AVX-512 F, VL, DQ, BW), AVX2 with FMA, SSE4. Left out: AVX3_DL and SSSE3 (their instructions buy these
// kernels nothing) and Highway's scalar target: a processor without SSE4 runs the reference table.
// Built for size (-Os) or with sanitizers, AVX3 too: the computers that such a build is for seldom have it, and it is a
// tenth of the library. Arm: NEON, 128 bits, on processors with SVE too (kernels/simd/processor.cc). Left out: SVE. Its
// vectors have no size when compiled, so that they can be held in no array or struct: the tiles of gemm.cc, half.cc and
// kernels/int8/portable.cc and the pairs of normal-inl.h, activation.cc and rotary.cc (activation, rotary, variance) do
// not compile; the other groups do.
// Phones' SVE2 has 128 bits as well: tables made half of it would win there nothing, and only servers have more
// (Neoverse V1, A64FX).
// WebAssembly and others: what the compiler is told to target.
#ifndef WISP_KERNELS_SIMD_TARGETS_H_
#define WISP_KERNELS_SIMD_TARGETS_H_

#ifdef HWY_TARGETS
#error "kernels/simd/targets.h must come before any Highway header"
#endif

#if defined(__x86_64__) && !defined(HWY_COMPILE_ONLY_STATIC)
// The best "baseline" is what Highway compiles unconditionally in place of its scalar target. Nothing of it is called
// without asking the processor first (kernels/simd/simd.cc), and units outside kernels/simd/ are not affected.
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif

// AVX3_DL, SSSE3, SVE2_128, SVE_256, SVE2, SVE. Their macros are not defined yet at this point, but expand later.
#if defined(__OPTIMIZE_SIZE__) || defined(WISP_WITHOUT_AVX512)
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL | HWY_SSSE3 | HWY_SVE2_128 | HWY_SVE_256 | HWY_SVE2 | HWY_SVE)
#else
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSSE3 | HWY_SVE2_128 | HWY_SVE_256 | HWY_SVE2 | HWY_SVE)
#endif

#include "hwy/detect_targets.h"

#endif  // WISP_KERNELS_SIMD_TARGETS_H_
