// Compares accountants with figures computed elsewhere, with each other, and with the one-step definition.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/kinds/random_allocation.h"
#include "runtime/privacy/accounting/pld.h"
#include "tests/unit/privacy/accounting/accountant_golden.h"

namespace wisp::privacy::accountant_test {
namespace {

Mechanism Subsampled(double sigma, double q, uint64_t steps) {
  return *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = sigma, .sampling_probability = q, .steps = steps});
}
Delta DeltaAt(double value) { return *Delta::Create(value); }
double Pld(const std::vector<Mechanism>& m, double delta) { return *PldEpsilon(m, DeltaAt(delta)); }
double Cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

struct Golden {
  double q, sigma;
  uint64_t steps;
  double delta, pld_remove, pld_add, rdp, gdp_clt;
};

// Computed independently of this code: connect the dots at grid 1e-4, and 40-digit arithmetic for the rest. In the last
// row the losses are far smaller than that grid, which costs its PLD figures up to 0.04; ours use a finer grid there.
// Rounding all losses down and up on a grid of 2e-6 brackets the truth: remove 1.9436 to 1.9636, add 0.1724 to 0.1924.
constexpr Golden kComputed[] = {
    {.q = 0.00426667,
     .sigma = 1.1,
     .steps = 14062,
     .delta = 1e-5,
     .pld_remove = 2.381686,
     .pld_add = 2.243657,
     .rdp = 2.596556,
     .gdp_clt = 2.3243},
    {.q = 0.01,
     .sigma = 1,
     .steps = 10000,
     .delta = 1e-5,
     .pld_remove = 6.187745,
     .pld_add = 5.611546,
     .rdp = 6.712738,
     .gdp_clt = 6.0071},
    {.q = 0.1,
     .sigma = 2,
     .steps = 500,
     .delta = 1e-5,
     .pld_remove = 5.55547,
     .pld_add = 4.956576,
     .rdp = 6.034322,
     .gdp_clt = 5.3695},
    {.q = 0.02,
     .sigma = 0.7,
     .steps = 500,
     .delta = 1e-5,
     .pld_remove = 6.65378,
     .pld_add = 3.262659,
     .rdp = 7.664088,
     .gdp_clt = 5.1885},
    {.q = 0.05,
     .sigma = 1.5,
     .steps = 1000,
     .delta = 1e-6,
     .pld_remove = 6.199695,
     .pld_add = 5.395919,
     .rdp = 6.667814,
     .gdp_clt = 5.9221},
    {.q = 0.0001,
     .sigma = 0.5,
     .steps = 10000,
     .delta = 1e-6,
     .pld_remove = 1.9536,
     .pld_add = 0.1824,
     .rdp = 3.421697,
     .gdp_clt = 0.2844},
};

double Tolerance(const Golden& g) { return g.q < 0.001 ? 2e-3 : 1e-4; }

TEST(Pld, EpsilonEqualsIndependentComputation) {
  for (const Golden& g : kComputed) {
    const double epsilon = Pld({Subsampled(g.sigma, g.q, g.steps)}, g.delta);
    EXPECT_NEAR(epsilon, std::max(g.pld_remove, g.pld_add), Tolerance(g)) << g.q << " " << g.sigma;
  }
}

// A grid with a sixteenth of the points also gives a bound, close to the other one, in a tenth of the time.
TEST(Pld, QuickBoundIsAboveAndNear) {
  const auto draws = *Mechanism::BoundedRange({.range = 0.1, .count = 200});
  std::vector<std::vector<Mechanism>> lists = {{draws}, {draws, Subsampled(2, 0.1, 100)}};
  for (const Golden& g : kComputed) lists.push_back({Subsampled(g.sigma, g.q, g.steps)});
  for (const uint64_t steps : {1, 2, 50, 1000}) {
    for (const double sigma : {0.4, 1.0, 20.0}) lists.push_back({Subsampled(sigma, 0.5, steps)});
  }
  for (const std::vector<Mechanism>& list : lists) {
    const double full = StateEpsilon(list, DeltaAt(1e-5))->epsilon,
                 quick = StateEpsilon(list, DeltaAt(1e-5), Fineness::kQuick)->epsilon;
    EXPECT_GE(quick, full * (1 - 1e-9)) << list.front().Describe();
    EXPECT_LE(quick, full * 1.005 + 1e-4) << list.front().Describe();
  }
}

