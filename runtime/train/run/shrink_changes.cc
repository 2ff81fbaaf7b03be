#include "runtime/train/run/shrink_changes.h"

#include <algorithm>
#include <cmath>

#include "runtime/train/chance.h"

namespace wisp {

Status CheckNoiseIsKnown(const TrainingOptions& o, std::span<const float> start) {
  if (start.empty() || !IsPrivate(o) || o.optimizer.kind == OptimizerKind::kSgd || !o.base.empty())
    return InvalidArgument(
        "shrinking changes (shrink_changes) is for private runs with Adam that start from a model and hold all of it");
  if (o.privacy.noise_schedule != NoiseSchedule::kConstant || o.privacy.noise_lambda > 0)
    return Unsupported("shrinking changes (shrink_changes) is for noise of one size that no step takes back");
  return OkStatus();
}

double ComputeNoiseVariance(const OptimizerOptions& o, uint64_t num_steps, uint64_t planned_steps) {
  const double beta = o.beta1;
  // How far a step's gradient moves a weight in that step and, by momentum, in those after it.
  double move = 0, sum = 0;
  for (uint64_t step = num_steps; step-- > 0;) {
    const double rate = LearningRate(o, static_cast<double>(step), planned_steps);
    move = beta * move + rate * (1 - beta) / (1 - std::pow(beta, static_cast<double>(step + 1)));
    sum += move * move;
  }
  return sum;
}

namespace {

double ComputeMovedSquares(std::span<const float> start, std::span<const float> row) {
  double moved = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double change = static_cast<double>(row[i]) - static_cast<double>(start[i]);
    moved += change * change;
  }
  return moved;
}

// Keeps of a group's change what is beyond noise; nothing if it is no further than `most`, both as squares.
void ShrinkGroup(std::span<const float> start, double noise, double most, std::span<float> group) {
  const double moved = ComputeMovedSquares(start, group);
  const double kept = moved > most ? std::max(0.0, 1 - noise / moved) : 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const double from = start[i];
    group[i] = static_cast<float>(from + kept * (static_cast<double>(group[i]) - from));
  }
}

bool HasRowsOfItems(const ParameterSpec& p) {
  return p.role == ParameterRole::kItemTable || p.role == ParameterRole::kOutputTable;
}

// The mean of `degrees` squares of standard Gaussians that is so many deviations above 1 (Wilson and Hilferty 1931).
double MeanSquareAt(double deviations, double degrees) {
  const double variance = 2 / (9 * degrees);
  return std::pow(1 - variance + deviations * std::sqrt(variance), 3);
}

// How far one of `count` rows of `cols` numbers, or of 20 if they are fewer, moves by noise alone; as a square.
double MostByChance(size_t count, size_t cols, double variance_of_noise) {
  const auto rows = static_cast<double>(std::max<size_t>(count, 20)), degrees = static_cast<double>(cols);
  return degrees * variance_of_noise * MeanSquareAt(DeviationsByChance(rows), degrees);
}

}  // namespace

void ShrinkChanges(const Architecture& architecture, std::span<const float> start, double variance_of_noise,
                   std::span<float> weights) {
  for (const ParameterSpec& p : ListParameters(architecture)) {
    // A table of items that follows from a tower would no longer fit to it.
    if (!p.trained || p.role == ParameterRole::kItemTower) continue;
    const size_t rows = HasRowsOfItems(p) ? p.rows : 1, cols = p.size() / rows;
    const double noise = static_cast<double>(cols) * variance_of_noise;
    const double most = rows > 1 ? MostByChance(rows, cols, variance_of_noise) : noise;
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = p.offset + r * cols;
      ShrinkGroup(start.subspan(at, cols), noise, most, weights.subspan(at, cols));
    }
  }
}

void RestoreRows(const Architecture& architecture, std::span<const float> start, std::span<const int32_t> items,
                 double variance_of_noise, std::span<float> weights) {
  for (const ParameterSpec& p : ListParameters(architecture)) {
    if (!p.trained || !HasRowsOfItems(p)) continue;
    const double most = MostByChance(items.size(), p.cols, variance_of_noise);
    for (const int32_t item : items) {
      const size_t at = p.offset + static_cast<size_t>(item) * p.cols;
      const auto from = start.subspan(at, p.cols), row = std::span<const float>(weights).subspan(at, p.cols);
      if (ComputeMovedSquares(from, row) <= most)
        std::copy(from.begin(), from.end(), weights.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

}  // namespace wisp
