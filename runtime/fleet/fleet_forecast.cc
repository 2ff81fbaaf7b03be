#include "runtime/fleet/fleet_forecast.h"

#include <cmath>

namespace wisp::fleet {
namespace {

// Below the first, the gain of training is that without noise for all practical purposes; above the second, models of
// private runs were no better than their base.
constexpr double kClear = 0.2, kNone = 0.8;
// Calls of a device in a round, and what one takes of the server's processor (SuperLink of Flower 1.42: 9 to 12 ms).
constexpr double kCalls = 9, kSecondsOfCall = 0.010;

// One Gaussian of z costs as much as k of z sqrt(k), and a cohort grows with k. So the ratio falls with the root of k.
std::optional<uint32_t> TakesPartFor(const FleetPlan& plan, double ratio) {
  const double needed = plan.takes_part * (ratio / kClear) * (ratio / kClear);
  for (uint32_t k = plan.takes_part; k <= plan.rounds; ++k) {
    if (k >= needed && plan.rounds % k == 0) return k;
  }
  return std::nullopt;
}

}  // namespace

const char* InWords(FleetOutlook outlook) {
  switch (outlook) {
    case FleetOutlook::kClear:
      return "a clear gain";
    case FleetOutlook::kSome:
      return "some gain";
    case FleetOutlook::kNone:
      return "no gain";
  }
  return "";
}

FleetForecast ForecastOf(const FleetPlan& plan) {
  FleetForecast f;
  const double rounds = plan.rounds, cohort = plan.cohort(), evaluators = plan.cohort_of_evaluation();
  f.noise_to_signal =
      plan.noise_multiplier * std::sqrt(static_cast<double>(plan.num_weights)) / (cohort * std::sqrt(rounds));
  f.outlook = f.noise_to_signal < kClear   ? FleetOutlook::kClear
              : f.noise_to_signal <= kNone ? FleetOutlook::kSome
                                           : FleetOutlook::kNone;
  f.devices_for_clear =
      static_cast<uint64_t>(std::ceil(static_cast<double>(plan.devices) * f.noise_to_signal / kClear));
  f.takes_part_for_clear = TakesPartFor(plan, f.noise_to_signal);
  f.evaluation_noise = evaluators > 0 ? plan.noise_multiplier / evaluators : 0;
  f.down = plan.bytes_of_weights();
  f.up = plan.bytes_of_update();
  f.device_bytes = plan.takes_part * (f.down + f.up);
  f.server_bytes_a_round = cohort * static_cast<double>(f.down + f.up);
  f.server_bytes = rounds * f.server_bytes_a_round + plan.evaluations * evaluators * static_cast<double>(f.down);
  f.server_seconds_a_round = cohort * kCalls * kSecondsOfCall;
  f.days = rounds * plan.round_seconds / 86400;
  return f;
}

}  // namespace wisp::fleet