// A figure that was asked for before is remembered. It must be that of exactly this question.
TEST(Pld, FigureAskedForAgain_IsThatOfTheQuestion) {
  const Golden &one = kComputed[0], &other = kComputed[1];
  const Mechanism a = Subsampled(one.sigma, one.q, one.steps), b = Subsampled(other.sigma, other.q, other.steps);
  const auto ask = [](const std::vector<Mechanism>& list, double delta, Fineness fineness) {
    return StateEpsilon(list, DeltaAt(delta), fineness)->epsilon;
  };
  std::vector<std::array<double, 5>> rounds;
  for (int round = 0; round < 2; ++round) {
    rounds.push_back({ask({a}, one.delta, Fineness::kFull), ask({b}, one.delta, Fineness::kFull),
                      ask({a, b}, one.delta, Fineness::kFull), ask({a}, one.delta / 10, Fineness::kFull),
                      ask({a}, one.delta, Fineness::kQuick)});
  }
  EXPECT_EQ(rounds[0], rounds[1]);
  EXPECT_NEAR(rounds[0][0], std::max(one.pld_remove, one.pld_add), Tolerance(one));
  EXPECT_EQ(std::set<double>(rounds[0].begin(), rounds[0].end()).size(), 5u);
}

// The points that are kept of a distribution answer with the same bits, or not at all.
TEST(Pld, EpsilonNearADelta_IsThatOfTheWholeDistribution) {
  for (const Golden& g : kComputed) {
    const DiscretePld pld = Compose({{Discretise(Subsampled(g.sigma, g.q, 1), Direction::kRemove, 1e-3), g.steps}});
    const EpsilonNear near(pld, g.delta);
    for (const double delta : {0.9, 0.95, 1 - 1e-9, 1.0, 1 + 1e-9, 1.05, 1.1})
      EXPECT_EQ(near.Epsilon(delta * g.delta), ComputeEpsilon(pld, delta * g.delta)) << g.q << " " << delta;
    for (const double delta : {0.0, 0.5, 0.85, 1.2, 1e4}) EXPECT_FALSE(near.Epsilon(delta * g.delta)) << delta;
    const EpsilonNear everything(pld, 0.9), nothing(pld, 1e-30);
    EXPECT_FALSE(everything.Epsilon(0.9));
    EXPECT_FALSE(nothing.Epsilon(1e-30));
  }
}

// Both directions matter to the bound even if one is always smaller in the table, so each is checked by itself.
TEST(Pld, EachDirectionEqualsIndependentComputation) {
  for (const Golden& g : kComputed) {
    for (Direction direction : {Direction::kRemove, Direction::kAdd}) {
      const DiscretePld step = Discretise(Subsampled(g.sigma, g.q, 1), direction, 1e-4);
      const double epsilon = ComputeEpsilon(Compose({{step, g.steps}}), g.delta);
      EXPECT_NEAR(epsilon, direction == Direction::kRemove ? g.pld_remove : g.pld_add, Tolerance(g))
          << g.q << " " << g.sigma;
    }
  }
}

TEST(Pld, EpsilonAgreesWithOpacus) {
  for (const PublicEpsilon& g : kOpacusPrv) {
    const double epsilon = Pld({Subsampled(g.sigma, g.q, g.steps)}, g.delta);
    EXPECT_LE(epsilon, g.epsilon) << g.sigma << " " << g.q << " " << g.steps;
    EXPECT_GE(epsilon, g.epsilon - g.tolerance) << g.sigma << " " << g.q << " " << g.steps;
  }
}

TEST(Pld, EpsilonAgreesWithTensorflowPrivacy) {
  for (const PublicEpsilon& g : kTensorflowPld) {
    EXPECT_NEAR(Pld({Subsampled(g.sigma, g.q, g.steps)}, g.delta), g.epsilon, g.tolerance + 1e-4)
        << g.sigma << " " << g.q;
  }
}

TEST(Pld, OneStepAgreesWithGoogleHockeyStick) {
  for (const PublicDelta& g : kGoogleHockeyStick) {
    const DiscretePld pld = Discretise(Subsampled(g.sigma, g.q, 1), g.direction, 1e-5);
    EXPECT_NEAR(ComputeDelta(pld, g.epsilon), g.delta, 1e-7) << g.sigma << " " << g.q << " " << g.epsilon;
  }
}

