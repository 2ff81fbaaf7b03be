#include "runtime/privacy/accounting/privacy_filter.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "runtime/privacy/accounting/accountant.h"

namespace wisp::privacy {
namespace {

// Factors that exceed the rounding of sums over millions of entries, and of the few operations of a bound.
constexpr double kRoundUp = 1 + 1e-9;
constexpr double kBoundRounding = 1e-12;
constexpr size_t kKnownSteps = 8;

// The order at which Gaussians that together cost (epsilon, delta) are converted best: a - 1 = sqrt(log(1 / delta) /
// rho), with rho + 2 sqrt(rho log(1 / delta)) = epsilon. The tight conversion, and sampling, lower it.
double BestOrder(double epsilon, double delta) {
  const double log_inverse = -std::log(delta);
  const double root_rho = epsilon / (std::sqrt(log_inverse + epsilon) + std::sqrt(log_inverse));
  return 1 + 0.9 * std::sqrt(log_inverse) / root_rho;
}

}  // namespace

const RenyiSums& RenyiPath::OfStep(const Mechanism& mechanism) {
  for (const auto& [known, sums] : known_) {
    if (known.DiffersInStepsOnly(mechanism)) return sums;
  }
  if (known_.size() >= kKnownSteps) known_.erase(known_.begin());
  RenyiSums sums;
  for (size_t j = 0; j < sums.size(); ++j) sums[j] = StepRdp(mechanism, kRenyiOrders[j]);
  return known_.emplace_back(mechanism, sums).second;
}

void RenyiPath::Add(const Mechanism& mechanism, double loss_slack) {
  const RenyiSums& step = OfStep(mechanism);
  const double steps = static_cast<double>(mechanism.steps());
  for (size_t j = 0; j < sums_.size(); ++j) {
    const double a = kRenyiOrders[j];
    sums_[j] += (steps * step[j] + loss_slack * (2 * a - 1) / (a - 1)) * (1 + kBoundRounding);
  }
  pure_ += (steps * mechanism.PureEpsilonPerStep() + 2 * loss_slack) * (1 + kBoundRounding);
}

RenyiFilter::RenyiFilter(const Budget& budget) : epsilon_(budget.epsilon) {
  bound_.fill(-kInfinity);
  if (!(budget.delta > 0)) return;
  const double best = std::log2(BestOrder(budget.epsilon, budget.delta) - 1);
  double sum = 0;
  for (size_t j = 0; j < delta_.size(); ++j) {
    // Shares fall with the third power of the distance, faster towards higher orders, because steps with little noise
    // are converted better at lower ones.
    const double distance = std::log2(kRenyiOrders[j] - 1.0) - best;
    delta_[j] = std::pow(1 + (distance > 0 ? 4 * distance : -2 * distance), -3);
    sum += delta_[j];
  }
  for (size_t j = 0; j < delta_.size(); ++j) {
    delta_[j] *= budget.delta / sum * (1 - kBoundRounding);
    const double a = kRenyiOrders[j];
    bound_[j] = budget.epsilon - std::log1p(-1 / a) + (std::log(delta_[j]) + std::log(a)) / (a - 1) -
                kBoundRounding * (1 + budget.epsilon);
  }
}

bool RenyiFilter::Fits(const RenyiPath& path) const {
  if (path.pure() * kRoundUp <= epsilon_) return true;
  for (size_t j = 0; j < bound_.size(); ++j) {
    if (path.sums()[j] * kRoundUp <= bound_[j]) return true;
  }
  return false;
}

// Budgets in the octave from 4 to 8 share a third, those n octaves away 2 / (3 (n + 1) (n + 2)): the sum over all n on
// both sides is 1.
double OdometerShare(int k) {
  const int octave = k >= 0 ? k / 8 : -((7 - k) / 8), n = std::abs(octave - 2);
  return (1 - 1e-9) / (12.0 * (n + 1) * (n + 2));
}

double OdometerEpsilon(const RenyiPath& path, double delta) {
  if (path.pure() == 0) return 0;
  for (int k = kLowestBudget; k <= kHighestBudget; ++k) {
    const double budget = std::exp2(k / 8.0);
    if (RenyiFilter({.epsilon = budget, .delta = delta * OdometerShare(k)}).Fits(path)) return budget;
  }
  return kInfinity;
}

}  // namespace wisp::privacy
