// The noise that a target allows.
//
//   WISP_ASSIGN_OR_RETURN(Calibration c, CalibrateNoise({.target = target, .sampling_probability = 0.04,
//       .steps = 2000}));
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_CALIBRATION_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_CALIBRATION_H_

#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// Targets that noise is calibrated to. Above them it would hide nobody, and the accountant's grid is so fine and wide
// that finding it takes minutes: who wants such noise says its multiplier.
constexpr double kSmallestTarget = 1e-6, kLargestTarget = 100;
// kInvalidArgument, with a sentence that names what is allowed, outside of them.
Status CheckTarget(double epsilon);

// The largest delta that is a promise with so many records, a public number; that it lies below 1 / records is another
// condition, which says little where there are few: with one record it would allow 0.99. Delta is the chance of no
// protection at all: at most one in a thousand. With ten records or fewer it is one person's device, or a household's,
// and the app runs on a hundred thousand of them: 1e-5 keeps the expected number of those on which the promise fails
// below one.
constexpr double kFewRecords = 10;
constexpr double LargestDelta(double num_records) { return num_records <= kFewRecords ? 1e-5 : 1e-3; }
// kPrivacyRefused, with a sentence that starts with `whose` ("delta", "the new limit's delta"), for a delta of 1 /
// records or more, or above LargestDelta. `as_papers`: with more than kFewRecords up to 1 / records is accepted, that
// included.
Status CheckDelta(const std::string& whose, double delta, double num_records, bool as_papers);

struct CalibrationRequest {
  EpsilonDelta target;
  double sampling_probability = 0;  // 1: the plain Gaussian
  uint64_t steps = 0;
  std::span<const Mechanism> composed_with = {};  // spent beside the steps
};

struct Calibration {
  double noise_multiplier = 0;
  double epsilon = 0;   // by PLD, at most the target's
  int accountings = 0;  // how often the accountant was asked: a second each where the noise is small
};

// The smallest noise multiplier within 1e-4 relative whose PLD epsilon is at most the target: the end of the search
// that keeps the promise. kPrivacyRefused where no noise up to 1e5 reaches it, or what it is composed with is too much;
// kInvalidArgument for a target above kLargestTarget.
Result<Calibration> CalibrateNoise(const CalibrationRequest& request);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_CALIBRATION_H_
