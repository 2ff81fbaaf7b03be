// The reference for the ops that finish a step: a part of reference.h.
#ifndef WISP_KERNELS_REFERENCE_STEP_H_
#define WISP_KERNELS_REFERENCE_STEP_H_

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

inline void NoisedSum(const NoisedSumArgs<>& a) {
  for (size_t i = 0; i < a.n; ++i) a.y[i] = static_cast<float>(a.sum[i] + a.noise[i]) * a.scale;
}

inline void AddSquaredMoves(const AddSquaredMovesArgs<>& a) {
  for (size_t j = 0; j < a.rows; ++j) {
    const size_t r = a.row_R == nullptr ? j : a.row_R[j];
    double sum = 0;
    for (size_t i = 0; i < a.n; ++i) {
      const float move = a.v_RN == nullptr
                             ? a.size
                             : std::min(1.0f, a.size / (std::sqrt(a.v_RN[r * a.n + i] * a.correction) + a.epsilon));
      sum += static_cast<double>(move) * static_cast<double>(move);
    }
    if (a.n > 0) a.variance_R[r] += static_cast<float>(a.scale * (sum / static_cast<double>(a.n)));
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_STEP_H_
