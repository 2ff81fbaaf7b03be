#include "runtime/privacy/calibration.h"

#include <cmath>
#include <vector>

#include "runtime/privacy/accountant.h"

namespace wisp::privacy {
namespace {

constexpr double kLargest = 1e5, kSmallest = 1e-2;
constexpr double kRelativeWidth = 1e-4;

class Search {
 public:
  explicit Search(const CalibrationRequest& request) : request_(request), spent_(request.composed_with.begin(), request.composed_with.end()) {
    spent_.push_back(*Mechanism::Gaussian({.noise_multiplier = 1}));
  }

  Result<double> Epsilon(double noise_multiplier) {
    WISP_ASSIGN_OR_RETURN(const Mechanism m, Mechanism::PoissonSubsampledGaussian({.noise_multiplier = noise_multiplier,
                                                                                   .sampling_probability = request_.sampling_probability,
                                                                                   .steps = request_.steps}));
    spent_.back() = m;
    WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(request_.target.delta()));
    return PldEpsilon(spent_, delta);
  }

 private:
  const CalibrationRequest& request_;
  std::vector<Mechanism> spent_;
};

Status Unreachable(const CalibrationRequest& r, double epsilon) {
  return PrivacyRefused("epsilon " + std::to_string(r.target.epsilon()) + " at delta " + std::to_string(r.target.delta()) +
                        " cannot be met: even with noise multiplier 1e5 " + std::to_string(r.steps) + " steps and what they are composed with cost " +
                        std::to_string(epsilon));
}

}  // namespace

Result<Calibration> CalibrateNoise(const CalibrationRequest& request) {
  Search search(request);
  const double target = request.target.epsilon();
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(request.target.delta()));
  WISP_ASSIGN_OR_RETURN(const double beside, PldEpsilon(request.composed_with, delta));
  if (beside > target) {
    return PrivacyRefused("epsilon " + std::to_string(target) + " at delta " + std::to_string(request.target.delta()) +
                          " cannot be met: what is spent beside the steps costs " + std::to_string(beside) + " by itself");
  }
  // A bracket that doubles away from 1, then bisection of its logarithm. `high` always keeps the promise.
  double high = 1;
  WISP_ASSIGN_OR_RETURN(double high_epsilon, search.Epsilon(high));
  double low = high;
  while (high_epsilon > target) {
    if (high >= kLargest) return Unreachable(request, high_epsilon);
    low = high;
    high *= 2;
    WISP_ASSIGN_OR_RETURN(high_epsilon, search.Epsilon(high));
  }
  while (low == high) {
    if (high / 2 < kSmallest) return Calibration{high, high_epsilon};
    WISP_ASSIGN_OR_RETURN(const double epsilon, search.Epsilon(high / 2));
    low = high / 2;
    if (epsilon > target) break;
    high = low;
    high_epsilon = epsilon;
  }
  while (high / low > 1 + kRelativeWidth) {
    const double middle = std::sqrt(low * high);
    WISP_ASSIGN_OR_RETURN(const double epsilon, search.Epsilon(middle));
    if (epsilon > target) {
      low = middle;
    } else {
      high = middle;
      high_epsilon = epsilon;
    }
  }
  return Calibration{high, high_epsilon};
}

}  // namespace wisp::privacy
