// Correlated noise costs what the largest change of a run says, and integers cost no more than their bound.
#include "runtime/privacy/accounting/kinds/correlated_gaussian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/noise/correlated_noise.h"
#include "runtime/privacy/noise/exact_sum.h"

namespace wisp::privacy::correlated_gaussian_test {
namespace {

// The norm of C x.
double NormUnderC(const std::vector<double>& x, double lambda) {
  double squares = 0, carried = 0;
  for (const double value : x) {
    carried = value + lambda * carried;
    squares += carried * carried;
  }
  return std::sqrt(squares);
}

TEST(CorrelatedGaussian, SensitivityIsThatOfTheWorstParticipation) {
  for (const double lambda : {0.0, 0.3, 0.9, 0.999}) {
    for (const uint64_t k : {1, 2, 5}) {
      for (const uint64_t b : {1, 3, 10}) {
        double worst = 0;
        for (uint64_t first = 0; first < b; ++first) {
          for (uint64_t taken = 0; taken < uint64_t{1} << k; ++taken) {  // of its steps a record may skip some
            std::vector<double> x(k * b, 0.0);
            for (uint64_t i = 0; i < k; ++i) x[first + i * b] = (taken >> i) % 2 == 1 ? 1 : 0;
            worst = std::max(worst, NormUnderC(x, lambda));
            x[first] = -x[first];  // a contribution in the other direction
            worst = std::max(worst, NormUnderC(x, lambda));
          }
        }
        EXPECT_GE(CorrelatedSensitivity(lambda, k, b), worst * (1 - 1e-12)) << lambda << " " << k << " " << b;
        EXPECT_LE(CorrelatedSensitivity(lambda, k, b), worst * (1 + 1e-8)) << lambda << " " << k << " " << b;
      }
    }
  }
}

TEST(CorrelatedGaussian, CostsWhatOneGaussianOfTheSensitivityCosts) {
  const Delta delta = *Delta::Create(1e-6);
  const double sensitivity = CorrelatedSensitivity(0.9, 5, 100);
  const std::vector run = {
      *CorrelatedGaussian({.noise_multiplier = 4, .lambda = 0.9, .participations = 5, .separation = 100})};
  const std::vector plain = {*Mechanism::Gaussian({.noise_multiplier = 4 / sensitivity})};
  EXPECT_NEAR(*PldEpsilon(run, delta), *PldEpsilon(plain, delta), 1e-9);
  EXPECT_NEAR(*RdpEpsilon(run, delta), *RdpEpsilon(plain, delta), 1e-9);
  EXPECT_NEAR(*GdpCltEpsilon(run, delta), *GdpCltEpsilon(plain, delta), 1e-9);
  EXPECT_NEAR(StepRdp(run[0], 8), StepRdp(plain[0], 8), 1e-9);
  // Two runs are two such Gaussians.
  const std::vector runs = {*run[0].WithSteps(2)}, twice = {*plain[0].WithSteps(2)};
  EXPECT_NEAR(*PldEpsilon(runs, delta), *PldEpsilon(twice, delta), 1e-9);
  EXPECT_GT(*PldEpsilon(runs, delta), *PldEpsilon(run, delta));
}

TEST(CorrelatedGaussian, WithoutLambda_EveryParticipationCostsAGaussian) {
  const std::vector run = {
      *CorrelatedGaussian({.noise_multiplier = 3, .lambda = 0, .participations = 7, .separation = 10})};
  const std::vector plain = {*Mechanism::Gaussian({.noise_multiplier = 3, .count = 7})};
  const Delta delta = *Delta::Create(1e-6);
  EXPECT_NEAR(*PldEpsilon(run, delta), *PldEpsilon(plain, delta), 1e-6);
}

TEST(CorrelatedGaussian, ImpossibleParameters_AreRefused) {
  const CorrelatedGaussianOptions good{.noise_multiplier = 1, .lambda = 0.5, .participations = 2, .separation = 3};
  EXPECT_TRUE(CorrelatedGaussian(good).ok());
  for (const auto spoil : std::initializer_list<void (*)(CorrelatedGaussianOptions&)>{
           [](auto& o) { o.noise_multiplier = 0; }, [](auto& o) { o.lambda = 1; }, [](auto& o) { o.lambda = -0.1; },
           [](auto& o) { o.participations = 0; }, [](auto& o) { o.separation = 0; }, [](auto& o) { o.runs = 0; }}) {
    CorrelatedGaussianOptions bad = good;
    spoil(bad);
    EXPECT_FALSE(CorrelatedGaussian(bad).ok());
  }
  CorrelatedGaussianOptions replaced = good;
  replaced.adjacency = Adjacency::kReplaceOne;
  EXPECT_EQ(CheckAccountable(std::vector{*CorrelatedGaussian(replaced)}).code(), StatusCode::kPrivacyRefused);
}

TEST(CorrelatedNoise, PartTakenBack_IsTheNearestInteger) {
  for (const double lambda : {0.0, 0.25, 0.9, 0.999, 1 - 1e-7}) {
    const PartTakenBack part(lambda);
    EXPECT_LE(part.lambda(), lambda);
    EXPECT_NEAR(part.lambda(), lambda, 0x1p-20);
    for (const int64_t z : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-7}, int64_t{123456789},
                            int64_t{-987654321012}, (int64_t{1} << 40) + 1, -(int64_t{1} << 40) - 3}) {
      EXPECT_LE(std::abs(static_cast<double>(part.Of(z)) - part.lambda() * static_cast<double>(z)), 0.5)
          << lambda << " " << z;
    }
    EXPECT_LE(std::abs(part.Of(int64_t{1} << 62)), int64_t{1} << 62);
    EXPECT_LE(std::abs(part.Of(-(int64_t{1} << 62))), int64_t{1} << 62);
  }
}

