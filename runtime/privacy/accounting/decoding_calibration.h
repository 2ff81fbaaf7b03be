// How far draws from a model may lean on it: the lambda or the range that a target allows. See docs/algorithms.md,
// section 7.
//
//   WISP_ASSIGN_OR_RETURN(DrawCalibration c, CalibrateResponse({.target = target, .draws = 100}, {.support = 10000}));
//   sample from c.mechanism.lambda() q + (1 - c.mechanism.lambda()) uniform, 100 times in the life of the model
//
// What it is not: a ledger. `draws` is the lifetime number, over all queries; charging each of them is the ledger's
// part.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_DECODING_CALIBRATION_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_DECODING_CALIBRATION_H_

#include <cstdint>
#include <span>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// The public distribution that is mixed in: uniform over `support` values, or, where that is 0, any whose smallest
// probability is `min_probability`.
struct PublicMixture {
  uint64_t support = 0;
  double min_probability = 0;
};

// Pure differential privacy: at most `epsilon` for all draws together. All results are on the safe side: PureEpsilon of
// `draws` draws is at most epsilon.
struct PureRequest {
  double epsilon = 0;  // above 0 and finite
  uint64_t draws = 0;
  Adjacency adjacency = Adjacency::kAddRemove;
};
// lambda = (a - 1) u / (1 + (a - 1) u) with a = exp(epsilon / draws), u the smallest probability; (a - 1) / (a - 1 +
// support).
Result<Mechanism> PureResponse(const PureRequest& request, const PublicMixture& mixture);
// range = epsilon / draws.
Result<Mechanism> PureBoundedRange(const PureRequest& request);

struct DrawRequest {
  EpsilonDelta target;
  uint64_t draws = 0;
  Adjacency adjacency = Adjacency::kAddRemove;
  std::span<const Mechanism> composed_with = {};  // spent beside the draws, under the same adjacency
};
struct DrawCalibration {
  Mechanism mechanism;  // `draws` draws
  double epsilon = 0;   // by PLD, of the draws and what they are composed with; at most the target's
};

// The largest lambda, or range, whose PLD epsilon is at most the target: eps0 of a draw, or the range, within 1e-4
// relative, the end of the bisection that keeps the promise; above 100 none is looked for. Never below the pure
// solution when nothing is spent beside. kPrivacyRefused where what it is composed with leaves no room.
Result<DrawCalibration> CalibrateResponse(const DrawRequest& request, const PublicMixture& mixture);
Result<DrawCalibration> CalibrateBoundedRange(const DrawRequest& request);

// c such that softmax((b + clip(f - b, -c, c)) / temperature), b public, has at most this range: range * temperature /
// 4, rounded down. 0 for a temperature that is not a positive number.
double ClipOfRange(double range, double temperature);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_DECODING_CALIBRATION_H_
