// Groups of ops that have no SIMD unit: their entries stay those of the reference.
// A group that gets a unit loses its line here (the linker says so if it is forgotten).
#include "kernels/simd/fill.h"

namespace wisp::kernels {

void FillAttention(int64_t, OpTable&) {}
void FillNorm(int64_t, OpTable&) {}
void FillElementwise(int64_t, OpTable&) {}
void FillEmbedding(int64_t, OpTable&) {}
void FillReduce(int64_t, OpTable&) {}
void FillOptimizer(int64_t, OpTable&) {}

}  // namespace wisp::kernels
