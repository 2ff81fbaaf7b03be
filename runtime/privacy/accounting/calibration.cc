#include "runtime/privacy/accounting/calibration.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

constexpr double kLargest = 1e5, kSmallest = 1e-2;
constexpr double kRelativeWidth = 1e-4;
// A guess aims so far beyond the target that it keeps the promise; it is accepted where this part of the width, by the
// slope, would break it.
constexpr double kMargin = 0.2e-4, kMostOfWidth = 0.8;

class Search {
 public:
  explicit Search(const CalibrationRequest& request) : request_(request) {}

  Result<double> Epsilon(double noise_multiplier, Delta delta, Fineness fineness = Fineness::kFull) {
    if (request_.cancelled && request_.cancelled()) return Cancelled("the search for the noise was cancelled");
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> spent, Spent(noise_multiplier));
    accountings_ += fineness == Fineness::kFull ? 1 : 0;
    WISP_ASSIGN_OR_RETURN(const StatedEpsilon stated, StateEpsilon(spent, delta, fineness));
    return stated.epsilon;
  }
  // The full figure, as two others predict it. Their error falls with the square of the grid step, and the step of
  // kGlance is four times that of kQuick. No bound.
  Result<double> Predicted(double noise_multiplier, Delta delta) {
    WISP_ASSIGN_OR_RETURN(const double glance, Epsilon(noise_multiplier, delta, Fineness::kGlance));
    WISP_ASSIGN_OR_RETURN(const double quick, Epsilon(noise_multiplier, delta, Fineness::kQuick));
    return glance > quick && std::isfinite(glance) ? quick - (glance - quick) / 15 : quick;
  }
  // A limit theorem's figure: in microseconds, and no bound.
  Result<double> Limit(double noise_multiplier, Delta delta) const {
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> spent, Spent(noise_multiplier));
    return GdpCltEpsilon(spent, delta);
  }
  bool Allows(double noise_multiplier) const { return Make(noise_multiplier).ok(); }
  int accountings() const { return accountings_; }

 private:
  Result<std::vector<Mechanism>> Spent(double noise_multiplier) const {
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> made, Make(noise_multiplier));
    std::vector<Mechanism> spent(request_.composed_with.begin(), request_.composed_with.end());
    spent.insert(spent.end(), made.begin(), made.end());
    return spent;
  }
  Result<std::vector<Mechanism>> Make(double noise_multiplier) const {
    if (request_.mechanisms) return request_.mechanisms(noise_multiplier);
    WISP_ASSIGN_OR_RETURN(const Mechanism m,
                          Mechanism::PoissonSubsampledGaussian({.noise_multiplier = noise_multiplier,
                                                                .sampling_probability = request_.sampling_probability,
                                                                .steps = request_.steps}));
    return std::vector{m};
  }

  const CalibrationRequest& request_;
  int accountings_ = 0;
};

// A noise multiplier and its cost.
struct End {
  double noise, epsilon;
};

// The logarithm of epsilon against that of the noise is almost a line.
struct Trend {
  double noise = 1;  // where it meets the target
  double slope = 0;  // 0: not known
};
constexpr double kUsualSlope = -1.3;

// Follows a figure that is near the true one to the target. If it does not get there, the trend stays as it was.
template <class F>
Trend Approach(Trend trend, double target, const F& figure) {
  constexpr int kTries = 10;
  constexpr double kNear = 2e-3, kNearer = 1e-4;
  Trend at = trend;
  double last_x = 0, last_y = 0;
  bool has_last = false;
  for (int tries = 0; tries < kTries; ++tries) {
    const Result<double> epsilon = figure(at.noise);
    if (!epsilon.ok()) return trend;
    if (!(*epsilon > 0 && std::isfinite(*epsilon))) {
      at.noise *= *epsilon > 0 ? 2 : 0.5;
      continue;
    }
    const double x = std::log(at.noise), y = std::log(*epsilon / target);
    if (has_last && y != last_y) at.slope = std::clamp((y - last_y) / (x - last_x), -8.0, -1e-3);
    const double step = std::clamp(-y / (at.slope == 0 ? kUsualSlope : at.slope), -2.0, 2.0);
    at.noise *= std::exp(step);
    if (std::abs(y) < (at.slope != 0 ? kNear : kNearer)) return at;
    last_x = x, last_y = y, has_last = true;
  }
  return trend;
}

// The next noise to try between two ends with low.epsilon > target >= high.epsilon. The logarithm of epsilon falls
// almost linearly with that of the noise. So it aims where the line through the ends meets the target, and a little
// further, away from the nearer end, so that the far end comes close too. A search that has not ended after some
// `tries` bisects.
double Aim(const End& low, const End& high, double target, int tries) {
  const double width = std::log(high.noise / low.noise);
  double share = std::log(low.epsilon / target) / std::log(low.epsilon / high.epsilon);
  if (!std::isfinite(low.epsilon) || !(share > 0 && share < 1) || tries > 12) return std::sqrt(low.noise * high.noise);
  const double further = std::max(0.15 * width, 0.4 * kRelativeWidth / width);
  share = std::clamp(share < 0.5 ? share + further : share - further, 0.05 * width, 1 - 0.05 * width);
  return low.noise * std::exp(share * width);
}

