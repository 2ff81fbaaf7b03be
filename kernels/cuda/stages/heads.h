// Rows of representations: a warp for each, sums in double.
#ifndef WISP_KERNELS_CUDA_STAGES_HEADS_H_
#define WISP_KERNELS_CUDA_STAGES_HEADS_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

__device__ inline double WideDot(const float* x, const float* y, size_t n) {
  double sum = 0;
  for (size_t i = Lane(); i < n; i += kWarp) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return WarpSum(sum);
}

// min(1, bound / ||x||); 1 if bound is 0.
__device__ inline double ClipScale(const float* x, size_t n, double bound) {
  if (bound == 0) return 1;
  const double norm = sqrt(WideDot(x, x, n));
  return bound < norm ? bound / norm : 1;
}

__device__ inline float ColumnMean(const float* x, size_t rows, size_t d) {
  float sum = 0;
  for (size_t r = 0; r < rows; ++r) sum = __fadd_rn(sum, x[r * d]);
  return rows > 0 ? __fmul_rn(sum, 1.0f / static_cast<float>(rows)) : 0.0f;
}

// Arguments for one record.
struct MeanRowsStageArgs {
  const float* x_RD;
  float* y_D;
  size_t rows, d;
};

struct MeanRowsStage {
  using Args = MeanRowsStageArgs;
  static constexpr StageKind kKind = StageKind::kMeanRows;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < a.d; i += CountThreads(block)) a.y_D[i] = ColumnMean(a.x_RD + i, a.rows, a.d);
  }
};

struct ClipRowsStage {
  using Args = ClipRowsArgs<>;
  static constexpr StageKind kKind = StageKind::kClipRows;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t r = GetThread(block) / kWarp; r < a.rows; r += CountThreads(block) / kWarp) {
      const double scale = ClipScale(a.x_RD + r * a.d, a.d, a.bound);
      for (size_t i = r * a.d + Lane(); i < (r + 1) * a.d; i += kWarp) {
        const float y = static_cast<float>(scale * static_cast<double>(a.x_RD[i]));
        a.y_RD[i] = a.noise_RD != nullptr ? __fadd_rn(y, a.noise_RD[i]) : y;
      }
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_HEADS_H_
