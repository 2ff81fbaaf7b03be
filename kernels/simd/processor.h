// Finds which of the compiled instruction sets this processor has. Include before any Highway header.
#ifndef WISP_KERNELS_SIMD_PROCESSOR_H_
#define WISP_KERNELS_SIMD_PROCESSOR_H_

#include "kernels/simd/targets.h"

#include <cstdint>

namespace wisp::kernels {

// Highway's target bits; a lower one is a better target. No allocation, thread-safe.
int64_t ProcessorTargets();

// The sets that the processor has, compiled or not. A link has one definition: programs and tests use kernels/highway/,
// products use kernels/stand_in/.
int64_t FoundTargets();

// A bit of FoundTargets that Highway does not use: the kernels for VNNI in 256-bit vectors must not run. Only programs
// and tests set it.
inline constexpr int64_t kHiddenVnni = int64_t{1} << 63;

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_SIMD_PROCESSOR_H_
