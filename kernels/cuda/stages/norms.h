// Layer norm and RMS norm: a warp handles one row.
#ifndef WISP_KERNELS_CUDA_STAGES_NORMS_H_
#define WISP_KERNELS_CUDA_STAGES_NORMS_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

struct LayerNormStage {
  using Args = LayerNormForwardArgs<>;
  static constexpr StageKind kKind = StageKind::kLayerNorm;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    const float inverse = 1.0f / static_cast<float>(a.d);
    for (size_t r = GetThread(block) / kWarp; r < a.rows; r += CountThreads(block) / kWarp) {
      const float* x = a.x_RD + r * a.d;
      float sum = 0, squares = 0;
      for (size_t i = Lane(); i < a.d; i += kWarp) sum += x[i];
      const float mean = WarpSum(sum) * inverse;
      for (size_t i = Lane(); i < a.d; i += kWarp) squares += (x[i] - mean) * (x[i] - mean);
      const float rstd = 1.0f / sqrtf(WarpSum(squares) * inverse + a.epsilon);
      for (size_t i = Lane(); i < a.d; i += kWarp) {
        a.y_RD[r * a.d + i] = (x[i] - mean) * rstd * a.gain_D[i] + a.bias_D[i];
      }
      if (Lane() == 0) {
        a.mean_R[r] = mean;
        a.rstd_R[r] = rstd;
      }
    }
  }
};

struct RmsNormStage {
  using Args = RmsNormForwardArgs<>;
  static constexpr StageKind kKind = StageKind::kRmsNorm;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t r = GetThread(block) / kWarp; r < a.rows; r += CountThreads(block) / kWarp) {
      const float* x = a.x_RD + r * a.d;
      float squares = 0;
      for (size_t i = Lane(); i < a.d; i += kWarp) squares += x[i] * x[i];
      const float mean_square = a.d > 0 ? WarpSum(squares) / static_cast<float>(a.d) : 0.0f;
      const float rstd = 1.0f / sqrtf(mean_square + a.epsilon);
      for (size_t i = Lane(); i < a.d; i += kWarp) a.y_RD[r * a.d + i] = x[i] * rstd * a.gain_D[i];
      if (Lane() == 0) a.rstd_R[r] = rstd;
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_NORMS_H_
