// Random allocation costs no less than its definition says, and hardly more.
#include "runtime/privacy/accounting/kinds/random_allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy::random_allocation_test {
namespace {

Mechanism Epochs(double noise, uint64_t epoch_steps, uint64_t epochs = 1) {
  return *RandomAllocation({.noise_multiplier = noise, .epoch_steps = epoch_steps, .epochs = epochs});
}

double Epsilon(const std::vector<Mechanism>& mechanisms, double delta) {
  return StateEpsilon(mechanisms, *Delta::Create(delta))->epsilon;
}

double ComputeEpochDelta(const Mechanism& m, Direction direction, double epsilon, Fineness fineness = Fineness::kFull) {
  return ComputeDelta(Discretise(m, direction, 1e-4, fineness), epsilon);
}

// The full one last, which must not be taken for one before it.
constexpr Fineness kAllFinenesses[] = {Fineness::kGlance, Fineness::kQuick, Fineness::kFull};

double Normal(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// E max(0, a Y - b) of the lognormal Y of mean 1 that one step has.
double Call(double a, double b, double s) {
  if (b <= 0) return a - b;
  const double d = s * std::log(a / b) + 0.5 / s;
  return a * Normal(d) - b * Normal(d - 1 / s);
}

// Both deltas of an epoch of two steps, by their definition: one number integrated, the other in closed form.
double ComputeTwoStepDelta(double s, Direction direction, double epsilon) {
  const double step = 1e-3, c = std::exp(direction == Direction::kRemove ? epsilon : -epsilon);
  double calls = 0;
  for (double z = -12; z < 12 + 1 / s; z += step) {
    const double y = std::exp(z / s - 0.5 / (s * s)), density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
    calls += step * density * Call(0.5, c - y / 2, s);
  }
  // E max(0, 1 - R / c) = E max(0, R - c) / c + 1 - 1 / c
  return direction == Direction::kRemove ? calls : calls / c + 1 - 1 / c;
}

TEST(RandomAllocation, EpochOfTwoSteps_CostsWhatItsDefinitionSays) {
  for (const double s : {0.4, 0.8, 1.0, 3.0}) {
    for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
      for (const double share : {0.1, 0.5, 0.8}) {
        const Mechanism m = Epochs(s, 2);
        const double epsilon = share * ComputeEpsilon(Discretise(m, direction, 1e-4, kAllFinenesses[0]), 1e-6);
        const double exact = ComputeTwoStepDelta(s, direction, epsilon);
        for (const Fineness fineness : kAllFinenesses) {
          const double bound = ComputeEpochDelta(m, direction, epsilon, fineness);
          EXPECT_GE(bound, exact * (1 - 1e-7)) << s << " " << share << (direction == Direction::kAdd ? " add" : "");
          EXPECT_LE(bound, exact * (fineness == Fineness::kFull ? 1.002 : 1.05))
              << s << " " << share << (direction == Direction::kAdd ? " add" : "");
        }
      }
    }
  }
}

TEST(RandomAllocation, EpochOfOneStep_IsAPlainGaussian) {
  for (const double s : {0.5, 1.0, 20.0}) {
    const double gaussian = Epsilon({*Mechanism::Gaussian({.noise_multiplier = s})}, 1e-6);
    EXPECT_GE(Epsilon({Epochs(s, 1)}, 1e-6), gaussian * (1 - 1e-5)) << s;
    EXPECT_LE(Epsilon({Epochs(s, 1)}, 1e-6), gaussian * (1 + 1e-3)) << s;
  }
}

// Sums of odd and even numbers of terms. Samples tell apart a factor of two in the noise or in t, not a percent.
TEST(RandomAllocation, EpochOfManySteps_AgreesWithSamples) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  struct Case {
    double noise;
    uint64_t t;
    double epsilon;
  };
  for (const Case& c : {Case{1, 37, 0.3}, Case{0.6, 64, 0.8}, Case{2, 13, 0.1}}) {
    constexpr int kSamples = 100000;
    double sums[2] = {}, squares[2] = {};
    for (int n = 0; n < kSamples; ++n) {
      double ratio = 0;
      for (uint64_t i = 0; i < c.t; ++i) ratio += std::exp(normal(random) / c.noise - 0.5 / (c.noise * c.noise));
      ratio /= static_cast<double>(c.t);
      const double exceeds[2] = {std::max(0.0, ratio - std::exp(c.epsilon)),
                                 std::max(0.0, 1 - std::exp(c.epsilon) * ratio)};
      for (int k = 0; k < 2; ++k) sums[k] += exceeds[k], squares[k] += exceeds[k] * exceeds[k];
    }
    for (int k = 0; k < 2; ++k) {
      const double mean = sums[k] / kSamples, error = std::sqrt((squares[k] / kSamples - mean * mean) / kSamples);
      EXPECT_NEAR(ComputeEpochDelta(Epochs(c.noise, c.t), k == 0 ? Direction::kRemove : Direction::kAdd, c.epsilon),
                  mean, 5 * error)
          << c.t << (k == 0 ? " remove" : " add");
    }
  }
}

