// Bounded-range sampling: compared with every pair of its family, closed forms, clipped softmaxes, sampling without
// replacement.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/pld.h"
#include "tests/unit/privacy/accounting/sampling_test_util.h"

namespace wisp::privacy::bounded_range_test {
namespace {

std::vector<double> Softmax(const std::vector<double>& logits) {
  std::vector<double> p;
  double sum = 0;
  for (double l : logits) sum += std::exp(l);
  for (double l : logits) p.push_back(std::exp(l) / sum);
  return p;
}

// Every pair of the family at once: the supremum over t, in closed form and on a grid of t.
TEST(BoundedRange, DeltaIsTheSupremumOfTheFamily) {
  for (double eta : {0.05, 0.4, 1.0, 3.0, 8.0}) {
    for (double share : {-0.9, -0.5, 0.0, 0.1, 0.3, 0.7, 0.95}) {
      const double epsilon = share * eta;
      double worst = 0;
      for (int i = 1; i < 2000; ++i) {
        const auto [p, q] = Binary(eta, eta * i / 2000);
        worst = std::max(worst, HockeyStick(p, q, epsilon));
      }
      const double bound = ComputeDelta(Discretise(Range(eta), Direction::kRemove, eta * 1e-4 / M_PI), epsilon);
      EXPECT_GE(bound, worst * (1 - 1e-12)) << eta << " " << epsilon;
      EXPECT_LE(bound, worst + 1e-6 * eta) << eta << " " << epsilon;
    }
    EXPECT_EQ(*PldDelta(std::vector{Range(eta)}, eta * (1 + 1e-12)), 0);
  }
}

// Connecting the dots keeps both masses of every interval, so at the grid's points the curve is the exact one, even on
// a coarse grid whose ends lie outside the range.
TEST(BoundedRange, DotsLieOnTheClosedForm) {
  for (double eta : {0.3, 1.0, 5.0}) {
    for (double step : {0.17, 0.4, 0.9}) {
      const DiscretePld pld = Discretise(Range(eta), Direction::kAdd, step * eta);
      for (int i = -6; i <= 6; ++i) {
        const double epsilon = i * step * eta;
        const double exact = epsilon < -eta  ? -std::expm1(epsilon)
                             : epsilon > eta ? 0
                                             : std::pow(-std::expm1((epsilon - eta) / 2), 2) / -std::expm1(-eta);
        EXPECT_NEAR(ComputeDelta(pld, epsilon), exact, 1e-8) << eta << " " << step << " " << i;
      }
    }
  }
}

TEST(BoundedRange, ClippedSoftmaxIsCovered) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const size_t size = 2 + static_cast<size_t>(trial) % 5;
    const double c = std::uniform_real_distribution<double>(0.05, 1)(random), tau = 0.5 + 0.1 * (trial % 10),
                 eta = 4 * c / tau;
    const DiscretePld bound = Discretise(Range(eta), Direction::kAdd, 1e-4);
    std::uniform_real_distribution<double> logit(-3, 3), shift(-2 * c, 2 * c);  // beyond the clip: often at its ends
    for (int pair = 0; pair < 20; ++pair) {
      std::vector<double> f(size), g(size);
      for (size_t j = 0; j < size; ++j) {
        const double b = logit(random);
        f[j] = (b + std::clamp(shift(random), -c, c)) / tau, g[j] = (b + std::clamp(shift(random), -c, c)) / tau;
      }
      for (double share : {-0.8, -0.2, 0.0, 0.2, 0.6, 0.9}) {
        EXPECT_LE(HockeyStick(Softmax(f), Softmax(g), share * eta), ComputeDelta(bound, share * eta)) << trial;
      }
    }
  }
}

// Two samples; the first one's outcome chooses t of the second.
TEST(BoundedRange, AdaptiveFamilyIsCovered) {
  const double eta = 1;
  for (double epsilon : {0.0, 0.3, 0.8, 1.4}) {
    const double bound = *PldDelta(std::vector{Range(eta, 2)}, epsilon);
    double worst = 0;
    for (double t = 0.05; t < 1; t += 0.05) {
      const auto [p, q] = Binary(eta, t);
      double delta = 0;  // each outcome followed by its own worst t
      for (size_t j = 0; j < 2; ++j) {
        double best = 0;
        for (double t2 = 0.02; t2 < 1; t2 += 0.02) {
          const auto [p2, q2] = Binary(eta, t2);
          best = std::max(best, p[j] * HockeyStick(p2, q2, epsilon - std::log(p[j] / q[j])));
        }
        delta += best;
      }
      worst = std::max(worst, delta);
    }
    EXPECT_GE(bound, worst) << epsilon;
    EXPECT_LE(bound, 1.1 * worst + 0.01) << "the supremum over the second sample's t only is not far below: "
                                         << epsilon;
  }
}

