// Which of the compiled instruction sets this processor has. Include before any Highway header.
#ifndef WISP_KERNELS_SIMD_PROCESSOR_H_
#define WISP_KERNELS_SIMD_PROCESSOR_H_

#include "kernels/simd/targets.h"

#include <cstdint>

namespace wisp::kernels {

// Highway's target bits; a lower one is a better target. No allocation, thread-safe.
int64_t ProcessorTargets();

// The same before those that are not compiled are left out. A link has one definition: that of kernels/highway/ in
// programs and tests, that of kernels/stand_in/ in products.
int64_t FoundTargets();

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_SIMD_PROCESSOR_H_