// No mass is lost: at epsilon far below the losses delta is the whole mass of either side.
TEST(RandomAllocation, MassAndMean_AreOne) {
  for (const Mechanism& m : {Epochs(1, 100), Epochs(0.1, 1 << 20), Epochs(1e4, 999), Epochs(5, 1000)}) {
    for (int i = 0; i < 6; ++i) {
      const DiscretePld pld =
          Discretise(m, i % 2 == 0 ? Direction::kRemove : Direction::kAdd, 1e-3, kAllFinenesses[i / 2]);
      double mass = pld.infinity, other = 0;
      for (size_t i = 0; i < pld.mass.size(); ++i) {
        mass += pld.mass[i];
        other += pld.mass[i] * std::exp(-static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step);
      }
      EXPECT_GE(mass, 1) << m.Describe();
      EXPECT_NEAR(mass, 1, 5e-6) << m.Describe();
      EXPECT_NEAR(other, 1, 5e-6) << m.Describe();
      EXPECT_LT(pld.infinity, 1e-13) << m.Describe();
    }
  }
}

// Upper and lower bounds of PLD_accounting 2.0 (gaussian_allocation_epsilon_range), which computes in another way.
TEST(RandomAllocation, EpsilonLiesBetweenIndependentBounds) {
  struct Case {
    double noise;
    uint64_t t, epochs;
    double delta, lower, upper;
  };
  for (const Case& c : {Case{1, 2, 1, 1e-6, 4.163265284943954, 4.242795023522795},
                        Case{1, 100, 1, 1e-6, 0.8436711728211483, 0.8744979111842018},
                        Case{1, 100, 5, 1e-6, 1.404121682010832, 1.467230792305214}}) {
    const double epsilon = Epsilon({Epochs(c.noise, c.t, c.epochs)}, c.delta);
    EXPECT_GE(epsilon, c.lower) << c.noise << " " << c.t;
    EXPECT_LE(epsilon, c.upper * 1.001) << c.noise << " " << c.t;
    const double q = 1 / static_cast<double>(c.t);
    EXPECT_LT(epsilon, Epsilon({*Mechanism::PoissonSubsampledGaussian(
                                   {.noise_multiplier = c.noise, .sampling_probability = q, .steps = c.t * c.epochs})},
                               c.delta));
  }
}

TEST(RandomAllocation, EpochsCompose) {
  const double together = Epsilon({Epochs(1, 50, 6)}, 1e-6);
  EXPECT_NEAR(Epsilon({Epochs(1, 50, 2), Epochs(1, 50, 4)}, 1e-6), together, 1e-9);
  EXPECT_GT(together, Epsilon({Epochs(1, 50, 5)}, 1e-6));
  const Mechanism histogram = *Mechanism::Gaussian({.noise_multiplier = 20});
  EXPECT_GT(Epsilon({Epochs(1, 50, 6), histogram}, 1e-6), together);
  EXPECT_LT(Epsilon({Epochs(1, 50, 6), histogram}, 1e-6), together + Epsilon({histogram}, 1e-6));
}

