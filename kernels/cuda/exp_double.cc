// Exponentials in double.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"

namespace wisp::kernels::cuda {
namespace {

// CUDA's exp has an error of at most 1 unit in the last place.
void ExpDouble(const ExpDoubleArgs& a) {
  ForEach(a.n, [a] __device__(size_t i) { a.y[i] = exp(fmin(fmax(a.x[i], -700.0), 700.0)); });
}

}  // namespace

void FillExpDouble(OpTable& table) { table.exp_double = ForTraining(ExpDouble); }

}  // namespace wisp::kernels::cuda