Status Unreachable(const CalibrationRequest& r, const End& most) {
  return PrivacyRefused("epsilon ", DoubleText(r.target.epsilon()), " at delta ", DoubleText(r.target.delta()),
                        " cannot be met: even with noise multiplier ",
                        most.noise > kLargest ? "1e5" : DoubleText(most.noise), " ", Counted(r.steps, "step"),
                        " and all that is composed with it cost ", EpsilonText(most.epsilon));
}

// Where the cheap figures meet the target.
Trend Guess(Search& search, double target, Delta delta) {
  const Trend limit = Approach({}, target, [&](double noise) { return search.Limit(noise, delta); });
  const Trend glance =
      Approach(limit, target, [&](double noise) { return search.Epsilon(noise, delta, Fineness::kGlance); });
  Trend quick = Approach(glance, target, [&](double noise) { return search.Predicted(noise, delta); });
  quick.noise *= 1 + kMargin;
  const bool is_known = quick.slope != 0 && quick.noise > kSmallest && quick.noise < kLargest;
  return is_known && search.Allows(quick.noise) ? quick : Trend();
}

// Looks for two ends around the target with the full figure, from a guess on. `high` always keeps the promise. A single
// question is enough if it keeps the promise so closely that by the slope less noise would not.
Result<Calibration> Find(Search& search, const CalibrationRequest& request, Delta delta) {
  const double target = request.target.epsilon();
  const Trend guess = Guess(search, target, delta);
  std::optional<End> low, high;
  End end{.noise = guess.noise};
  for (int tries = 0;; ++tries) {
    WISP_ASSIGN_OR_RETURN(end.epsilon, search.Epsilon(end.noise, delta));
    (end.epsilon > target ? low : high) = end;
    const bool is_near = high && high->epsilon >= target * std::exp(kMostOfWidth * kRelativeWidth * guess.slope);
    if (is_near || (low && high && high->noise <= low->noise * (1 + kRelativeWidth)))
      return Calibration{high->noise, high->epsilon, search.accountings()};
    double next = high ? end.noise / 2 : end.noise * 2;
    if (low && high) {
      next = Aim(*low, *high, target, tries);
    } else if (tries == 0 && guess.slope != 0 && std::isfinite(end.epsilon) && end.epsilon > 0) {
      next = end.noise * std::exp(2 * kMargin - std::log(end.epsilon / target) / guess.slope);
    }
    if (high && (next < kSmallest || !search.Allows(next)))
      return Calibration{high->noise, high->epsilon, search.accountings()};
    if (!high && (end.noise >= kLargest || !search.Allows(next))) return Unreachable(request, end);
    end.noise = next;
  }
}

}  // namespace

Status CheckTarget(double epsilon) {
  if (epsilon >= kSmallestTarget && epsilon <= kLargestTarget) return OkStatus();
  return InvalidArgument(
      "epsilon is ", DoubleText(epsilon), ", allowed is ", DoubleText(kSmallestTarget), " to ",
      DoubleText(kLargestTarget),
      epsilon > kLargestTarget
          ? "; for less privacy a run of training takes the noise multiplier itself (`noise_multiplier`)"
          : "");
}

Status CheckDelta(const std::string& whose, double delta, double num_records, bool as_papers) {
  const bool few = num_records <= kFewRecords;
  const auto records = static_cast<uint64_t>(num_records);
  if (!few && (delta > 1 / num_records || (delta == 1 / num_records && !as_papers))) {
    return PrivacyRefused(whose, " is ", ShortText(delta), ", which is not below 1 / ", records,
                          " records: such a guarantee allows publishing some record whole");
  }
  const double most = LargestDelta(num_records);
  if (delta <= most || (as_papers && !few)) return OkStatus();
  return PrivacyRefused(whose, " is ", ShortText(delta), ", allowed with ", Counted(records, "record"), " is at most ",
                        ShortText(most), ": it is the chance of no protection at all (docs/privacy.md)");
}

Result<Calibration> CalibrateNoise(const CalibrationRequest& request) {
  Search search(request);
  const double target = request.target.epsilon();
  if (target > kLargestTarget) return CheckTarget(target);
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(request.target.delta()));
  // The coarse figure is a bound too.
  WISP_ASSIGN_OR_RETURN(StatedEpsilon beside, StateEpsilon(request.composed_with, delta, Fineness::kGlance));
  if (beside.epsilon > target) {
    WISP_ASSIGN_OR_RETURN(beside, StateEpsilon(request.composed_with, delta));
  }
  if (beside.epsilon > target) {
    return PrivacyRefused("epsilon ", DoubleText(target), " at delta ", DoubleText(request.target.delta()),
                          " cannot be met: what is spent beside the steps costs ", EpsilonText(beside.epsilon),
                          " by itself");
  }
  return Find(search, request, delta);
}

}  // namespace wisp::privacy
