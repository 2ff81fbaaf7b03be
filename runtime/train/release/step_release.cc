#include "runtime/train/release/step_release.h"

#include <algorithm>

#include "runtime/gradients/rgp_carriers.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/options.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {

void NoiseAndScale(std::span<int64_t> sum, uint64_t sigma, float scale, privacy::RandomStream& noise, float* g) {
  privacy::AddDiscreteGaussian(noise, sigma, sum);
  for (size_t i = 0; i < sum.size(); ++i) g[i] = static_cast<float>(sum[i]) * scale;
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

std::unique_ptr<StepRelease> MakeStepRelease(const Graph& graph, const TrainedSet& trained,
                                             std::span<const float> start, const TrainingOptions& options) {
  if (!graph.device().memory.is_host()) return MakeDeviceRelease(graph, trained, start, options);
  if (options.method == Method::kRgp) return MakeRgpRelease(graph, trained, start, options);
  if (IsSparse(options.method) || options.num_negatives > 0) return MakeSparseRelease(graph, trained, options);
  if (!IsPrivate(options)) return MakeOrdinaryRelease(graph, trained, options);
  return MakeFlatRelease(graph, trained, options);
}

}  // namespace wisp
