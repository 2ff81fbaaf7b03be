// The audit of one step from observations with the canary and without (audit.h).
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/audit/audit.h"

namespace wisp::privacy {
namespace {

// The choice uses bounds this much more cautious than the measurement, so it avoids events seen a handful of times,
// which win by luck and do not repeat. On 1000 draws of a Laplace mechanism with epsilon 1 the lowest tenth of the
// bounds rises from 0.37 to 0.57, the median from 0.68 to 0.70; a value of 100 gives no more (200 repetitions,
// 2026-11-21). Soundness does not depend on it.
constexpr double kChoiceCaution = 10;
using Side = CanaryEvent::Side;
using Likelier = CanaryEvent::Likelier;

// Sorted observations, so that an event is counted by a binary search.
struct Sample {
  std::vector<double> with, without;
};

struct EventCounts {
  Count with, without;
};

double Rate(Count c) { return static_cast<double>(c.hits) / static_cast<double>(c.trials); }
Count Complement(Count c) { return {c.trials - c.hits, c.trials}; }

Count CountEvent(const std::vector<double>& sorted, double threshold, Side side) {
  const auto at_most =
      static_cast<uint64_t>(std::upper_bound(sorted.begin(), sorted.end(), threshold) - sorted.begin());
  const Count below{at_most, sorted.size()};
  return side == Side::kAtMost ? below : Complement(below);
}

EventCounts CountEvent(const Sample& sample, double threshold, Side side) {
  return {CountEvent(sample.with, threshold, side), CountEvent(sample.without, threshold, side)};
}

// Every second observation, starting at `first`.
std::vector<double> SortedHalf(std::span<const double> values, size_t first) {
  std::vector<double> half;
  half.reserve(values.size() / 2 + 1);
  for (size_t i = first; i < values.size(); i += 2) half.push_back(values[i]);
  std::sort(half.begin(), half.end());
  return half;
}

struct Halves {
  Sample chosen_on, measured_on;
};

Halves Split(const CanaryObservations& o) {
  return {{SortedHalf(o.with, 0), SortedHalf(o.without, 0)}, {SortedHalf(o.with, 1), SortedHalf(o.without, 1)}};
}

Status CheckObservations(const CanaryObservations& o) {
  if (o.with.size() < 2 || o.without.size() < 2) {
    return InvalidArgument(o.with.size(), " observations with the canary and ", o.without.size(),
                           " without; at least 2 of each are needed");
  }
  for (std::span<const double> values : {o.with, o.without}) {
    const auto nan = std::find_if(values.begin(), values.end(), [](double x) { return std::isnan(x); });
    if (nan != values.end()) return InvalidArgument("observation ", nan - values.begin(), " is NaN");
  }
  return OkStatus();
}

using Score = std::function<double(Count likelier, Count rarer)>;

// The event with the highest score; every observed value is tried as a threshold.
CanaryEvent BestEvent(const Sample& sample, const Score& score) {
  CanaryEvent best;
  double highest = -kInfinity;
  for (const std::vector<double>* values : {&sample.with, &sample.without}) {
    for (double threshold : *values) {
      for (Side side : {Side::kAbove, Side::kAtMost}) {
        const EventCounts counts = CountEvent(sample, threshold, side);
        for (Likelier likelier : {Likelier::kWith, Likelier::kWithout}) {
          const double value =
              likelier == Likelier::kWith ? score(counts.with, counts.without) : score(counts.without, counts.with);
          if (value > highest) highest = value, best = {threshold, side, likelier};
        }
      }
    }
  }
  return best;
}

CanaryBound Measure(const Sample& sample, const CanaryEvent& event) {
  const EventCounts counts = CountEvent(sample, event.threshold, event.side);
  return event.likelier == Likelier::kWith ? CanaryBound{0, event, counts.with, counts.without}
                                           : CanaryBound{0, event, counts.without, counts.with};
}

double EpsilonBetween(double likelier_low, double rarer_high, double delta) {
  const double excess = likelier_low - delta;
  return excess > 0 ? std::max(0.0, std::log(excess / rarer_high)) : 0;
}

// Phi^-1(p). Newton's method on log Phi, which is concave: from the left, where exp(-x^2 / 2) bounds Phi, it never
// passes the root.
double NormalQuantile(double p) {
  if (p > 0.5) return -NormalQuantile(1 - p);
  if (p <= 0) return -kInfinity;
  double x = -std::sqrt(-2 * std::log(p));
  for (int i = 0; i < 60; ++i) {
    const double phi = 0.5 * std::erfc(-x * (std::numbers::sqrt2 / 2)),
                 density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double step = std::log(p / phi) * phi / density;
    x += step;
    if (std::abs(step) < 1e-14) break;
  }
  return x;
}

// Wilson's score interval replaces Clopper and Pearson's during the choice: it is in closed form, and a choice on the
// other half of the data needs no guarantee.
struct Wilson {
  explicit Wilson(double error) : z2(std::pow(NormalQuantile(error), 2)) {}
  double Low(Count c) const { return 1 - High(Complement(c)); }
  double High(Count c) const {
    const double n = static_cast<double>(c.trials), p = Rate(c);
    return (p + z2 / (2 * n) + std::sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n)))) / (1 + z2 / n);
  }
  double z2;
};

}  // namespace

