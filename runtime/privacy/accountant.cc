#include "runtime/privacy/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/privacy/pld.h"

namespace wisp::privacy {
namespace {

// The composed range gets at least this many points and at most the other number; in between the step is 1e-4.
constexpr double kFewestPoints = 1 << 17, kMostPoints = 1 << 21;
constexpr double kUsualStep = 1e-4;
constexpr double kCoarsePoints = 4096;
// One step's losses on more points than this are not worth having.
constexpr double kMostStepPoints = 1 << 22;

std::vector<Mechanism> Merge(std::span<const Mechanism> mechanisms) {
  std::vector<Mechanism> merged;
  for (const Mechanism& m : mechanisms) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Mechanism& o) { return o.DiffersInStepsOnly(m); });
    if (same == merged.end()) {
      merged.push_back(m);
    } else if (auto sum = same->WithSteps(same->steps() + m.steps()); sum.ok()) {
      *same = *sum;
    } else {
      merged.push_back(m);
    }
  }
  return merged;
}

std::vector<PldPower> DiscretiseAll(const std::vector<Mechanism>& mechanisms, Direction direction, double step) {
  std::vector<PldPower> terms;
  for (const Mechanism& m : mechanisms) {
    // A plain Gaussian's steps are one Gaussian with less noise: no power is needed.
    if (m.sampling_probability() == 1) {
      const auto once = Mechanism::Gaussian({.noise_multiplier = m.noise_multiplier() / std::sqrt(static_cast<double>(m.steps())) * (1 - 1e-14)});
      terms.push_back({Discretise(*once, direction, step), 1});
    } else {
      terms.push_back({Discretise(m, direction, step), m.steps()});
    }
  }
  return terms;
}

DiscretePld ComposeDirection(const std::vector<Mechanism>& mechanisms, Direction direction) {
  double widest = 0;
  for (const Mechanism& m : mechanisms) {
    const LossRange range = RangeOf(m, direction);
    widest = std::max(widest, (range.high - range.low) * (m.sampling_probability() == 1 ? std::sqrt(static_cast<double>(m.steps())) : 1));
  }
  const LossRange range = ComposedRange(DiscretiseAll(mechanisms, direction, widest / kCoarsePoints), 40);
  const double width = range.high - range.low;
  const double step = std::max({std::min(kUsualStep, width / kFewestPoints), width / kMostPoints, widest / kMostStepPoints});
  return Compose(DiscretiseAll(mechanisms, direction, step));
}

template <class F>
Result<double> WorstOfDirections(std::span<const Mechanism> mechanisms, F&& figure) {
  WISP_RETURN_IF_ERROR(CheckAccountable(mechanisms));
  if (mechanisms.empty()) return 0.0;
  const std::vector<Mechanism> merged = Merge(mechanisms);
  for (const Mechanism& m : merged) {
    // Losses of a thousand and more per step: no finite figure is of use, and the arithmetic would overflow.
    if (m.noise_multiplier() / std::sqrt(m.sampling_probability() == 1 ? static_cast<double>(m.steps()) : 1.0) < 0.03) {
      return std::numeric_limits<double>::infinity();
    }
  }
  const bool symmetric = std::all_of(merged.begin(), merged.end(), [](const Mechanism& m) { return m.sampling_probability() == 1; });
  const double remove = figure(ComposeDirection(merged, Direction::kRemove));
  return symmetric ? remove : std::max(remove, figure(ComposeDirection(merged, Direction::kAdd)));
}

}  // namespace

Result<double> PldEpsilon(std::span<const Mechanism> mechanisms, Delta delta) {
  return WorstOfDirections(mechanisms, [&](const DiscretePld& pld) { return EpsilonOf(pld, delta.value()); });
}

Result<double> PldDelta(std::span<const Mechanism> mechanisms, double epsilon) {
  if (!(epsilon >= 0)) return InvalidArgument("epsilon is " + std::to_string(epsilon) + ", allowed are 0 and above");
  return WorstOfDirections(mechanisms, [&](const DiscretePld& pld) { return DeltaOf(pld, epsilon); });
}

}  // namespace wisp::privacy
