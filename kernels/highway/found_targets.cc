// For programs and tests of this build: Highway's own library is asked, so that they can be held to a set (tests/bits).
// Products have kernels/stand_in/.
#include "kernels/simd/processor.h"

#include "hwy/targets.h"

namespace wisp::kernels {

int64_t FoundTargets() { return hwy::SupportedTargets(); }

}  // namespace wisp::kernels
