#include "runtime/privacy/accounting/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

constexpr double kLargest = 1e5, kSmallest = 1e-2;
constexpr double kRelativeWidth = 1e-4;

class Search {
 public:
  explicit Search(const CalibrationRequest& request) : request_(request) {}

  Result<double> Epsilon(double noise_multiplier) {
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> made, Make(noise_multiplier));
    spent_.assign(request_.composed_with.begin(), request_.composed_with.end());
    spent_.insert(spent_.end(), made.begin(), made.end());
    ++accountings_;
    WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(request_.target.delta()));
    return PldEpsilon(spent_, delta);
  }
  bool Allows(double noise_multiplier) const { return Make(noise_multiplier).ok(); }
  int accountings() const { return accountings_; }

 private:
  Result<std::vector<Mechanism>> Make(double noise_multiplier) const {
    if (request_.mechanisms) return request_.mechanisms(noise_multiplier);
    WISP_ASSIGN_OR_RETURN(const Mechanism m,
                          Mechanism::PoissonSubsampledGaussian({.noise_multiplier = noise_multiplier,
                                                                .sampling_probability = request_.sampling_probability,
                                                                .steps = request_.steps}));
    return std::vector{m};
  }

  const CalibrationRequest& request_;
  std::vector<Mechanism> spent_;
  int accountings_ = 0;
};

// A noise multiplier and its cost.
struct End {
  double noise, epsilon;
};

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

}  // namespace

Status CheckTarget(double epsilon) {
  if (epsilon >= kSmallestTarget && epsilon <= kLargestTarget) return OkStatus();
  return InvalidArgument("epsilon is ", DoubleText(epsilon), ", allowed is ", DoubleText(kSmallestTarget), " to ",
                         DoubleText(kLargestTarget),
                         "; for less privacy a run of training takes the noise multiplier itself (`noise_multiplier`)");
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
  WISP_ASSIGN_OR_RETURN(const double beside, PldEpsilon(request.composed_with, delta));
  if (beside > target) {
    return PrivacyRefused("epsilon ", DoubleText(target), " at delta ", DoubleText(request.target.delta()),
                          " cannot be met: what is spent beside the steps costs ", EpsilonText(beside), " by itself");
  }
  // Doubles away from 1 until the target is bracketed, then searches inside. `high` always keeps the promise.
  End high{.noise = 1};
  WISP_ASSIGN_OR_RETURN(high.epsilon, search.Epsilon(high.noise));
  End low = high;
  while (high.epsilon > target) {
    if (high.noise >= kLargest || !search.Allows(2 * high.noise)) return Unreachable(request, high);
    low = high;
    high.noise *= 2;
    WISP_ASSIGN_OR_RETURN(high.epsilon, search.Epsilon(high.noise));
  }
  while (low.epsilon <= target) {
    if (high.noise / 2 < kSmallest || !search.Allows(high.noise / 2))
      return Calibration{high.noise, high.epsilon, search.accountings()};
    low.noise = high.noise / 2;
    WISP_ASSIGN_OR_RETURN(low.epsilon, search.Epsilon(low.noise));
    if (low.epsilon <= target) high = low;
  }
  for (int tries = 0; high.noise / low.noise > 1 + kRelativeWidth; ++tries) {
    End middle{.noise = Aim(low, high, target, tries)};
    WISP_ASSIGN_OR_RETURN(middle.epsilon, search.Epsilon(middle.noise));
    (middle.epsilon > target ? low : high) = middle;
  }
  return Calibration{high.noise, high.epsilon, search.accountings()};
}

}  // namespace wisp::privacy
