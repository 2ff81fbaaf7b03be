#include "runtime/train/step_release.h"

#include <algorithm>

#include "runtime/gradients/rgp_carriers.h"
#include "runtime/privacy/discrete_gaussian.h"
#include "runtime/train/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {

void NoiseAndScale(std::span<int64_t> sum, uint64_t sigma, float scale, privacy::RandomStream& noise, float* g) {
  privacy::AddDiscreteGaussian(noise, sigma, sum);
  for (size_t i = 0; i < sum.size(); ++i) g[i] = static_cast<float>(sum[i]) * scale;
}

uint64_t NumTrained(const std::vector<ParameterSpec>& parameters) {
  uint64_t n = 0;
  for (const ParameterSpec& p : parameters) n += p.trained ? p.size() : 0;
  return n;
}

privacy::ExactGrid MakeGrid(const TrainingOptions& options, uint64_t num_coordinates) {
  return privacy::ExactGrid(options.privacy.clipping_norm, num_coordinates);
}

GridGradientSum::Grid SumGrid(const privacy::ExactGrid& grid) {
  return {.steps_per_unit = static_cast<float>(grid.steps_per_unit()), .max_sum_squares = grid.max_sum_squares()};
}

ClipRule ClipOnGrid(ClipKind kind, const privacy::ExactGrid& grid) {
  const double bound = grid.reduced_clipping_norm();
  return kind == ClipKind::kFlat ? ClipRule::Flat(bound) : ClipRule::Automatic(bound);
}

uint64_t NumReleased(const Architecture& architecture, const TrainingOptions& options) {
  const std::vector<ParameterSpec> parameters = ParametersOf(architecture);
  if (options.method == Method::kRgp) return RgpReleaseSize(options.rgp, parameters);
  if (options.method == Method::kFest) {
    const uint64_t rows =
        std::min<uint64_t>(architecture.num_items, options.sparse.rows.size() + options.num_negatives);
    return NumTrained(parameters) - (architecture.num_items - rows) * architecture.width;
  }
  return NumTrained(parameters);
}

double GradientNoise(const TrainingOptions& o) {
  return IsAdaptive(o.method) ? SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio).gradient
                              : o.privacy.noise_multiplier;
}

double StepLossSlack(const Architecture& architecture, const TrainingOptions& options, double noise_multiplier,
                     uint64_t steps) {
  const uint64_t coordinates = NumReleased(architecture, options);
  const privacy::ExactGrid grid = MakeGrid(options, coordinates);
  const auto loss = [&](double multiplier, uint64_t n) {
    return privacy::DiscretisationLoss(
        {.sigma_in_steps = grid.sigma_in_steps(multiplier), .num_coordinates = n, .num_steps = steps});
  };
  if (!IsAdaptive(options.method)) return loss(noise_multiplier, coordinates);
  // Untouched rows survive with the rounded Gaussian's chance, touched ones by the discrete: the map counts all rows.
  const PairOfNoises pair = SplitNoise(noise_multiplier, options.sparse.map_noise_ratio);
  return loss(pair.gradient, coordinates) + loss(pair.map, architecture.num_items);
}

bool IsSparse(Method method) { return method == Method::kFest || IsAdaptive(method); }
bool IsAdaptive(Method method) { return method == Method::kAdaFest || method == Method::kAdaFestPlus; }

std::unique_ptr<StepRelease> MakeStepRelease(const Graph& graph, std::span<const float> start,
                                             const TrainingOptions& options) {
  if (options.method == Method::kRgp) return MakeRgpRelease(graph, start, options);
  if (IsSparse(options.method) || options.num_negatives > 0) return MakeSparseRelease(graph, options);
  return MakeFlatRelease(graph, options);
}

}  // namespace wisp
