// The forecast of a fleet, against figures that were worked out by hand.
#include "runtime/fleet/fleet_forecast.h"

#include <cmath>

#include "gtest/gtest.h"
#include "runtime/fleet/fleet_budget.h"

namespace wisp::fleet::fleet_forecast_test {
namespace {

FleetPlan Fleet(uint64_t devices) {
  return {.name = "films", .devices = devices, .rounds = 100, .noise_multiplier = 1.39, .epsilon = 3, .delta = 1e-6};
}

TEST(FleetForecast, NoiseToSignalOfAHundredThousandDevices) {
  const FleetForecast f = ForecastOf(Fleet(100'000));
  EXPECT_NEAR(f.noise_to_signal, 1.39 * std::sqrt(331520.0) / (1000 * 10), 1e-12);
  EXPECT_NEAR(f.noise_to_signal, 0.080, 0.0005);
  EXPECT_EQ(f.outlook, FleetOutlook::kClear);
  EXPECT_EQ(ForecastOf(Fleet(20'000)).outlook, FleetOutlook::kSome);
  EXPECT_EQ(ForecastOf(Fleet(6'040)).outlook, FleetOutlook::kNone);
}

TEST(FleetForecast, WhatItSaysOfAPoorPlanIsSo) {
  for (const uint64_t devices : {2000u, 6040u, 20'000u}) {
    const FleetForecast poor = ForecastOf(Fleet(devices));
    FleetPlan plan = Fleet(poor.devices_for_clear);
    EXPECT_NEAR(ForecastOf(plan).noise_to_signal, 0.2, 1e-4);
    EXPECT_EQ(poor.takes_part_for_clear.has_value(), devices > 4000) << devices;
    if (!poor.takes_part_for_clear) continue;
    plan = Fleet(devices);
    plan.takes_part = *poor.takes_part_for_clear;
    const auto made = MakePlan(plan);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LT(ForecastOf(*made).noise_to_signal, 0.21);
    EXPECT_EQ(plan.rounds % plan.takes_part, 0u);
  }
}

TEST(FleetForecast, BytesAndTimes) {
  FleetPlan plan = Fleet(100'000);
  plan.takes_part = 2;
  plan.evaluators = 0.1;
  plan.evaluations = 10;
  const FleetForecast f = ForecastOf(plan);
  EXPECT_EQ(f.down, 663'040u);
  EXPECT_EQ(f.up, 331'520u);
  EXPECT_EQ(f.device_bytes, 2 * 994'560u);
  EXPECT_DOUBLE_EQ(f.server_bytes_a_round, 1800 * 994'560.0);
  EXPECT_DOUBLE_EQ(f.server_bytes, 100 * 1800 * 994'560.0 + 10 * 2000 * 663'040.0);
  EXPECT_DOUBLE_EQ(f.server_seconds_a_round, 1800 * 9 * 0.010);
  EXPECT_DOUBLE_EQ(f.days, 100 * 3600 / 86400.0);
  EXPECT_DOUBLE_EQ(f.evaluation_noise, 1.39 / 2000);
  plan.evaluators = plan.evaluations = 0;
  EXPECT_EQ(ForecastOf(plan).evaluation_noise, 0);
}

}  // namespace
}  // namespace wisp::fleet::fleet_forecast_test