TEST(Gdp, EpsilonEqualsIndependentComputation) {
  for (const Golden& g : kComputed) {
    EXPECT_NEAR(*GdpCltEpsilon(std::vector{Subsampled(g.sigma, g.q, g.steps)}, DeltaAt(g.delta)), g.gdp_clt, 1e-4);
  }
}

TEST(Rdp, EpsilonIsNearIndependentComputationAndAbovePld) {
  for (const Golden& g : kComputed) {
    const std::vector m = {Subsampled(g.sigma, g.q, g.steps)};
    const double rdp = *RdpEpsilon(m, DeltaAt(g.delta));
    EXPECT_NEAR(rdp, g.rdp, 0.01 * g.rdp) << "other orders";
    EXPECT_GT(rdp, Pld(m, g.delta));
  }
}

// Opacus, accountants_test.py: sigma 1.5, q 0.04, 2250 steps, delta 1e-5, its orders.
TEST(Rdp, EpsilonAtOpacusOrdersEqualsOpacus) {
  std::vector<double> orders;
  for (int x = 1; x < 100; ++x) orders.push_back(1 + x / 10.0);
  for (int x = 12; x < 64; ++x) orders.push_back(x);
  EXPECT_NEAR(*RdpEpsilonAtOrders(std::vector{Subsampled(1.5, 0.04, 2250)}, DeltaAt(1e-5), orders), 7.32911117143,
              5e-8);
}

// Analytic Gaussian mechanism (Balle and Wang 2018), sigma for (epsilon, delta) at 15 digits.
TEST(Pld, PlainGaussianEqualsAnalyticGaussian) {
  constexpr struct {
    double epsilon, delta, sigma;
  } kAnalytic[] = {{1, 1e-5, 3.73063163481594},
                   {0.5, 1e-6, 8.05761848072504},
                   {2, 1e-6, 2.23047627118642},
                   {5, 1e-5, 0.891868264951518},
                   {10, 1e-8, 0.615846355760122}};
  for (const auto& g : kAnalytic) {
    const Mechanism m = *Mechanism::Gaussian({.noise_multiplier = g.sigma});
    const double epsilon = Pld({m}, g.delta);
    EXPECT_NEAR(epsilon, g.epsilon, 1e-4);
    EXPECT_GE(epsilon, g.epsilon - 1e-9) << "an upper bound may not fall below the exact value";
    const Mechanism quarter = *Mechanism::Gaussian({.noise_multiplier = 2 * g.sigma, .count = 4});
    EXPECT_NEAR(Pld({quarter}, g.delta), g.epsilon, 1e-4);
  }
}

// One step, by the definition: delta = E_P max(0, 1 - e^(epsilon - loss)), on an interval of outcomes with a closed
// form.
TEST(Pld, OneStepIsNeverBelowTheDefinition) {
  for (double sigma : {0.5, 1.0, 3.0}) {
    for (double q : {0.01, 0.3, 0.9}) {
      for (double epsilon : {0.01, 0.1, 0.5, 1.0}) {
        const auto exact = [&](bool remove) {
          // remove: outcomes above x exceed epsilon; add: below x, where the ratio is under e^-epsilon.
          const double bound = remove ? std::exp(epsilon) : std::exp(-epsilon);
          if (bound <= 1 - q) return 0.0;
          const double x = sigma * sigma * std::log((bound - (1 - q)) / q) + 0.5;
          const double without = remove ? Cdf(-x / sigma) : Cdf(x / sigma);
          const double with = (1 - q) * without + q * (remove ? Cdf((1 - x) / sigma) : Cdf((x - 1) / sigma));
          return remove ? with - std::exp(epsilon) * without : without - std::exp(epsilon) * with;
        };
        const double delta = std::max({0.0, exact(true), exact(false)});
        const double bound = *PldDelta(std::vector{Subsampled(sigma, q, 1)}, epsilon);
        EXPECT_GE(bound, delta) << sigma << " " << q << " " << epsilon;
        EXPECT_LE(bound, delta + 1e-7) << sigma << " " << q << " " << epsilon;
      }
    }
  }
}

