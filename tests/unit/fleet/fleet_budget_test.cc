// The noise of a fleet's plan, and both figures of what it costs a device.
#include "runtime/fleet/fleet_budget.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"
#include "tests/unit/fleet/fleet_test_util.h"

namespace wisp::fleet::fleet_budget_test {
namespace {

FleetPlan Goal(double epsilon, uint32_t takes_part) {
  return {.name = "films", .devices = 99999, .rounds = 90, .takes_part = takes_part, .epsilon = epsilon};
}

// Epsilon of `count` plain Gaussians from their closed form (Balle and Wang 2018, theorem 8): together they are one of
// noise / sqrt(count).
double ExactEpsilon(double noise, double count, double delta) {
  const double mu = std::sqrt(count) / noise;
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  double low = 0, high = 1000;
  for (int i = 0; i < 200; ++i) {
    const double e = (low + high) / 2;
    (phi(mu / 2 - e / mu) - std::exp(e) * phi(-mu / 2 - e / mu) > delta ? low : high) = e;
  }
  return high;
}

TEST(MakePlan, NoiseIsTheSmallestOfFourDigitsThatKeepsThePromise) {
  for (const double epsilon : {0.5, 1.0, 3.0, 10.0}) {
    for (const uint32_t takes_part : {1u, 3u, 9u}) {
      const auto plan = MakePlan(Goal(epsilon, takes_part));
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const double noise = plan->noise_multiplier;
      EXPECT_EQ(privacy::ShortText(noise, 4), privacy::DoubleText(noise));
      EXPECT_LE(ExactEpsilon(noise, takes_part, 1e-5), epsilon);
      // Less noise by two in the fourth digit breaks it.
      const double step = std::pow(10.0, std::floor(std::log10(noise)) - 3);
      EXPECT_GT(ExactEpsilon(noise - 2 * step, takes_part, 1e-5), epsilon) << epsilon << " " << takes_part;
      EXPECT_TRUE(plan->Check().ok());
      EXPECT_TRUE(CheckBudget(*plan).ok());
    }
  }
}

TEST(MakePlanForReaders, KeepsThePromiseWithTheSmallestNoise) {
  for (const double epsilon : {1.0, 10.0}) {
    const auto plan = MakePlanForReaders(Goal(0, 9), epsilon);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto cost = CostOf(*plan);
    ASSERT_TRUE(cost.ok());
    EXPECT_LE(cost->readers, epsilon);
    EXPECT_GT(cost->readers, 0.995 * epsilon);
    EXPECT_GE(plan->epsilon, cost->device);
    EXPECT_GT(plan->epsilon, epsilon);
    EXPECT_TRUE(CheckBudget(*plan).ok());
  }
}

TEST(MakePlan, DoesNotReadTheNoiseOfTheGoal) {
  FleetPlan goal = Goal(3, 1);
  goal.noise_multiplier = -7;
  const auto plan = MakePlan(goal);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->ToText(), MakePlan(Goal(3, 1))->ToText());
}

TEST(MakePlan, RefusesWhatThePlanRefuses) {
  EXPECT_NE(MakePlan(Goal(3, 7)).status().message().find("must divide the 90 rounds"), std::string::npos);
  EXPECT_NE(MakePlan(Goal(0, 1)).status().message().find("epsilon is 0"), std::string::npos);
  FleetPlan goal = Goal(3, 1);
  goal.delta = 1e-4;
  EXPECT_NE(MakePlan(goal).status().message().find("not below 1 / 99999"), std::string::npos);
}

// A large epsilon would allow less noise than the accountant of allocation has.
TEST(MakePlan, NoiseHasALeast) {
  const auto plan = MakePlan(Goal(100, 1));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_GE(plan->noise_multiplier, 0.1);
}

TEST(CheckBudget, RefusesLessNoiseOrMoreParticipations) {
  const auto plan = MakePlan(Goal(3, 3));
  ASSERT_TRUE(plan.ok());
  FleetPlan less = *plan;
  less.noise_multiplier *= 0.99;
  EXPECT_NE(CheckBudget(less).message().find("promises epsilon 3"), std::string::npos);
  FleetPlan more = *plan;
  more.takes_part = 5;
  EXPECT_EQ(CheckBudget(more).code(), StatusCode::kPrivacyRefused);
}

// The figures of the calibrated noise include what discrete noise costs: with so many numbers that it counts, the
// Gaussian alone would cost less than what is stated.
TEST(CostOf, IncludesThePriceOfDiscreteNoise) {
  const Participations few{.noise_multiplier = 1, .num_weights = 1, .count = 100};
  Participations many = few;
  many.num_weights = uint64_t{1} << 32;
  const auto cheap = EpsilonOf(few, 1e-5), dear = EpsilonOf(many, 1e-5);
  ASSERT_TRUE(cheap.ok() && dear.ok());
  // Twice 113 N / sigma^2 with N = 100 2^32 and sigma = 2^30, and what its factor on delta costs.
  constexpr double kEta = 113.0 * 100 * 0x1p32 / 0x1p60;
  EXPECT_GE(*dear - *cheap, 2 * kEta);
  EXPECT_LE(*dear - *cheap, 10 * kEta);
  const auto charge = ChargeFor(many, "films", "updates");
  ASSERT_TRUE(charge.ok());
  EXPECT_NEAR(charge->loss_slack, kEta, 1e-3 * kEta);
  EXPECT_EQ(charge->mechanism.steps(), 100u);
  EXPECT_EQ(charge->mechanism.word(), "gaussian");
}

TEST(CostOf, ReadersKnowLessThanTheDevice) {
  auto plan = MakePlan(Goal(3, 3));
  ASSERT_TRUE(plan.ok());
  const auto cost = CostOf(*plan);
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  EXPECT_LE(cost->device, 3);
  EXPECT_GT(cost->device, 2.99);
  EXPECT_LT(cost->readers, cost->device / 3);
  EXPECT_EQ(cost->readers_of_evaluations, 0);
  // In every round nothing is hidden.
  plan->takes_part = plan->rounds;
  plan->noise_multiplier = 15;
  const auto always = CostOf(*plan);
  ASSERT_TRUE(always.ok());
  EXPECT_NEAR(always->readers, always->device, 1e-3 * always->device);
  EXPECT_LE(always->readers, always->device);
}

TEST(CostOf, EvaluatorsAreAskedInFewerRounds) {
  FleetPlan goal = Goal(3, 3);
  goal.evaluators = 0.2;
  goal.evaluations = 6;
  const auto plan = MakePlan(goal);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto cost = CostOf(*plan);
  ASSERT_TRUE(cost.ok());
  EXPECT_GT(cost->readers_of_evaluations, cost->readers);
  EXPECT_LE(cost->readers_of_evaluations, cost->device);
}

}  // namespace
}  // namespace wisp::fleet::fleet_budget_test
