// Filter and odometer for mechanisms that are chosen from earlier outputs: their arithmetic, the strongest adversary on
// small mechanisms, and their cost compared with a plan.
#include "runtime/privacy/accounting/privacy_filter.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/privacy/accounting/accountant.h"

namespace wisp::privacy::privacy_filter_test {
namespace {

Mechanism Gaussian(double sigma, uint64_t steps = 1) {
  return *Mechanism::Gaussian({.noise_multiplier = sigma, .count = steps});
}
Mechanism Subsampled(double sigma, double q, uint64_t steps = 1) {
  return *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = sigma, .sampling_probability = q, .steps = steps});
}
// Returns a coin that tells the truth with the odds e^epsilon : 1.
Mechanism Coin(double epsilon, uint64_t flips = 1) {
  return *Mechanism::RandomisedResponse({.support = 2, .lambda = std::tanh(epsilon / 2), .count = flips});
}
RenyiPath GetPath(const std::vector<Mechanism>& mechanisms) {
  RenyiPath path;
  for (const Mechanism& m : mechanisms) path.Add(m, 0);
  return path;
}

// Returns the log of the sum of weight(x) (a(x) / b(x))^order b(x) over x, divided by order - 1: the definition.
double Divergence(double order, const std::vector<double>& a, const std::vector<double>& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::exp(order * std::log(static_cast<long double>(a[i])) -
                    (order - 1) * std::log(static_cast<long double>(b[i])));
  return static_cast<double>(std::log(sum) / (order - 1));
}

// The noise lies on `spread` points on either side, `scale` of them one sensitivity apart. A fine scale gives a
// continuous Gaussian, a coarse one a discrete one.
void ExpectCovers(double sigma, double q, double scale, double tolerance) {
  const int spread = static_cast<int>(scale * (sigma * 24 + 40));
  std::vector<double> with, without;
  double z = 0, shifted_z = 0;
  const auto density = [&](double x) { return std::exp(-x * x / (2 * sigma * sigma * scale * scale)); };
  for (int x = -spread; x <= spread; ++x) z += density(x), shifted_z += density(x - scale);
  for (int x = -spread; x <= spread; ++x) {
    const double p = density(x) / z;
    if (p < 1e-250) continue;
    without.push_back(p);
    with.push_back((1 - q) * p + q * density(x - scale) / shifted_z);
  }
  for (uint32_t order : {2u, 3u, 8u, 16u}) {
    if (order / sigma > 20) continue;  // the sum needs points beyond those kept
    const double computed = StepRdp(Subsampled(sigma, q), order);
    const double remove = Divergence(order, with, without), add = Divergence(order, without, with);
    EXPECT_GE(computed, remove * (1 - 1e-9)) << sigma << " " << q << " " << order;
    EXPECT_GE(computed, add * (1 - 1e-9)) << sigma << " " << q << " " << order;
    EXPECT_NEAR(computed, std::max(remove, add), tolerance * computed) << sigma << " " << q << " " << order;
  }
}

TEST(Rdp_AtIntegerOrders, IsTheDefinitionInTheLargerDirection) {
  for (double sigma : {1.0, 2.5}) {
    for (double q : {0.001, 0.1, 0.5, 1.0}) ExpectCovers(sigma, q, 64, 1e-7);
  }
}

// Three grid steps of noise and a shift of two: this is nothing like a continuous Gaussian, and its moments are the
// same.
TEST(Rdp_AtIntegerOrders, IsThatOfTheDiscreteGaussianToo) {
  for (double sigma : {1.5, 3.0}) {
    for (double q : {0.1, 1.0}) ExpectCovers(sigma, q, 2, 1e-7);
  }
}

TEST(Rdp_AtIntegerOrders, CoversDrawsAndTinyCosts) {
  for (double epsilon : {1e-6, 0.01, 1.0, 6.0}) {
    const double truth = 1 / (1 + std::exp(-epsilon));
    for (uint32_t order : kRenyiOrders) {
      const double exact = Divergence(order, {truth, 1 - truth}, {1 - truth, truth});
      EXPECT_GE(StepRdp(Coin(epsilon), order), exact - 1e-12 - 1e-6 * exact) << epsilon << " " << order;
      EXPECT_LE(StepRdp(Coin(epsilon), order), exact + 1e-9 + 1e-6 * exact) << epsilon << " " << order;
      EXPECT_LE(StepRdp(*Mechanism::BoundedRange({.range = epsilon}), order), epsilon * (1 + 1e-9));
      EXPECT_GT(StepRdp(*Mechanism::BoundedRange({.range = epsilon}), order), 0);
    }
  }
  // The leading term is q^2 (e^(1 / sigma^2) - 1), where a sum of masses near 1 would be rounded to nothing.
  EXPECT_NEAR(StepRdp(Subsampled(1, 1e-12), 2) / (1e-24 * std::expm1(1.0)), 1, 1e-6);
}