TEST(Pld, EpsilonGrowsWithStepsSamplingAndLessNoise) {
  const double base = Pld({Subsampled(1.0, 0.02, 300)}, 1e-5);
  EXPECT_GT(Pld({Subsampled(1.0, 0.02, 301)}, 1e-5), base);
  EXPECT_GT(Pld({Subsampled(1.0, 0.021, 300)}, 1e-5), base);
  EXPECT_GT(Pld({Subsampled(0.99, 0.02, 300)}, 1e-5), base);
  EXPECT_GT(Pld({Subsampled(1.0, 0.02, 300)}, 0.9e-5), base);
}

TEST(Pld, HalvesTogetherCostTheWhole) {
  const double whole = Pld({Subsampled(1.0, 0.02, 300)}, 1e-5);
  EXPECT_DOUBLE_EQ(Pld({Subsampled(1.0, 0.02, 100), Subsampled(1.0, 0.02, 200)}, 1e-5), whole);
  // These are not merged, because the noise differs in its last digits: they are composed in the frequency domain.
  EXPECT_NEAR(Pld({Subsampled(1.0, 0.02, 100), Subsampled(1.0 + 1e-12, 0.02, 200)}, 1e-5), whole, 1e-4);
}

TEST(Pld, AnotherMechanismCostsMoreThanOneAndLessThanTheSum) {
  const Mechanism histogram = *Mechanism::Gaussian({.noise_multiplier = 5});
  const Mechanism steps = Subsampled(1.2, 0.1, 100);
  const double together = Pld({histogram, steps}, 1e-5);
  EXPECT_GT(together, Pld({steps}, 1e-5));
  EXPECT_LT(together, Pld({steps}, 1e-5) + Pld({histogram}, 1e-5));
}

TEST(Pld, ExtremesAreFiniteOrSaidToBeInfinite) {
  EXPECT_LT(Pld({Subsampled(1, 1e-6, 1000000)}, 1e-6), 0.01);
  EXPECT_LT(Pld({Subsampled(100, 1, 1000000)}, 1e-6), 120);
  EXPECT_TRUE(std::isfinite(Pld({Subsampled(0.3, 0.1, 10)}, 1e-5)));
  EXPECT_TRUE(std::isinf(Pld({Subsampled(0.01, 1, 1)}, 1e-5)));
  EXPECT_EQ(Pld({}, 1e-5), 0);
}

TEST(Accountants, PairingsWithoutProofAreRefused) {
  const auto replace = Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = 1, .sampling_probability = 0.1, .steps = 1, .adjacency = Adjacency::kReplaceOne});
  for (const auto& result :
       {PldEpsilon(std::vector{*replace}, DeltaAt(1e-5)), RdpEpsilon(std::vector{*replace}, DeltaAt(1e-5)),
        PldEpsilon(std::vector{Subsampled(1, 0.1, 1),
                               *Mechanism::Gaussian({.noise_multiplier = 1, .adjacency = Adjacency::kZeroOut})},
                   DeltaAt(1e-5))}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kPrivacyRefused);
    EXPECT_NE(result.status().message().find("adjacency"), std::string::npos);
  }
}

TEST(Calibration, NoiseIsTheSmallestThatKeepsThePromise) {
  for (double target : {0.5, 8.0}) {
    const auto c =
        CalibrateNoise({.target = *EpsilonDelta::Create(target, 1e-5), .sampling_probability = 0.04, .steps = 2000});
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_LE(c->epsilon, target);
    EXPECT_LE(Pld({Subsampled(c->noise_multiplier, 0.04, 2000)}, 1e-5), target);
    EXPECT_GT(Pld({Subsampled(c->noise_multiplier * 0.999, 0.04, 2000)}, 1e-5), target);
  }
}

// Each question is a composition on up to two million points.
TEST(Calibration, AsksTheAccountantAFewTimesOnly) {
  int asked = 0;
  for (const auto& [target, q, steps] :
       {std::tuple{0.5, 0.04, 2000u}, {8.0, 0.04, 2000u}, {8.0, 1.0, 10u}, {0.01, 0.001, 100u}}) {
    const auto c =
        CalibrateNoise({.target = *EpsilonDelta::Create(target, 1e-5), .sampling_probability = q, .steps = steps});
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_GE(c->accountings, 1) << target;
    EXPECT_LE(c->accountings, 2) << target;
    asked = std::max(asked, c->accountings);
  }
  std::printf("asked %d times at most\n", asked);
}

