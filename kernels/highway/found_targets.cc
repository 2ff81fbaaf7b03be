// For programs and tests of this build: asks Highway's own library, so that tests can restrict the instruction sets
// (tests/bits). Products use kernels/stand_in/.
#include "kernels/simd/processor.h"

#include "hwy/targets.h"

namespace wisp::kernels {

int64_t FoundTargets() { return hwy::SupportedTargets(); }

}  // namespace wisp::kernels
