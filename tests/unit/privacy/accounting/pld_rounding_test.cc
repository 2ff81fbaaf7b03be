// The mass that rounding may have removed in a composition by transforms goes to infinity. The tests check the
// documented bound (pld_compose.cc), and that it covers the actual loss.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy::pld_rounding_test {
namespace {

constexpr double kU = 0x1p-53, kC = 4;  // pld_compose.cc

double Norm(const std::vector<double>& v) {
  double squares = 0;
  for (double x : v) squares += x * x;
  return std::sqrt(squares);
}

// Returns a distribution on more points than are convolved directly.
DiscretePld Smooth(size_t points) {
  DiscretePld pld{.step = 1e-3, .first = -static_cast<int64_t>(points) / 2, .mass = std::vector<double>(points)};
  double sum = 0;
  for (size_t i = 0; i < points; ++i) {
    const double z = (static_cast<double>(i) - static_cast<double>(points) / 2) / (static_cast<double>(points) / 12);
    sum += pld.mass[i] = std::exp(-z * z / 2);
  }
  for (double& m : pld.mass) m /= sum;
  return pld;
}

// If there is one factor, forward and inverse each cost c u log2(N) sqrt(N) |p| by Parseval. Either alone is half of
// the bound.
TEST(PldRounding, OneTransformCostsItsForwardAndItsInverseError) {
  for (size_t points : {2000u, 40000u}) {
    const DiscretePld pld = Smooth(points);
    const DiscretePld composed = Compose({{pld, 1}});
    const double n = static_cast<double>(composed.mass.size());
    const double one = kC * kU * std::log2(n) * std::sqrt(n) * Norm(pld.mass);
    EXPECT_GE(composed.infinity, 2 * one) << points;
    EXPECT_LE(composed.infinity, 4 * one) << points << ": the bound is not what is documented";
  }
}

// A power multiplies the forward error of each of its factors. A coin that almost never falls on its side has a
// transform of almost 1 everywhere, before and after: sqrt(N) times the error of one coefficient, times the number of
// factors.
TEST(PldRounding, APowerCostsTheErrorOfEachFactor) {
  const double p = 1e-6;
  const DiscretePld coin{.step = 1e-3, .first = -1, .mass = {1 - p, 0, p}};
  for (uint64_t count : {100u, 1000u}) {
    const DiscretePld composed = Compose({{coin, count}});
    const double n = static_cast<double>(composed.mass.size());
    EXPECT_GE(composed.infinity,
              0.9 * static_cast<double>(count) * kC * kU * std::log2(n) * std::sqrt(n) * Norm(coin.mass))
        << count;
  }
}

// Compared with the exact distribution: n flips of a coin of bias p are binomial. The mass at infinity covers what the
// computed masses lack, and exceeds the two omitted tails (8e-18). Without the bound on rounding it would not.
TEST(PldRounding, InfinityCoversWhatRoundingTook) {
  for (const auto& [p, n] : {std::pair{0.5, 3000u}, {0.3, 20000u}, {0.02, 50000u}}) {
    const DiscretePld coin{.step = 1e-3, .first = -1, .mass = {1 - p, 0, p}};  // losses -1e-3 and 1e-3
    const DiscretePld composed = Compose({{coin, n}});
    long double lacking = 0;
    for (unsigned k = 0; k <= n; ++k) {
      const long double log_mass = std::lgamma(static_cast<long double>(n) + 1) -
                                   std::lgamma(static_cast<long double>(k) + 1) -
                                   std::lgamma(static_cast<long double>(n - k) + 1) +
                                   static_cast<long double>(k) * std::log(static_cast<long double>(p)) +
                                   static_cast<long double>(n - k) * std::log1p(-static_cast<long double>(p));
      const long double exact = std::exp(log_mass);
      const int64_t at = 2 * static_cast<int64_t>(k) - static_cast<int64_t>(n) - composed.first;
      const bool inside = at >= 0 && at < static_cast<int64_t>(composed.mass.size());
      lacking +=
          std::max(0.0L, exact - (inside ? static_cast<long double>(composed.mass[static_cast<size_t>(at)]) : 0.0L));
    }
    EXPECT_GE(composed.infinity, static_cast<double>(lacking)) << p;
    EXPECT_GT(lacking, 1e-16L) << p << ": nothing is seen of rounding, so that this case shows nothing";
  }
}

// The mass of a distribution at infinity stays there: in its deltas, in its epsilons, in every composition that
// contains it.
TEST(PldRounding, InfinityIsPartOfEveryDelta) {
  DiscretePld pld = Smooth(2000);
  pld.infinity = 0.01;
  EXPECT_GE(ComputeDelta(pld, 0.5), 0.01);
  EXPECT_GE(ComputeDelta(pld, 50), 0.01);
  EXPECT_NEAR(ComputeDelta(pld, 0.1) - 0.01, ComputeDelta(Smooth(2000), 0.1), 1e-12);
  EXPECT_TRUE(std::isinf(ComputeEpsilon(pld, 0.009)));
  EXPECT_FALSE(std::isinf(ComputeEpsilon(pld, 0.011)));
  pld.infinity = std::nan("");
  EXPECT_TRUE(std::isinf(ComputeEpsilon(pld, 0.011)));
}

TEST(PldRounding, InfinityIsPartOfEveryComposition) {
  DiscretePld pld = Smooth(2000);
  pld.infinity = 1e-4;
  for (uint64_t count : {1u, 7u}) {
    const double all = -std::expm1(static_cast<double>(count) * std::log1p(-1e-4));  // some step goes to infinity
    EXPECT_GE(Compose({{pld, count}}).infinity, all) << count;
    EXPECT_GE(Compose({{Smooth(2000), 3}, {pld, count}}).infinity, all) << count;
  }
}

// The range of a Gaussian's losses ends 9.5 deviations out: 1e-21 of the mass lies beyond.
TEST(PldRounding, WhatLiesBeyondTheGridGoesToInfinity) {
  for (Direction direction : {Direction::kRemove, Direction::kAdd}) {
    EXPECT_GE(Discretise(*Mechanism::Gaussian({.noise_multiplier = 1}), direction, 1e-3).infinity,
              0.5 * std::erfc(9.6 * M_SQRT1_2));
  }
}

// If delta is below what rounding may have removed, no epsilon is proved: the figure is infinity, not one read off the
// rounding errors.
TEST(PldRounding, ADeltaBelowTheRoundingHasNoEpsilon) {
  const Mechanism steps =
      *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1, .sampling_probability = 0.01, .steps = 1000});
  const auto at = [&](double delta) { return *PldEpsilon({&steps, 1}, *Delta::Create(delta)); };
  EXPECT_LT(at(1e-9), 10);
  EXPECT_TRUE(std::isinf(at(1e-16)));
}

}  // namespace
}  // namespace wisp::privacy::pld_rounding_test
