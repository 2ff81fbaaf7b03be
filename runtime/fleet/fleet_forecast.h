// The forecast of a fleet, from its plan alone: bytes, time, and the noise beside the signal.
//
//   const FleetForecast forecast = ForecastOf(plan);
//   // "noise to signal 0.08: a clear gain"
#ifndef WISP_RUNTIME_FLEET_FLEET_FORECAST_H_
#define WISP_RUNTIME_FLEET_FLEET_FORECAST_H_

#include <cstdint>
#include <optional>

#include "runtime/fleet/fleet_plan.h"

namespace wisp::fleet {

enum class FleetOutlook { kClear, kSome, kNone };
const char* InWords(FleetOutlook outlook);  // "a clear gain", "some gain", "no gain"

struct FleetForecast {
  // z sqrt(d) / (n sqrt(T)): the noise in the sum of all rounds beside a signal of one clipping norm in each round. It
  // is the best that can be: updates that all point the same way.
  double noise_to_signal = 0;
  FleetOutlook outlook = FleetOutlook::kNone;
  // Two ways to a clear gain at the same epsilon, all else equal: the number of devices, and takes_part, a divisor of
  // the rounds. No takes_part: not even all devices in every round are enough.
  uint64_t devices_for_clear = 0;
  std::optional<uint32_t> takes_part_for_clear;
  // The standard deviation of the mean gain that an evaluation releases, in units of the clipped gain; 0 without.
  double evaluation_noise = 0;

  // Weights and updates alone. A device receives `down` and sends `up` in a round in which it trains.
  uint64_t down = 0, up = 0;
  uint64_t device_bytes = 0;  // both ways, over the whole plan
  double server_bytes_a_round = 0, server_bytes = 0;
  // Processor time of the server for the calls of one round's devices.
  double server_seconds_a_round = 0;
  double days = 0;  // all rounds up to their deadlines
};

FleetForecast ForecastOf(const FleetPlan& plan);

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_FORECAST_H_
