// The end of a training step: adds noise to the sum, and records how much each parameter moves.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"

namespace wisp::kernels::cuda {
namespace {

// Rounds as the processor does: first the whole number, then the product.
void NoisedSum(const NoisedSumArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) { a.y[i] = __fmul_rn(__ll2float_rn(a.sum[i] + a.noise[i]), a.scale); });
}

constexpr unsigned kThreads = 256;

// One block for each row.
__global__ void __launch_bounds__(kThreads) AddRowMoves(AddSquaredMovesArgs<> a) {
  __shared__ Shared<double, kThreads / kWarp> scratch;
  for (size_t i = blockIdx.x; i < a.rows; i += gridDim.x) {
    const size_t r = a.row_R == nullptr ? i : a.row_R[i];
    double sum = 0;
    for (size_t j = threadIdx.x; j < a.n; j += kThreads) {
      const float move =
          a.v_RN == nullptr ? a.size : fminf(1.0f, a.size / (sqrtf(a.v_RN[r * a.n + j] * a.correction) + a.epsilon));
      sum += static_cast<double>(move) * static_cast<double>(move);
    }
    sum = BlockSum<kThreads>(sum, scratch);
    if (threadIdx.x == 0) a.variance_R[r] += static_cast<float>(a.scale * (sum / static_cast<double>(a.n)));
    __syncthreads();
  }
}

void AddSquaredMoves(const AddSquaredMovesArgs<>& a) {
  if (a.rows == 0 || a.n == 0) return;
  Launch<AddRowMoves>({.blocks = BlocksFor(a.rows, 1), .threads = kThreads}, a);
}

}  // namespace

void FillStep(OpTable& table) {
  table.noised_sum = ForTraining(NoisedSum);
  table.add_squared_moves = ForTraining(AddSquaredMoves);
}

}  // namespace wisp::kernels::cuda
