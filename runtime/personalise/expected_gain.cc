#include "runtime/personalise/expected_gain.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace wisp {
namespace {

// Each number may differ by a factor of four. Beside noise and signal, the number of people counts half.
constexpr double kFarAway = 2, kHalf = 0.5;
// A signal below this is noise, and differences below it mean nothing.
constexpr double kLeastSignal = 1;
// Deployments that are no further apart than this differ in nothing that is known beforehand.
constexpr double kSamePlace = 0.25;

struct Distance {
  double all = 0;  // Euclidean
  double most = 0, factor = 1;
  const char* of_most = "";
};

Distance Measure(const PublicNumbers& from, const PublicNumbers& to) {
  struct Axis {
    const char* name;
    double from, to, weight;
  };
  const std::array<Axis, 5> axes = {
      Axis{"noise to signal", from.noise_to_signal, to.noise_to_signal, 1},
      Axis{"the noise of one item", from.noise_of_an_item, to.noise_of_an_item, 1},
      Axis{"the signal of the counts", std::max(kLeastSignal, from.succession_signal),
           std::max(kLeastSignal, to.succession_signal), 1},
      Axis{"items", static_cast<double>(from.items), static_cast<double>(to.items), 1},
      Axis{"people", static_cast<double>(from.people), static_cast<double>(to.people), kHalf}};
  Distance d;
  for (const Axis& axis : axes) {
    const double ratio = std::max(axis.from, 1e-9) / std::max(axis.to, 1e-9);
    const double apart = axis.weight * std::abs(std::log2(ratio));
    d.all += apart * apart;
    if (apart > d.most) d.most = apart, d.factor = std::max(ratio, 1 / ratio), d.of_most = axis.name;
  }
  d.all = std::sqrt(d.all);
  return d;
}

PublicNumbers NumbersOf(const MeasuredGain& m) {
  return {m.noise_to_signal, m.noise_of_an_item, m.succession_signal, m.items, m.people};
}

}  // namespace

double GainForecast::highest() const {
  return std::max_element(measured.begin(), measured.end(),
                          [](const MeasuredGain& a, const MeasuredGain& b) { return a.highest < b.highest; })
      ->highest;
}

bool GainForecast::found_better() const {
  return std::all_of(measured.begin(), measured.end(), [](const MeasuredGain& m) { return m.found_better; });
}

GainForecast ForecastGain(const PublicNumbers& numbers, std::span<const MeasuredGain> measured) {
  const auto can_have = [&](const MeasuredGain& m) {
    return (!m.by_counts || numbers.succession_signal > 0) && (!m.by_bias || numbers.weighs_bias);
  };
  const MeasuredGain *nearest = nullptr, *of_all = nullptr;
  for (const MeasuredGain& m : measured) {
    const auto is_nearer = [&](const MeasuredGain* than) {
      return than == nullptr || Measure(numbers, NumbersOf(m)).all < Measure(numbers, NumbersOf(*than)).all;
    };
    if (is_nearer(of_all)) of_all = &m;
    if (can_have(m) && is_nearer(nearest)) nearest = &m;
  }
  GainForecast forecast;
  forecast.is_near = nearest != nullptr && Measure(numbers, NumbersOf(*nearest)).most <= kFarAway;
  if (!forecast.is_near) nearest = of_all;
  const Distance distance = Measure(numbers, NumbersOf(*nearest));
  forecast.differs_in = distance.of_most, forecast.factor = distance.factor;
  forecast.lacks_release = !can_have(*nearest);
  for (const MeasuredGain& m : measured) {
    if (can_have(m) != forecast.lacks_release && Measure(NumbersOf(*nearest), NumbersOf(m)).all <= kSamePlace)
      forecast.measured.push_back(m);
  }
  std::stable_sort(forecast.measured.begin(), forecast.measured.end(),
                   [](const MeasuredGain& a, const MeasuredGain& b) { return a.lowest < b.lowest; });
  return forecast;
}

}  // namespace wisp