// Every fixed plan is one of the paths, so the filter can never allow more than the truth.
TEST(Filter, AllowsNoMoreThanTheTruthAndNotMuchLess) {
  for (const auto& [epsilon, delta] : {std::pair{1.0, 1e-6}, std::pair{8.0, 1e-6}, std::pair{4.0, 1e-9}}) {
    for (double sigma : {30.0, 100.0}) {
      const RenyiFilter filter({.epsilon = epsilon, .delta = delta});
      uint64_t steps = 0;
      while (filter.Fits(GetPath({Gaussian(sigma, steps + 1)}))) ++steps;
      ASSERT_GT(steps, 0u);
      EXPECT_LE(*PldEpsilon(std::vector{Gaussian(sigma, steps)}, *Delta::Create(delta)), epsilon);
      EXPECT_GT(*PldEpsilon(std::vector{Gaussian(sigma, steps)}, *Delta::Create(delta)), 0.8 * epsilon);
    }
  }
}

TEST(Filter, SharesOfDeltaAddUpToDelta) {
  for (const auto& [epsilon, delta] :
       {std::pair{0.1, 1e-9}, std::pair{1.0, 1e-6}, std::pair{8.0, 1e-5}, std::pair{50.0, 0.1}}) {
    const RenyiFilter filter({.epsilon = epsilon, .delta = delta});
    double sum = 0;
    for (size_t j = 0; j < kRenyiOrders.size(); ++j) {
      const double a = kRenyiOrders[j], b = filter.bound_of(j);
      sum += filter.delta_of(j);
      // The bound converts back to a delta of at most the share.
      EXPECT_LE(std::exp((a - 1) * (b - epsilon + std::log1p(-1 / a))) / a, filter.delta_of(j)) << a;
    }
    EXPECT_LE(sum, delta);
    EXPECT_GT(sum, 0.999 * delta);
  }
}

// Low orders bound steps with little noise and rare sampling best, high orders steps with much noise. Each alone fits;
// it is not enough that every step fits at some order.
TEST(Filter, TheWholePathMustFitOneOrder) {
  const RenyiFilter filter({.epsilon = 1, .delta = 1e-6});
  const auto most = [&](const Mechanism& one) {
    uint64_t fit = 0, too_many = 1 << 20;
    while (too_many - fit > 1) {
      const uint64_t middle = (fit + too_many) / 2;
      (filter.Fits(GetPath({*one.WithSteps(middle)})) ? fit : too_many) = middle;
    }
    return *one.WithSteps(fit);
  };
  const Mechanism quiet = most(Gaussian(300)), loud = most(Subsampled(1, 0.0005));
  ASSERT_TRUE(filter.Fits(GetPath({quiet})) && filter.Fits(GetPath({loud})));
  EXPECT_FALSE(filter.Fits(GetPath({quiet, *loud.WithSteps(loud.steps() / 10)})));
  EXPECT_FALSE(filter.Fits(
      GetPath({*quiet.WithSteps(quiet.steps() / 2 + quiet.steps() / 4), *loud.WithSteps(loud.steps() / 2)})));
}

TEST(Filter, OnlyLossesThatNothingExceedsFitWithoutDelta) {
  const RenyiFilter filter({.epsilon = 1, .delta = 0});
  EXPECT_TRUE(filter.Fits(GetPath({Coin(0.25, 3)})));
  EXPECT_FALSE(filter.Fits(GetPath({Coin(0.25, 5)})));
  EXPECT_FALSE(filter.Fits(GetPath({Gaussian(1e6)})));
  EXPECT_TRUE(filter.Fits(RenyiPath()));
}

// The adversary sees every output and picks the next of three coins, as long as the path with it fits. This computes
// its delta exactly.
class Adversary {
 public:
  Adversary(double epsilon, std::function<bool(const RenyiPath&)> fits) : epsilon_(epsilon), fits_(std::move(fits)) {}
  double Delta() { return Best({0, 0, 0}, 0); }

 private:
  static constexpr double kUnit = 0.2;
  static constexpr int kCoins[] = {1, 3, 8};  // epsilons, in units

  double Best(std::array<int, 3> flips, int loss) {
    const auto [known, fresh] = known_.try_emplace({flips, loss}, 0.0);
    if (!fresh) return known->second;
    double best = std::max(0.0, 1 - std::exp(epsilon_ - kUnit * loss));
    for (size_t i = 0; i < 3; ++i) {
      std::array<int, 3> next = flips;
      ++next[i];
      if (!Allowed(next)) continue;
      const double truth = 1 / (1 + std::exp(-kUnit * kCoins[i]));
      best = std::max(best, truth * Best(next, loss + kCoins[i]) + (1 - truth) * Best(next, loss - kCoins[i]));
    }
    return known_[{flips, loss}] = best;
  }

  bool Allowed(const std::array<int, 3>& flips) {
    const auto [known, fresh] = allowed_.try_emplace(flips, false);
    if (!fresh) return known->second;
    RenyiPath path;
    for (size_t i = 0; i < 3; ++i) {
      if (flips[i] > 0) path.Add(Coin(kUnit * kCoins[i], static_cast<uint64_t>(flips[i])), 0);
    }
    return allowed_[flips] = fits_(path);
  }