// The work of a private run: its noise is found, and its cost is asked for again as a ledger does, at another delta. A
// thread of its own knows no figure yet. The search by full figures alone transformed 7 to 20 million points.
TEST(Calibration, OfAThousandStepsTransformsFewPoints) {
  uint64_t most = 0;
  for (const double q : {0.05, 0.35}) {
    for (const double target : {1.0, 4.0, 10.0}) {
      std::thread([&] {
        const auto c =
            CalibrateNoise({.target = *EpsilonDelta::Create(target, 1e-5), .sampling_probability = q, .steps = 1000});
        ASSERT_TRUE(c.ok()) << c.status().message();
        const uint64_t points = TransformedPoints();
        EXPECT_LE(points, 1'200'000u) << q << " " << target;
        most = std::max(most, points);
        Pld({Subsampled(c->noise_multiplier, q, 1000)}, 1.05e-5);
        EXPECT_EQ(TransformedPoints(), points) << "a figure at a delta nearby was computed anew";
      }).join();
    }
  }
  std::printf("transformed %llu points at most\n", static_cast<unsigned long long>(most));
}

// No line leads to the noise here, so every guess is wrong.
TEST(Calibration, ACostThatFallsInStepsKeepsThePromise) {
  const auto mechanisms = [](double noise) -> Result<std::vector<Mechanism>> {
    return std::vector{Subsampled(std::exp(std::floor(std::log(noise) / 0.005) * 0.005), 0.04, 300)};
  };
  const auto c = CalibrateNoise({.target = *EpsilonDelta::Create(2, 1e-5), .mechanisms = mechanisms});
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_LE(c->epsilon, 2);
  EXPECT_LE(Pld(*mechanisms(c->noise_multiplier), 1e-5), 2);
  EXPECT_GT(Pld(*mechanisms(c->noise_multiplier * 0.9998), 1e-5), 2);
}

