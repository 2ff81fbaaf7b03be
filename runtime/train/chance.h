// How far noise alone gets by chance.
#ifndef WISP_RUNTIME_TRAIN_CHANCE_H_
#define WISP_RUNTIME_TRAIN_CHANCE_H_

#include <cmath>

namespace wisp {

// The standard deviations that one of `count` Gaussians exceeds in expectation, up to 1e-9; 0 for counts up to 2.
inline double DeviationsByChance(double count) {
  double low = 0, high = 40;
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) * count > 1 ? low : high) = middle;
  }
  return high;
}

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CHANCE_H_
