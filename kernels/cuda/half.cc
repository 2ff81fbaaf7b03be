// Tables of halves, read where they lie.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/half.h"

namespace wisp::kernels::cuda {
namespace {

void ScaleHalf(const ScaleHalfArgs& a) {
  ForEach(a.n, [a] __device__(size_t i) { Put(a.y[i], a.a * FloatOf(a.x[i]), a.store); });
}

// A warp for each row.
__global__ void MultiplyRows(MultiplyHalfArgs a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t j = GlobalThread() / kWarp; j < a.n; j += warps) {
    float sum = 0;
    for (size_t i = Lane(); i < a.k; i += kWarp) sum += a.x_K[i] * FloatOf(a.w_NK[j * a.ldw + i]);
    sum = WarpSum(sum);
    if (Lane() == 0) a.y_N[j] = sum + (a.bias_N != nullptr ? a.bias_N[j] : 0.0f);
  }
}

void MultiplyHalf(const MultiplyHalfArgs& a) {
  if (a.n > 0) Launch(MultiplyRows, {.blocks = BlocksFor(a.n * kWarp, 256)}, a);
}

}  // namespace

void FillHalf(OpTable& table) {
  table.scale_half = ScaleHalf;
  table.multiply_half = MultiplyHalf;
}

}  // namespace wisp::kernels::cuda
