#include "kernels/simd/processor.h"

#include "hwy/targets.h"

namespace wisp::kernels {

int64_t ProcessorTargets() {
#if HWY_ARCH_ARM_A64
  // Every 64-bit Arm has NEON. Highway would report it only together with AES, which a Raspberry Pi 4's Cortex-A72
  // lacks and nothing here uses; and it would print a warning on standard error.
  return HWY_NEON & (HWY_TARGETS);
#elif ((HWY_TARGETS) & ((HWY_TARGETS)-1)) == 0
  // If only one set is compiled, nothing is checked: Highway's library may be built for less (WebAssembly).
  return HWY_TARGETS;
#else
  return FoundTargets() & (HWY_TARGETS);
#endif
}

}  // namespace wisp::kernels