TEST(Calibration, TargetsThatHideNobodyAreRefused) {
  for (double epsilon : {100.01, 1e4, 1e9}) {
    const auto c =
        CalibrateNoise({.target = *EpsilonDelta::Create(epsilon, 1e-5), .sampling_probability = 0.04, .steps = 2000});
    EXPECT_EQ(c.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(c.status().message().find("allowed is 1e-06 to 100"), std::string::npos) << c.status().message();
  }
}

TEST(Calibration, WhatIsSpentBesideIsPaidFor) {
  const std::vector beside = {*Mechanism::Gaussian({.noise_multiplier = 5})};
  const EpsilonDelta target = *EpsilonDelta::Create(8, 1e-5);
  const auto alone = CalibrateNoise({.target = target, .sampling_probability = 0.04, .steps = 2000});
  const auto with =
      CalibrateNoise({.target = target, .sampling_probability = 0.04, .steps = 2000, .composed_with = beside});
  EXPECT_GT(with->noise_multiplier, alone->noise_multiplier);
  const std::vector too_much = {*Mechanism::Gaussian({.noise_multiplier = 0.3})};
  const auto refused =
      CalibrateNoise({.target = target, .sampling_probability = 0.04, .steps = 2000, .composed_with = too_much});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
}

// Epochs of random allocation, and a schedule of two noises that rise together.
TEST(Calibration, NoiseOfAnyMechanismsKeepsThePromise) {
  const auto epochs = [](double noise) -> Result<std::vector<Mechanism>> {
    WISP_ASSIGN_OR_RETURN(const Mechanism m,
                          RandomAllocation({.noise_multiplier = noise, .epoch_steps = 50, .epochs = 4}));
    return std::vector{m};
  };
  const auto schedule = [](double noise) -> Result<std::vector<Mechanism>> {
    return std::vector{Subsampled(noise, 0.04, 300), Subsampled(noise * 0.8, 0.04, 300)};
  };
  for (const auto& mechanisms : {std::function<Result<std::vector<Mechanism>>(double)>(epochs), {schedule}}) {
    const auto c = CalibrateNoise({.target = *EpsilonDelta::Create(2, 1e-5), .steps = 600, .mechanisms = mechanisms});
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_LE(Pld(*mechanisms(c->noise_multiplier), 1e-5), 2);
    EXPECT_GT(Pld(*mechanisms(c->noise_multiplier * 0.999), 1e-5), 2);
  }
  // Noise that a mechanism refuses, here below 0.1 and above 1e4, is not searched.
  const auto least = CalibrateNoise({.target = *EpsilonDelta::Create(100, 1e-5), .mechanisms = epochs});
  ASSERT_TRUE(least.ok()) << least.status().message();
  EXPECT_GE(least->noise_multiplier, 0.1);
  const auto most = CalibrateNoise({.target = *EpsilonDelta::Create(1e-5, 1e-60), .steps = 200, .mechanisms = epochs});
  EXPECT_EQ(most.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(most.status().message().find("even with noise multiplier 8192 200 steps"), std::string::npos)
      << most.status().message();
}

TEST(Mechanism, TextReadsBackBitForBit) {
  for (const Mechanism& m :
       {Subsampled(1.0 / 3, 1e-7 / 3, 12345678901), *Mechanism::Gaussian({.noise_multiplier = M_PI, .count = 3})}) {
    const auto back = Mechanism::FromText(m.ToText());
    ASSERT_TRUE(back.ok()) << m.ToText();
    EXPECT_EQ(*back, m);
  }
  for (const char* bad :
       {"", "gaussian", "gaussian noise_multiplier=-1 steps=1 adjacency=add_remove",
        "gaussian noise_multiplier=1 steps=1 adjacency=x", "laplace noise_multiplier=1 steps=1 adjacency=add_remove",
        "gaussian noise_multiplier=1 steps=1 adjacency=add_remove "}) {
    EXPECT_FALSE(Mechanism::FromText(bad).ok()) << bad;
  }
}

TEST(Mechanism, ImpossibleParametersAreRefused) {
  for (double bad : {0.0, -1.0, 1.1e12, std::nan(""), HUGE_VAL})
    EXPECT_FALSE(Mechanism::Gaussian({.noise_multiplier = bad}).ok());
  for (double bad : {0.0, -0.1, 1.1, std::nan("")}) {
    EXPECT_FALSE(
        Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1, .sampling_probability = bad, .steps = 1}).ok());
  }
  EXPECT_FALSE(
      Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1, .sampling_probability = 0.1, .steps = 0}).ok());
}

// 1e7 and 5e8 points: a bound that needs no grid replaces it. It is sound and finite.
TEST(Pld, MoreLossesThanAGridHoldsAreBoundedByTheLargest) {
  for (const double count : {std::exp2(39), std::exp2(50)}) {
    const double step = 1e-9;
    const std::vector<PldPower> terms = {
        {{.step = step, .first = -1, .mass = {0.25, 0.25, 0.25, 0.25}}, static_cast<uint64_t>(count)}};
    const DiscretePld composed = Compose(terms);
    EXPECT_EQ(composed.mass.size(), 1u);
    EXPECT_LT(composed.infinity, 1e-12);
    const double epsilon = ComputeEpsilon(composed, 1e-6);
    EXPECT_GE(epsilon, 0.5 * step * count) << "below the mean loss";
    EXPECT_LE(epsilon, 2 * step * count * (1 + 1e-9)) << "above the largest";
  }
}

// These losses are so small that a grid of their size would have too many points.
TEST(Pld, LossesOfNextToNothingCostNextToNothing) {
  for (const double probability : {1e-300, 1e-310}) {
    for (const double noise : {1.0, 1e12}) {
      const auto m = Mechanism::PoissonSubsampledGaussian(
          {.noise_multiplier = noise, .sampling_probability = probability, .steps = 1000});
      ASSERT_TRUE(m.ok()) << m.status().message();
      const auto stated = StateEpsilon({&*m, 1}, *Delta::Create(1e-6));
      ASSERT_TRUE(stated.ok()) << stated.status().message();
      EXPECT_GE(stated->epsilon, 0);
      EXPECT_LE(stated->epsilon, 1e-9) << probability << " " << noise;
    }
  }
}

}  // namespace
}  // namespace wisp::privacy::accountant_test
