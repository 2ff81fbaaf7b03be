#include "runtime/train/gain_sums.h"

#include <algorithm>
#include <cmath>

namespace wisp {

double RecordNorm() { return std::sqrt(1 + kSquareWeight * kSquareWeight); }

double GainNorm() { return std::ceil(static_cast<double>(kGainSteps) * RecordNorm()); }

uint64_t GainSigma(double noise_multiplier) { return static_cast<uint64_t>(std::ceil(noise_multiplier * GainNorm())); }

void PutOnGrid(std::span<const double> gains, std::span<int64_t> on_grid) {
  std::fill(on_grid.begin(), on_grid.end(), 0);
  double squares = 0;
  for (const double gain : gains) squares += gain * gain;
  if (!std::isfinite(squares)) return;
  const double length = std::max(1.0, std::sqrt(squares));
  // Rounding towards zero, and GainNorm's rounding up, keep the vector within the norm.
  for (size_t k = 0; k < gains.size(); ++k) {
    const double gain = gains[k] / length;
    on_grid[k] = static_cast<int64_t>(gain * kGainSteps);
    on_grid[gains.size() + k] = static_cast<int64_t>(kSquareWeight * gain * gain * kGainSteps);
  }
}

}  // namespace wisp
