// Finds how far samples from a model may follow it: the lambda or the range that a target allows. See
// docs/algorithms.md, section 7.
//
//   WISP_ASSIGN_OR_RETURN(SampleCalibration c,
//                         CalibrateResponse({.target = target, .samples = 100}, {.support = 10000}));
//   // sample from c.mechanism.lambda() q + (1 - c.mechanism.lambda()) uniform, 100 times over all queries
//
// It is not a ledger. `samples` is the total over all queries that the model will ever answer; the ledger charges each
// of them.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_DECODING_CALIBRATION_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_DECODING_CALIBRATION_H_

#include <cstdint>
#include <span>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// The public distribution that is mixed in: uniform over `support` values or, if that is 0, any whose smallest
// probability is `min_probability`.
struct PublicMixture {
  uint64_t support = 0;
  double min_probability = 0;
};

// Pure differential privacy: at most `epsilon` for all samples together. Results are rounded to the safe side:
// PureEpsilon of `samples` samples is at most epsilon.
struct PureRequest {
  double epsilon = 0;  // above 0 and finite
  uint64_t samples = 0;
  Adjacency adjacency = Adjacency::kAddRemove;
};
// lambda = (a - 1) u / (1 + (a - 1) u) with a = exp(epsilon / samples) and u the smallest probability; for the uniform
// distribution it is (a - 1) / (a - 1 + support).
Result<Mechanism> PureResponse(const PureRequest& request, const PublicMixture& mixture);
// range = epsilon / samples.
Result<Mechanism> PureBoundedRange(const PureRequest& request);

struct SampleRequest {
  EpsilonDelta target;
  uint64_t samples = 0;
  Adjacency adjacency = Adjacency::kAddRemove;
  std::span<const Mechanism> composed_with = {};  // mechanisms charged besides the samples, under the same adjacency
};
struct SampleCalibration {
  Mechanism mechanism;  // `samples` samples
  double epsilon = 0;   // PLD epsilon of the samples and composed_with; at most the target's
};

// The largest lambda, or range, whose PLD epsilon is at most the target. It is found within 1e-4 relative in eps0 of a
// sample, or in the range, and the result is the end of the bisection that keeps the promise; values above 100 are not
// searched. It is never below the pure solution if composed_with is empty. kPrivacyRefused if composed_with leaves no
// budget.
Result<SampleCalibration> CalibrateResponse(const SampleRequest& request, const PublicMixture& mixture);
Result<SampleCalibration> CalibrateBoundedRange(const SampleRequest& request);

// The largest c such that softmax((b + clip(f - b, -c, c)) / temperature), b public, has at most this range: range *
// temperature / 4, rounded down. 0 for a temperature that is not a positive number.
double LargestClipForRange(double range, double temperature);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_DECODING_CALIBRATION_H_
