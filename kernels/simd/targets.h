// The instruction sets that the SIMD tables are compiled for. Include before any Highway header, in every unit of
// kernels/simd/.
//
// x86-64: AVX3 (AVX-512 F, VL, DQ, BW), AVX2 with FMA, SSE4. Left out: AVX3_DL and SSSE3, whose instructions gain
// nothing here, and Highway's scalar target: a processor without SSE4 runs the reference table. Builds for size (-Os)
// and with sanitizers leave out AVX3 too. It is a tenth of the library, and computers that use such a build seldom have
// it.
// Arm: NEON, 128 bits, also on processors with SVE (kernels/simd/processor.cc). Left out: SVE. Its vectors have no size
// at compile time, so no array or struct can hold them. The tiles of gemm.cc, half.cc and kernels/int8/portable.cc and
// the pairs of normal-inl.h, activation.cc and rotary.cc (activation, rotary, variance) do not compile; the other
// groups do. SVE2 on phones has 128 bits as well, so tables for only some groups would gain nothing there. Only servers
// have wider vectors (Neoverse V1, A64FX).
// WebAssembly and others: what the compiler is told to target.
#ifndef WISP_KERNELS_SIMD_TARGETS_H_
#define WISP_KERNELS_SIMD_TARGETS_H_

#ifdef HWY_TARGETS
#error "kernels/simd/targets.h must come before any Highway header"
#endif

#if defined(__x86_64__) && !defined(HWY_COMPILE_ONLY_STATIC)
// The best "baseline" replaces Highway's scalar target, which it compiles unconditionally. Its code is called only
// after checking the processor (kernels/simd/simd.cc), and units outside kernels/simd/ are not affected.
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif

// AVX3_DL, SSSE3, SVE2_128, SVE_256, SVE2, SVE. Highway defines their macros later; they expand then.
#if defined(__OPTIMIZE_SIZE__) || defined(WISP_WITHOUT_AVX512)
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL | HWY_SSSE3 | HWY_SVE2_128 | HWY_SVE_256 | HWY_SVE2 | HWY_SVE)
#else
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSSE3 | HWY_SVE2_128 | HWY_SVE_256 | HWY_SVE2 | HWY_SVE)
#endif

#include "hwy/detect_targets.h"

#endif  // WISP_KERNELS_SIMD_TARGETS_H_