  double epsilon_;
  std::function<bool(const RenyiPath&)> fits_;
  std::map<std::pair<std::array<int, 3>, int>, double> known_;
  std::map<std::array<int, 3>, bool> allowed_;
};

TEST(Filter, HoldsAgainstTheStrongestAdversary) {
  for (const auto& [epsilon, delta] : {std::pair{2.0, 0.01}, std::pair{3.0, 1e-3}, std::pair{1.5, 0.05}}) {
    const RenyiFilter filter({.epsilon = epsilon, .delta = delta});
    const double reached = Adversary(epsilon, [&](const RenyiPath& path) { return filter.Fits(path); }).Delta();
    std::printf("epsilon %g, delta %g: the strongest adversary reaches %.3g\n", epsilon, delta, reached);
    EXPECT_LE(reached, delta);
    EXPECT_GT(reached, delta / 100);
    // A filter that may spend half as much again does not hold the limit.
    const RenyiFilter wider({.epsilon = 1.5 * epsilon, .delta = delta});
    const auto one_more = [&](const RenyiPath& path) { return wider.Fits(path); };
    EXPECT_GT(Adversary(epsilon, one_more).Delta(), delta);
  }
}

TEST(Odometer, IsTheSmallestBudgetThatThePathFitsWithItsShare) {
  double shares = 0;
  for (int k = -400; k <= 400; ++k) shares += OdometerShare(k);
  EXPECT_LE(shares, 1);
  for (uint64_t steps : {1u, 50u, 500u}) {
    const RenyiPath path = GetPath({Gaussian(30, steps)});
    const double figure = OdometerEpsilon(path, 1e-6);
    const int k = static_cast<int>(std::lround(8 * std::log2(figure)));
    EXPECT_DOUBLE_EQ(figure, std::exp2(k / 8.0));
    EXPECT_TRUE(RenyiFilter({.epsilon = figure, .delta = 1e-6 * OdometerShare(k)}).Fits(path));
    EXPECT_FALSE(RenyiFilter({.epsilon = std::exp2((k - 1) / 8.0), .delta = 1e-6 * OdometerShare(k - 1)}).Fits(path));
    const double fixed = *PldEpsilon(std::vector{Gaussian(30, steps)}, *Delta::Create(1e-6));
    EXPECT_GT(figure, fixed);
    EXPECT_LT(figure, 1.6 * fixed);
  }
  EXPECT_EQ(OdometerEpsilon(RenyiPath(), 1e-6), 0);
  EXPECT_EQ(OdometerEpsilon(GetPath({Gaussian(0.01)}), 1e-6), INFINITY);
}

TEST(Path, LossSlackIsAddedAtEveryOrder) {
  RenyiPath with;
  with.Add(Gaussian(10, 3), 0.5);
  const RenyiPath without = GetPath({Gaussian(10, 3)});
  for (size_t j = 0; j < kRenyiOrders.size(); ++j) {
    const double a = kRenyiOrders[j];
    EXPECT_NEAR(with.sums()[j] - without.sums()[j], 0.5 * (2 * a - 1) / (a - 1), 1e-9);
  }
}

// A year of equal runs, 20 steps each with q = 0.1, whose plan costs epsilon 8 at delta 1e-6: the test counts how many
// fit without a plan. docs/algorithms.md, section 10, shows the table.
TEST(Filter, WhatAYearCostsBesideAPlan) {
  constexpr double kEpsilon = 8, kDelta = 1e-6;
  const RenyiFilter filter({.epsilon = kEpsilon, .delta = kDelta});
  std::printf(
      "| runs | steps each | noise multiplier | fit by plan (PLD) | fit by filter | the odometer says of those "
      "|\n|---|---|---|---|---|---|\n");
  constexpr struct {
    uint64_t runs;
    double noise;
  } kYears[] = {{365, 5.6383}, {52, 2.256}, {12, 1.2835}};
  for (const auto& [runs, noise] : kYears) {
    const Mechanism run = Subsampled(noise, 0.1, 20);
    const double plan = *PldEpsilon(std::vector{*run.WithSteps(20 * runs)}, *Delta::Create(kDelta));
    EXPECT_LE(plan, kEpsilon);
    EXPECT_GT(plan, 0.995 * kEpsilon);
    uint64_t fit = 0;
    while (filter.Fits(GetPath({*run.WithSteps(20 * (fit + 1))}))) ++fit;
    std::printf("| %llu | 20 | %g | %llu | %llu | %.2f |\n", static_cast<unsigned long long>(runs), noise,
                static_cast<unsigned long long>(runs), static_cast<unsigned long long>(fit),
                OdometerEpsilon(GetPath({*run.WithSteps(20 * fit)}), kDelta));
    EXPECT_LT(fit, runs);
    EXPECT_GE(static_cast<double>(fit), 0.75 * static_cast<double>(runs));
  }
}

}  // namespace
}  // namespace wisp::privacy::privacy_filter_test
