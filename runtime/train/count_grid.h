// The integer grid of released counts: 2^30 steps per unit of sensitivity, so that a record's shares add up exactly and
// its L2 norm is at most one unit. Histograms of items and of pairs of items use it.
#ifndef WISP_RUNTIME_TRAIN_COUNT_GRID_H_
#define WISP_RUNTIME_TRAIN_COUNT_GRID_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace wisp {

inline constexpr double kCountSteps = 1073741824.0;

// A record adds this to each of its n different counts: floor(2^30 / sqrt(n)). The squares sum to at most 2^60.
inline int64_t CountShare(size_t n) {
  return static_cast<int64_t>(
      std::floor(kCountSteps / std::sqrt(static_cast<double>(std::max<size_t>(1, n))) * (1 - 1e-15)));
}

inline uint64_t CountSigma(double noise_multiplier) {
  return static_cast<uint64_t>(std::ceil(noise_multiplier * kCountSteps));
}

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_COUNT_GRID_H_