TEST(BoundedRange, NeverAboveThePureSumNorTheConversionOfZeroConcentration) {
  for (const auto& [eta, count] :
       {std::pair{1.0, uint64_t{4}}, {0.1, uint64_t{100}}, {2.0, uint64_t{1}}, {0.01, uint64_t{10000}}}) {
    const std::vector m = {Range(eta, count)};
    const double pure = eta * static_cast<double>(count), rho = eta * eta / 8 * static_cast<double>(count);
    EXPECT_NEAR(*PureEpsilon(m), pure, 1e-12 * pure);
    for (double delta : {1e-3, 1e-6, 1e-12}) {
      double converted = HUGE_VAL;
      for (double a = 1.01; a < 1e4; a *= 1.01) {
        converted = std::min(converted, rho * a + std::log1p(-1 / a) - (std::log(delta) + std::log(a)) / (a - 1));
      }
      const double epsilon = Pld(m, delta);
      EXPECT_LE(epsilon, pure * (1 + 1e-12)) << eta << " " << delta;
      EXPECT_LE(epsilon, converted) << eta << " " << delta;
      EXPECT_LE(epsilon, *RdpEpsilon(m, DeltaAt(delta))) << eta << " " << delta;
      // A sample of one member of the family, t = eta / 2, costs less.
      EXPECT_GT(epsilon, 0) << eta << " " << delta;
    }
  }
  EXPECT_NEAR(Pld({Range(1, 4)}, 1e-40), 4, 1e-9);
}

// docs/algorithms.md, section 5: counts (1, 0, 0, 0, 0, 0), one more record in the first bucket, the four largest after
// Gumbel noise of scale 1. That is not (1, 0)-DP, but four samples of range 1.
TEST(BoundedRange, CoversOneShotGumbelThatItsScaleAloneDoesNot) {
  const auto sets = [](std::vector<double> counts) {
    std::map<unsigned, double> probability;  // of each set of four, as bits
    const std::function<void(unsigned, double, int)> sample = [&](unsigned taken, double p, int left) {
      if (left == 0) {
        probability[taken] += p;
        return;
      }
      double sum = 0;
      for (unsigned j = 0; j < 6; ++j) sum += taken >> j & 1 ? 0 : std::exp(counts[j]);
      for (unsigned j = 0; j < 6; ++j) {
        if (!(taken >> j & 1)) sample(taken | 1u << j, p * std::exp(counts[j]) / sum, left - 1);
      }
    };
    sample(0, 1, 4);
    std::vector<double> out;
    for (const auto& [bits, p] : probability) out.push_back(p);
    return out;
  };
  const auto p = sets({1, 0, 0, 0, 0, 0}), q = sets({2, 0, 0, 0, 0, 0});
  double loss = 0;
  for (size_t j = 0; j < p.size(); ++j) loss = std::max(loss, std::log(p[j] / q[j]));
  EXPECT_NEAR(loss, 2.29, 0.005);
  EXPECT_NEAR(HockeyStick(p, q, 1), 0.062, 0.0005);
  EXPECT_EQ(*PldDelta(std::vector{Range(1)}, 1 + 1e-12), 0) << "one sample is (1, 0)-DP";
  const std::vector four = {Range(1, 4)};
  EXPECT_GE(*PureEpsilon(four), loss);
  for (double epsilon : {0.0, 0.5, 1.0, 1.5, 2.0, 2.2}) {
    EXPECT_GE(*PldDelta(four, epsilon), HockeyStick(p, q, epsilon)) << epsilon;
    EXPECT_GE(*PldDelta(four, epsilon), HockeyStick(q, p, epsilon)) << epsilon;
  }
}

}  // namespace
}  // namespace wisp::privacy::bounded_range_test
