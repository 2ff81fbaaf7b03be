// Rotary positions: one thread for each pair.
#ifndef WISP_KERNELS_CUDA_STAGES_ROTARY_H_
#define WISP_KERNELS_CUDA_STAGES_ROTARY_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

// Rotates pair i in all heads of a row at `position`.
__device__ inline void RotatePair(const RotaryArgs<>& a, float* row, size_t position, size_t i) {
  const size_t pairs = a.rotated / 2;
  const auto [head, p] = SplitBy(i, pairs);
  const bool halves = a.pairs == RotaryPairs::kHalves;
  float* x = row + head * a.head_width;
  float& first = x[halves ? p : 2 * p];
  float& second = x[halves ? p + pairs : 2 * p + 1];
  const float c = a.cos_TP[position * pairs + p], sine = a.sin_TP[position * pairs + p];
  const float s = a.rotation == Rotation::kInverse ? -sine : sine, before = first;
  first = before * c - second * s;
  second = before * s + second * c;
}

// The rotation for one record.
struct RotaryStage {
  using Args = RotaryArgs<>;
  static constexpr StageKind kKind = StageKind::kRotary;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    const size_t of_row = a.heads * (a.rotated / 2);
    for (size_t i = GetThread(block); i < a.rows * of_row; i += CountThreads(block)) {
      const auto [r, pair] = SplitBy(i, of_row);
      RotatePair(a, a.x_RD + r * a.ldx, a.first_position + r, pair);
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_ROTARY_H_
