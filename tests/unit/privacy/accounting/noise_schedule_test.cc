// Lists of many different noises: a schedule of the noise multiplier.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/privacy_filter.h"

namespace wisp::privacy::noise_schedule_test {
namespace {

double Epsilon(const std::vector<Mechanism>& mechanisms) { return *PldEpsilon(mechanisms, *Delta::Create(1e-6)); }

Mechanism Plain(double noise) { return *Mechanism::Gaussian({.noise_multiplier = noise}); }

Mechanism Sampled(double noise, uint64_t steps) {
  return *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = noise, .sampling_probability = 0.02, .steps = steps});
}

TEST(NoiseSchedule, PlainGaussians_CostWhatTheirSquaresAddUpTo) {
  for (const int n : {3, 12, 400}) {
    std::vector<Mechanism> all;
    double inverse_squares = 0;
    for (int i = 0; i < n; ++i) {
      const double noise = 10 + i;
      all.push_back(Plain(noise));
      inverse_squares += 1 / (noise * noise);
    }
    EXPECT_NEAR(Epsilon(all) / Epsilon({Plain(1 / std::sqrt(inverse_squares))}), 1, 2e-4) << n;
  }
}

// A schedule lies between its quietest and its loudest noise, and is hardly dearer on the coarser grid for many.
TEST(NoiseSchedule, SubsampledGaussians_LieBetweenTheirEnds) {
  for (const int n : {9, 30}) {
    std::vector<Mechanism> rising;
    for (int i = 0; i < n; ++i) rising.push_back(Sampled(1 + 1e-3 * i / n, 5));
    const auto steps = static_cast<uint64_t>(5 * n);
    EXPECT_GT(Epsilon(rising), Epsilon({Sampled(1.001, steps)})) << n;
    EXPECT_LT(Epsilon(rising), Epsilon({Sampled(1, steps)}) * 1.001) << n;
  }
}

// All of these are rounded to one noise. That must not be a larger one.
TEST(NoiseSchedule, TooManyKinds_AreRoundedUp) {
  std::vector<Mechanism> all;
  for (int i = 0; i < 200; ++i) all.push_back(Sampled(1.0001 + 1e-6 * i, 5));
  EXPECT_GT(Epsilon(all), Epsilon({Sampled(1.0003, 1000)}));
  EXPECT_LT(Epsilon(all), Epsilon({Sampled(1, 1000)}) * 1.001);
}

// A dozen noises, as a schedule of the learning rate has them. The search's grids differ, so that it can predict the
// full figure and asks for one.
TEST(NoiseSchedule, Calibration_AsksOneFullFigure) {
  const auto make = [](double noise) -> Result<std::vector<Mechanism>> {
    std::vector<Mechanism> all;
    for (int i = 0; i < 17; ++i) all.push_back(Sampled(noise * std::exp2(i / 8.0), 60));
    return all;
  };
  const Delta delta = *Delta::Create(1e-5);
  const auto c = CalibrateNoise({.target = *EpsilonDelta::Create(2, delta.value()), .steps = 1020, .mechanisms = make});
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->accountings, 1);
  EXPECT_LE(c->epsilon, 2);
  EXPECT_GT(*PldEpsilon(*make(c->noise_multiplier * (1 - 2e-4)), delta), 2);
  const auto ask = [&](Fineness fineness) {
    return StateEpsilon(*make(c->noise_multiplier), delta, fineness)->epsilon;
  };
  EXPECT_GT(ask(Fineness::kGlance), ask(Fineness::kQuick));
  EXPECT_GT(ask(Fineness::kQuick), c->epsilon);
  EXPECT_LT(ask(Fineness::kGlance), 1.01 * c->epsilon);
}

TEST(NoiseSchedule, FilterAddsUpEveryNoise) {
  RenyiPath path, twice;
  for (int i = 0; i < 100; ++i) path.Add(Sampled(1 + i / 100.0, 10), 0);
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 100; ++i) twice.Add(Sampled(1 + i / 100.0, 5), 0);
  }
  for (size_t j = 0; j < kRenyiOrders.size(); ++j) EXPECT_NEAR(twice.sums()[j] / path.sums()[j], 1, 1e-9);
}

}  // namespace
}  // namespace wisp::privacy::noise_schedule_test
