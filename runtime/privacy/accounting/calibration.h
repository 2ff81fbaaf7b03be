// Finds the noise that a target allows.
//
//   WISP_ASSIGN_OR_RETURN(Calibration c, CalibrateNoise({.target = target, .sampling_probability = 0.04,
//       .steps = 2000}));
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_CALIBRATION_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_CALIBRATION_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// Range of targets for calibration. Above it the noise would hide nobody, and the accountant's grid would be so fine
// and wide that the search takes minutes: such noise must be given as a multiplier.
constexpr double kSmallestTarget = 1e-6, kLargestTarget = 100;
// kInvalidArgument outside of this range, with a sentence that names what is allowed.
Status CheckTarget(double epsilon);

// The largest delta that is a promise for so many records, a public number. Another condition, delta < 1 / records,
// says little if there are few: with one record it would allow 0.99. Delta is the probability of no protection at all,
// so it is at most one in a thousand. With ten records or fewer the data are one person's device, or a household's, and
// the app runs on a hundred thousand of them: 1e-5 keeps the expected number of devices on which the promise fails
// below one.
constexpr double kFewRecords = 10;
constexpr double LargestDelta(double num_records) { return num_records <= kFewRecords ? 1e-5 : 1e-3; }
// kPrivacyRefused for a delta of 1 / records or more, or above LargestDelta. The sentence starts with `whose` ("delta",
// "the new limit's delta"). `as_papers` also accepts delta up to and including 1 / records, for more than kFewRecords
// records.
Status CheckDelta(const std::string& whose, double delta, double num_records, bool as_papers);

struct CalibrationRequest {
  EpsilonDelta target;
  double sampling_probability = 0;  // 1: the plain Gaussian
  uint64_t steps = 0;
  std::span<const Mechanism> composed_with = {};  // mechanisms charged besides the steps
  // Makes the mechanisms of all steps from a noise multiplier, if they are no Poisson-subsampled Gaussian: random
  // allocation, a noise schedule. More noise must cost less; multipliers that it refuses are not searched. `steps` is
  // then for sentences only.
  std::function<Result<std::vector<Mechanism>>(double noise_multiplier)> mechanisms = {};
  // Asked before each figure, which takes up to a second; true ends the search with kCancelled. Empty: it is not asked.
  std::function<bool()> cancelled = {};
};

struct Calibration {
  double noise_multiplier = 0;
  double epsilon = 0;   // by PLD, at most the target's
  int accountings = 0;  // number of full figures
};

// The smallest noise multiplier, within 1e-4 relative, whose PLD epsilon is at most the target. Figures on coarser
// grids find it, and a full one says that it keeps the promise; most searches end there. kPrivacyRefused if no noise up
// to 1e5 reaches the target, or if composed_with alone exceeds it; kInvalidArgument for a target above kLargestTarget.
Result<Calibration> CalibrateNoise(const CalibrationRequest& request);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_CALIBRATION_H_
