// How a ledger divides delta. Histories on the plan, histories that leave it under the filter, and the odometer's
// figure each have a delta of their own. The test finds each from outside: the most that the ledger accepts, or for
// which it states no higher figure. Each theorem needs its own (docs/algorithms.md, section 10), so their sum must not
// exceed the promised delta.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "runtime/privacy/ledger/ledger_budget.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_shares_test {
namespace {

constexpr double kRounding = 1 + 1e-3;  // tolerance of searches
constexpr uint64_t kPlanned = 10;       // releases

Mechanism Gaussian(double sigma, uint64_t steps = 1) {
  return *Mechanism::Gaussian({.noise_multiplier = sigma, .count = steps});
}

// Returns delta of this many Gaussian releases together, exactly (Balle and Wang 2018, theorem 8).
double ComputeDelta(double sigma, double count, double epsilon) {
  const double mu = std::sqrt(count) / sigma;
  const auto above = [](double x) { return 0.5 * std::erfc(x / std::sqrt(2)); };  // the tail of a standard normal
  return above(epsilon / mu - mu / 2) - std::exp(epsilon) * above(epsilon / mu + mu / 2);
}

// Returns the smallest number for which `holds` is true; it must be true at `high` and above it.
double Smallest(double low, double high, const std::function<bool(double)>& holds, int looks = 40) {
  for (int i = 0; i < looks; ++i) {
    const double middle = std::sqrt(low * high);
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

// A plan of ten releases, of which one was made, and then something unplanned.
class Deployment {
 public:
  Deployment(double planned_sigma, const std::optional<EpsilonDelta>& limit)
      : sigma_(planned_sigma), plan_(Gaussian(planned_sigma, kPlanned)) {
    if (limit) budget_.Take(LedgerLimit{.seq = 1, .limit = *limit});
    budget_.Take(LedgerPlan{.seq = 2, .mechanisms = {{plan_}}});
    budget_.Take(LedgerEntry{.id = 1, .seq = 3, .mechanism = *plan_.WithSteps(1), .plan = 2});
  }
  LedgerBudget After(double sigma) const { return budget_.AfterCharge({.mechanism = Gaussian(sigma), .run = "off"}); }
  bool Accepts(double sigma) const { return !After(sigma).FindBreach()->has_value(); }
  double Figure(double sigma, double delta) const { return After(sigma).Figures(AtDelta(delta))->stated.epsilon; }

  double PlanDelta(double epsilon) const { return ComputeDelta(sigma_, kPlanned, epsilon); }
  // Returns the smallest delta at which the filter lets this pass and the odometer says no more than `epsilon`.
  double FilterDelta(double sigma, double epsilon) const {
    return Smallest(1e-30, 1,
                    [&](double delta) { return RenyiFilter({.epsilon = epsilon, .delta = delta}).Fits(Path(sigma)); });
  }
  double OdometerDelta(double sigma, double epsilon) const {
    return Smallest(1e-30, 1, [&](double delta) { return OdometerEpsilon(Path(sigma), delta) <= epsilon; });
  }
  // Returns the least noise that the ledger accepts outside of the plan.
  double LeastNoise() const {
    return Smallest(0.1, 1e6, [&](double sigma) { return Accepts(sigma); });
  }

 private:
  RenyiPath Path(double sigma) const {
    RenyiPath path;
    path.Add(*plan_.WithSteps(1), 0);
    path.Add(Gaussian(sigma), 0);
    return path;
  }

  double sigma_;
  Mechanism plan_;
  LedgerBudget budget_;
};

// Returns the noise at which ten releases have this share of `delta` at `epsilon`.
double NoiseWithShare(double share, double epsilon, double delta) {
  return Smallest(0.1, 1e4, [&](double sigma) { return ComputeDelta(sigma, kPlanned, epsilon) <= share * delta; });
}

TEST(SharesOfDelta, ThePlanAndWhatLeavesItHaveTheLimitsDeltaTogether) {
  for (const auto& [epsilon, delta] : {std::pair{1.0, 1e-6}, std::pair{8.0, 1e-5}}) {
    for (double share : {1e-9, 0.3, 0.95}) {
      const Deployment deployment(NoiseWithShare(share, epsilon, delta), MakeLimit(epsilon, delta));
      const double plan = deployment.PlanDelta(epsilon),
                   filter = deployment.FilterDelta(deployment.LeastNoise(), epsilon);
      EXPECT_LE(plan + filter, delta * kRounding) << epsilon << " " << share;
      EXPECT_GT(filter, 0.8 * (delta - plan)) << epsilon << " " << share;
    }
  }
}

TEST(SharesOfDelta, AFigureBelowTheLimitIsPaidForBesidesTheLimit) {
  const double epsilon = 8, delta = 1e-6;
  for (double share : {1e-9, 0.9}) {
    const Deployment deployment(NoiseWithShare(share, epsilon, delta), MakeLimit(epsilon, delta));
    const double promised = deployment.PlanDelta(epsilon) + deployment.FilterDelta(deployment.LeastNoise(), epsilon);
    for (double stated_at : {delta, 1.5 * delta, 4 * delta}) {
      // The whole plan is stated beside the charges outside of it: the odometer's figure shows where it is above the
      // plan's.
      for (double figure : {std::exp2(21 / 8.0), std::exp2(22 / 8.0), std::exp2(23 / 8.0)}) {
        const double least =
            Smallest(0.1, 1e6, [&](double sigma) { return deployment.Figure(sigma, stated_at) <= figure; });
        if (deployment.Figure(least, stated_at) < figure) continue;
        EXPECT_LE(promised + deployment.OdometerDelta(least, figure), stated_at * kRounding) << share << " " << figure;
      }
    }
  }
}

// There is no limit. The plan's noise and that of the charges outside of it are both as small as the figure allows.
TEST(SharesOfDelta, WithoutALimitTheFigureIsThatOfThePlanAndOfWhatLeavesItTogether) {
  const double delta = 1e-6, figure = 2;  // a budget of the odometer's
  const double planned = Smallest(
      NoiseWithShare(1.1, figure, delta), NoiseWithShare(0.3, figure, delta),
      [&](double sigma) { return Deployment(sigma, std::nullopt).Figure(1e6, delta) <= figure; }, 12);
  const Deployment deployment(planned, std::nullopt);
  const double least = Smallest(0.1, 1e6, [&](double sigma) { return deployment.Figure(sigma, delta) <= figure; });
  const double together = deployment.PlanDelta(figure) + deployment.OdometerDelta(least, figure);
  EXPECT_LE(together, delta * kRounding);
  EXPECT_GT(together, 0.95 * delta);
}

}  // namespace
}  // namespace wisp::privacy::ledger_shares_test