// E R^a for two steps: a binomial sum with the record against without it; an integral the other way round.
TEST(RandomAllocation, RenyiDivergence_IsTheLargerOfBothDirections) {
  for (const double s : {0.7, 1.0, 4.0}) {
    for (const uint32_t order : {2u, 3u, 8u, 32u}) {
      if (order * order / (2 * s * s) > 600) continue;  // the moments overflow
      double remove = 0, add = 0;
      for (uint32_t k = 0; k <= order; ++k) {
        const double rest = order - k;
        remove += std::exp(std::lgamma(order + 1.0) - std::lgamma(k + 1.0) - std::lgamma(rest + 1) -
                           order * std::log(2.0) + (k * (k - 1.0) + rest * (rest - 1)) / (2 * s * s));
      }
      const double step = 0.01;
      for (double x = -10; x < 10; x += step) {
        for (double y = -10; y < 10; y += step * 4) {
          const double ratio = (std::exp(x / s - 0.5 / s / s) + std::exp(y / s - 0.5 / s / s)) / 2;
          add += step * step * 4 * std::exp(-(x * x + y * y) / 2) / (2 * M_PI) * std::pow(ratio, 1.0 - order);
        }
      }
      const double exact = std::log(std::max(remove, add)) / (order - 1), bound = StepRdp(Epochs(s, 2), order);
      EXPECT_GE(bound, exact * (1 - 1e-9)) << s << " " << order;
      EXPECT_LE(bound, exact * (1 + 1e-3) + 1e-8) << s << " " << order;
    }
  }
}

TEST(RandomAllocation, RdpIsAnUpperBound_AndClose) {
  for (const Mechanism& m : {Epochs(1, 100, 5), Epochs(3, 20, 40)}) {
    const double pld = Epsilon({m}, 1e-6), rdp = *RdpEpsilon(std::vector{m}, *Delta::Create(1e-6));
    EXPECT_GT(rdp, pld);
    EXPECT_LT(rdp, 1.5 * pld);
  }
  // Halfway between orders the divergence lies between its neighbours'.
  const std::vector mechanisms = {Epochs(1, 100)};
  const auto at = [&](double order) { return *RdpEpsilonAtOrders(mechanisms, *Delta::Create(1e-6), {&order, 1}); };
  EXPECT_LT(at(7.5), std::max(at(7), at(8)));
  EXPECT_EQ(StepRdp(mechanisms[0], 513), kInfinity);
}

// The law of a search's first guess: that of Poisson sampling with the same share of records.
TEST(RandomAllocation, CentralLimit_IsThatOfPoissonSampling) {
  const Mechanism poisson =
      *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1.5, .sampling_probability = 0.02, .steps = 500});
  const Delta delta = *Delta::Create(1e-5);
  EXPECT_NEAR(*GdpCltEpsilon(std::vector{Epochs(1.5, 50, 10)}, delta), *GdpCltEpsilon({&poisson, 1}, delta), 1e-9);
}

// A full figure adds up thousands of points, t times; the search asks for one of them.
TEST(RandomAllocation, Calibration_AsksOneFullFigure) {
  for (const auto& [t, epochs, epsilon] : {std::tuple{3u, 40u, 8.0}, {30u, 1u, 1.0}, {100u, 10u, 2.0}}) {
    const auto c =
        CalibrateNoise({.target = *EpsilonDelta::Create(epsilon, 1e-5),
                        .steps = t * epochs,
                        .mechanisms = [&, t = t, epochs = epochs](double noise) -> Result<std::vector<Mechanism>> {
                          return std::vector{Epochs(noise, t, epochs)};
                        }});
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_EQ(c->accountings, 1) << t;
    EXPECT_LE(c->epsilon, epsilon);
    EXPECT_GT(Epsilon({Epochs(c->noise_multiplier * (1 - 2e-4), t, epochs)}, 1e-5), epsilon) << t;
  }
}

TEST(RandomAllocation, ImpossibleParameters_AreRefused) {
  EXPECT_FALSE(RandomAllocation({.noise_multiplier = 0.09, .epoch_steps = 10}).ok());
  EXPECT_FALSE(RandomAllocation({.noise_multiplier = 1, .epoch_steps = 0}).ok());
  EXPECT_FALSE(RandomAllocation({.noise_multiplier = 1, .epoch_steps = (1 << 20) + 1}).ok());
  EXPECT_FALSE(RandomAllocation({.noise_multiplier = 1, .epoch_steps = 2, .epochs = 0}).ok());
  const auto replaced =
      RandomAllocation({.noise_multiplier = 1, .epoch_steps = 2, .adjacency = Adjacency::kReplaceOne});
  EXPECT_EQ(CheckAccountable(std::vector{*replaced}).code(), StatusCode::kPrivacyRefused);
  const auto zeroed = RandomAllocation({.noise_multiplier = 1, .epoch_steps = 2, .adjacency = Adjacency::kZeroOut});
  EXPECT_TRUE(CheckAccountable(std::vector{*zeroed}).ok());
}

}  // namespace
}  // namespace wisp::privacy::random_allocation_test
