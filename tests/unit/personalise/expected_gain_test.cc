// The gain to expect is that of the nearest measured deployment, or unknown. Tables of it need no calibration.
#include "runtime/personalise/expected_gain.h"

#include <gtest/gtest.h>

#include "runtime/personalise/gain_table.h"

namespace wisp::expected_gain_test {
namespace {

constexpr MeasuredGain kShop = {.data = "shop",
                                .differs = "other people",
                                .carried_by = "training all weights",
                                .people = 2000,
                                .items = 20000,
                                .noise_to_signal = 0.6,
                                .noise_of_an_item = 30,
                                .lowest = 0.05,
                                .highest = 0.08};
constexpr MeasuredGain kCafe = {.data = "cafe",
                                .differs = "other tastes",
                                .carried_by = "counts",
                                .by_counts = true,
                                .people = 2000,
                                .items = 500,
                                .noise_to_signal = 0.3,
                                .noise_of_an_item = 1.5,
                                .succession_signal = 9,
                                .lowest = 0.3,
                                .highest = 0.4,
                                .found_better = true};
PublicNumbers At(const MeasuredGain& m) {
  return {m.noise_to_signal, m.noise_of_an_item, m.succession_signal, m.items, m.people, true};
}

TEST(ExpectedGain, IsThatOfTheNearestMeasurement) {
  const MeasuredGain measured[] = {kShop, kCafe};
  PublicNumbers near_cafe = At(kCafe);
  near_cafe.people = 5000, near_cafe.noise_to_signal = 0.1, near_cafe.noise_of_an_item = 0.6;
  const GainForecast forecast = ForecastGain(near_cafe, measured);
  EXPECT_TRUE(forecast.is_near);
  ASSERT_EQ(forecast.measured.size(), 1u);
  EXPECT_STREQ(forecast.measured.front().data, "cafe");
  EXPECT_EQ(forecast.lowest(), 0.3);
  EXPECT_EQ(forecast.highest(), 0.4);
  EXPECT_TRUE(forecast.found_better());
}

TEST(ExpectedGain, FarFromAllMeasurements_IsUnknown) {
  const MeasuredGain measured[] = {kShop, kCafe};
  for (const double factor : {3.9, 4.1}) {
    PublicNumbers numbers = At(kShop);
    numbers.noise_to_signal *= factor;
    const GainForecast forecast = ForecastGain(numbers, measured);
    EXPECT_EQ(forecast.is_near, factor < 4);
    EXPECT_STREQ(forecast.differs_in, "noise to signal");
    EXPECT_NEAR(forecast.factor, factor, 1e-9);
    EXPECT_STREQ(forecast.measured.front().data, "shop");
  }
}

TEST(ExpectedGain, WhatNobodyKnowsBeforehandIsARange) {
  MeasuredGain new_items = kShop;
  new_items.differs = "new items", new_items.new_items = new_items.found_better = true;
  new_items.lowest = new_items.highest = 0.16;
  const MeasuredGain measured[] = {new_items, kCafe, kShop};
  const GainForecast forecast = ForecastGain(At(kShop), measured);
  ASSERT_EQ(forecast.measured.size(), 2u);
  EXPECT_EQ(forecast.lowest(), 0.05) << "the smallest first";
  EXPECT_EQ(forecast.highest(), 0.16);
  EXPECT_FALSE(forecast.found_better()) << "only one of them was";
}

// Counts brought the cafe's gain. A plan too small for them has none of it.
TEST(ExpectedGain, AGainByAReleaseIsExpectedOnlyOfAPlanThatHasIt) {
  MeasuredGain by_bias = kShop;
  by_bias.by_bias = true;
  const MeasuredGain measured[] = {kCafe, by_bias};
  PublicNumbers numbers = At(kCafe);
  EXPECT_TRUE(ForecastGain(numbers, measured).is_near);
  numbers.succession_signal = 0;
  EXPECT_FALSE(ForecastGain(numbers, measured).is_near);
  EXPECT_TRUE(ForecastGain(numbers, measured).lacks_release);
  EXPECT_STREQ(ForecastGain(numbers, measured).measured.front().data, "cafe");
  numbers = At(by_bias);
  EXPECT_TRUE(ForecastGain(numbers, measured).is_near);
  numbers.weighs_bias = false;
  EXPECT_FALSE(ForecastGain(numbers, measured).is_near);
}

TEST(ExpectedGain, EachMeasurementIsExpectedWhereItWasMade) {
  ASSERT_GE(MeasuredGains().size(), 5u);
  for (const MeasuredGain& m : MeasuredGains()) {
    const GainForecast forecast = ForecastGain(At(m));
    EXPECT_TRUE(forecast.is_near) << m.data << " " << m.people;
    EXPECT_LE(forecast.lowest(), m.lowest) << m.data << " " << m.people;
    EXPECT_GE(forecast.highest(), m.highest) << m.data << " " << m.people;
  }
}

// The cafe of docs/gains.md.
Architecture Cafe() {
  return UniformArchitecture{
      .num_items = 480, .max_length = 40, .width = 32, .num_heads = 1, .num_blocks = 2, .inner_width = 64};
}

TEST(GainTable, ScalesNoiseAsACalibrationWould) {
  const Architecture cafe = Cafe();
  DeploymentRequest request{.num_records_public = 2000, .epsilon = 4, .delta = 1e-5, .runs = 12};
  const DeploymentSettings planned = PlanDeployment(cafe, request)->settings;
  const DeploymentSettings same = ScalePlan(cafe, request, planned);
  EXPECT_NEAR(same.training_noise / planned.training_noise, 1, 1e-6);
  for (const double epsilon : {1.0, 8.0}) {
    for (const uint32_t people : {500u, 8000u}) {
      request.epsilon = epsilon, request.num_records_public = people;
      const DeploymentSettings calibrated = PlanDeployment(cafe, request)->settings;
      const DeploymentSettings scaled = ScalePlan(cafe, request, planned);
      EXPECT_EQ(scaled.succession_releases, calibrated.succession_releases) << people << " people, epsilon " << epsilon;
      EXPECT_NEAR(scaled.training_noise / calibrated.training_noise, 1, 0.2)
          << people << " people, epsilon " << epsilon;
      EXPECT_NEAR(scaled.succession_noise / calibrated.succession_noise, 1, 0.1) << people << ", epsilon " << epsilon;
    }
  }
}

TEST(GainTable, HasThePlanInItsMiddle) {
  const DeploymentRequest request{.num_records_public = 2000, .epsilon = 3, .delta = 1e-5, .runs = 12};
  const DeploymentSettings planned = PlanDeployment(Cafe(), request)->settings;
  const std::vector<GainAt> gains = ForecastGains(Cafe(), request, planned);
  ASSERT_EQ(gains.size(), 15u) << "three numbers of people, and epsilon 1, 2, 3, 4 and 8";
  const GainAt& middle = gains[7];
  EXPECT_EQ(middle.people, 2000u);
  EXPECT_EQ(middle.epsilon, 3);
  EXPECT_EQ(middle.forecast.lowest(), MakeOutlook(Cafe(), planned).expected.lowest());
  EXPECT_EQ(gains.front().people, 500u);
  EXPECT_EQ(gains.back().people, 8000u);
}

}  // namespace
}  // namespace wisp::expected_gain_test
