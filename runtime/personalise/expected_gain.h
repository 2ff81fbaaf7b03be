// The gain to expect from a plan: that of the nearest measured deployment (measured_gains.h), by public numbers alone.
// A gain that a release brought is expected only of plans with such a release.
//
//   const GainForecast forecast = ForecastGain({.noise_to_signal = 0.31, .noise_of_an_item = 1.4,
//       .succession_signal = 9, .items = 480, .people = 2000});
//   if (forecast.is_near) printf("%+.0f %%\n", 100 * forecast.lowest());
#ifndef WISP_RUNTIME_PERSONALISE_EXPECTED_GAIN_H_
#define WISP_RUNTIME_PERSONALISE_EXPECTED_GAIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/personalise/measured_gains.h"

namespace wisp {

struct PublicNumbers {
  double noise_to_signal = 0, noise_of_an_item = 0, succession_signal = 0;  // Outlook's
  uint32_t items = 0, people = 0;
  bool weighs_bias = false;  // the plan releases the weight of the output bias
};

// Seeds differ by as much as the first, so a smaller gain does not count. From the second on a gain is clear.
inline constexpr double kLeastGain = 0.02, kClearGain = 0.1;

struct GainForecast {
  // The nearest deployment. Several, the smallest gain first, if they differ only in how their people differ from the
  // base's, which nobody knows beforehand.
  std::vector<MeasuredGain> measured;
  // The number in which the nearest one differs most, and by which factor.
  const char* differs_in = "";
  double factor = 1;
  bool is_near = false;        // else nothing like it was measured
  bool lacks_release = false;  // the nearest one has its gain by a release that the plan has not

  double lowest() const { return measured.front().lowest; }
  double highest() const;
  bool found_better() const;  // all of them
};
// `measured` has at least one deployment.
GainForecast ForecastGain(const PublicNumbers& numbers, std::span<const MeasuredGain> measured = MeasuredGains());

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_EXPECTED_GAIN_H_
