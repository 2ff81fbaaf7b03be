// Looks rows up, and multiplies rows in place.
#ifndef WISP_KERNELS_CUDA_STAGES_ROWS_H_
#define WISP_KERNELS_CUDA_STAGES_ROWS_H_

#include "kernels/cuda/half.h"
#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

struct EmbedStage {
  using Args = EmbedForwardArgs<>;
  static constexpr StageKind kKind = StageKind::kEmbed;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t at = GetThread(block); at < a.rows * a.d; at += CountThreads(block)) {
      const auto [t, i] = SplitBy(at, a.d);
      const int32_t id = a.ids_T[t];
      float y = 0;
      if (id >= 0) {
        const size_t position = a.position_T != nullptr ? static_cast<size_t>(a.position_T[t]) : t;
        y = a.scale * a.table_MD[static_cast<size_t>(id) * a.d + i];
        if (a.positions_TD != nullptr) y += a.positions_TD[position * a.d + i];
      }
      a.y_TD[t * a.d + i] = y;
    }
  }
};

struct EmbedHalfStage {
  using Args = EmbedHalfArgs;
  static constexpr StageKind kKind = StageKind::kEmbedHalf;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t at = GetThread(block); at < a.rows * a.d; at += CountThreads(block)) {
      const auto [t, i] = SplitBy(at, a.d);
      const int32_t id = a.ids_T[t];
      float y = 0;
      if (id >= 0) {
        const size_t from = static_cast<size_t>(id) * a.d + i;
        y = __fmul_rn(a.scale, a.half_table_MD != nullptr ? AsFloat(a.half_table_MD[from]) : a.table_MD[from]);
        if (a.half_positions_TD != nullptr) {
          y = __fadd_rn(y, AsFloat(a.half_positions_TD[t * a.d + i]));
        } else if (a.positions_TD != nullptr) {
          y = __fadd_rn(y, a.positions_TD[t * a.d + i]);
        }
      }
      a.y_TD[t * a.d + i] = y;
    }
  }
};

// A warp for each row.
struct MultiplyHalfStage {
  using Args = MultiplyHalfArgs;
  static constexpr StageKind kKind = StageKind::kMultiplyHalf;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t j = GetThread(block) / kWarp; j < a.n; j += CountThreads(block) / kWarp) {
      float sum = 0;
      for (size_t i = Lane(); i < a.k; i += kWarp) sum += a.x_K[i] * AsFloat(a.w_NK[j * a.ldw + i]);
      sum = WarpSum(sum);
      if (Lane() == 0) a.y_N[j] = sum + (a.bias_N != nullptr ? a.bias_N[j] : 0.0f);
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_ROWS_H_
