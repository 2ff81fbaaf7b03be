#include "runtime/train/run/shrink_rows.h"

#include <algorithm>

namespace wisp {

double ComputeNoiseVariance(const OptimizerOptions& optimizer, uint64_t num_steps, uint64_t planned_steps) {
  double sum = 0;
  for (uint64_t step = 0; step < num_steps; ++step) {
    const double rate = LearningRate(optimizer, static_cast<double>(step), planned_steps);
    sum += rate * rate;
  }
  return sum;
}

namespace {

void ShrinkRow(std::span<const float> start, double noise, std::span<float> row) {
  double moved = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double change = static_cast<double>(row[i]) - static_cast<double>(start[i]);
    moved += change * change;
  }
  const double kept = moved > 0 ? std::max(0.0, 1 - noise / moved) : 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double from = start[i];
    row[i] = static_cast<float>(from + kept * (static_cast<double>(row[i]) - from));
  }
}

}  // namespace

void ShrinkRows(const Architecture& architecture, std::span<const float> start, double variance_of_noise,
                std::span<float> weights) {
  for (const ParameterSpec& p : ListParameters(architecture)) {
    if (!p.trained || (p.role != ParameterRole::kItemTable && p.role != ParameterRole::kOutputTable)) continue;
    for (size_t r = 0; r < p.rows; ++r) {
      const size_t at = p.offset + r * p.cols;
      ShrinkRow(start.subspan(at, p.cols), p.cols * variance_of_noise, weights.subspan(at, p.cols));
    }
  }
}

}  // namespace wisp