// Every noise of a small range, in one coordinate: the noise that explains the same release with a neighbour's data is
// no further away than the bound.
TEST(CorrelatedNoise, RoundingShift_BoundsTheNoiseThatExplainsTheSameRelease) {
  constexpr int kSteps = 4, kLargest = 6;
  double closest = 1;
  for (const double lambda : {0.25, 0.5, 0.9}) {
    const PartTakenBack part(lambda);
    for (const std::vector<int64_t>& change : {std::vector<int64_t>{1, 0, 0, 0}, {3, 0, 3, 0}, {0, 2, 0, -2}}) {
      const double bound =
          NormUnderC({change.begin(), change.end()}, part.lambda()) +
          CorrelatedRoundingShift({.lambda = part.lambda(), .num_coordinates = 1, .num_steps = kSteps});
      double largest = 0;
      for (int code = 0; code < std::pow(2 * kLargest + 1, kSteps); ++code) {
        int64_t z = 0, other = 0, rest = code;
        double squares = 0;
        for (int s = 0; s < kSteps; ++s, rest /= 2 * kLargest + 1) {
          const int64_t next = rest % (2 * kLargest + 1) - kLargest, released = next - part.Of(z);
          other = released - change[static_cast<size_t>(s)] + part.Of(other);
          z = next;
          squares += static_cast<double>((z - other) * (z - other));
        }
        largest = std::max(largest, std::sqrt(squares));
      }
      EXPECT_LE(largest, bound) << lambda;
      closest = std::min(closest, (bound - largest) / bound);
    }
  }
  EXPECT_LT(closest, 0.7);  // the bound is for the worst of all steps and coordinates
}

TEST(CorrelatedNoise, NoiseOfTheGrid_CoversTheShift) {
  const ExactGrid grid(1, 1000000);
  const double shift = CorrelatedRoundingShift({.lambda = 0.9, .num_coordinates = 1000000, .num_steps = 400});
  EXPECT_NEAR(shift, 20000 / 0.1, 1e-3);
  EXPECT_EQ(CorrelatedRoundingShift({.lambda = 0, .num_coordinates = 1000000, .num_steps = 400}), 0);
  EXPECT_EQ(grid.sigma_in_steps(2), grid.sigma_in_steps(2, 0));
  EXPECT_NEAR(static_cast<double>(grid.sigma_in_steps(2, shift) - grid.sigma_in_steps(2)), 2 * shift, 2);
}

}  // namespace
}  // namespace wisp::privacy::correlated_gaussian_test