Result<CanaryBound> CanaryEpsilon(const CanaryObservations& observations, const AuditLevel& level) {
  WISP_RETURN_IF_ERROR(CheckAuditLevel(level));
  WISP_RETURN_IF_ERROR(CheckObservations(observations));
  const double error = (1 - level.confidence) / 2;
  const Halves halves = Split(observations);
  const Wilson wilson(error / kChoiceCaution);
  const CanaryEvent event = BestEvent(halves.chosen_on, [&](Count likelier, Count rarer) {
    const double excess = wilson.Low(likelier) - level.delta;
    return excess > 0 ? std::log(excess / wilson.High(rarer)) : -kInfinity;
  });
  CanaryBound bound = Measure(halves.measured_on, event);
  bound.epsilon =
      EpsilonBetween(ClopperPearsonLow(bound.likelier, error), ClopperPearsonHigh(bound.rarer, error), level.delta);
  return bound;
}

Result<CanaryBound> CanaryEpsilonUniform(const CanaryObservations& observations, const AuditLevel& level) {
  WISP_RETURN_IF_ERROR(CheckAuditLevel(level));
  WISP_RETURN_IF_ERROR(CheckObservations(observations));
  Sample all{{observations.with.begin(), observations.with.end()},
             {observations.without.begin(), observations.without.end()}};
  std::sort(all.with.begin(), all.with.end());
  std::sort(all.without.begin(), all.without.end());
  // Each distribution errs with half of 1 - confidence, to either side: 2 exp(-2 n width^2) = (1 - confidence) / 2.
  const auto width = [&](Count c) {
    return std::sqrt(std::log(4 / (1 - level.confidence)) / (2 * static_cast<double>(c.trials)));
  };
  const auto epsilon = [&](Count likelier, Count rarer) {
    return EpsilonBetween(Rate(likelier) - width(likelier), Rate(rarer) + width(rarer), level.delta);
  };
  CanaryBound bound = Measure(all, BestEvent(all, epsilon));
  bound.epsilon = epsilon(bound.likelier, bound.rarer);
  return bound;
}

Result<GdpBound> CanaryGdp(const CanaryObservations& observations, double confidence) {
  WISP_RETURN_IF_ERROR(CheckConfidence(confidence));
  WISP_RETURN_IF_ERROR(CheckObservations(observations));
  const double error = (1 - confidence) / 2;
  const Halves halves = Split(observations);
  const Wilson wilson(error / kChoiceCaution);
  // The event is held to be likelier with the canary; "likelier without" is its complement, which appears as the other
  // side.
  const CanaryEvent event = BestEvent(halves.chosen_on, [&](Count likelier, Count rarer) {
    return -NormalQuantile(wilson.High(rarer)) - NormalQuantile(wilson.High(Complement(likelier)));
  });
  const CanaryBound measured = Measure(halves.measured_on, event);
  GdpBound bound{0, event, measured.rarer, Complement(measured.likelier)};
  bound.mu = std::max(0.0, -NormalQuantile(ClopperPearsonHigh(bound.false_positives, error)) -
                               NormalQuantile(ClopperPearsonHigh(bound.false_negatives, error)));
  return bound;
}

}  // namespace wisp::privacy
