// The exact epsilon and delta between two finite output distributions, for mechanisms whose outputs can be enumerated:
// a decoding step's distribution over its support under two neighbouring models, or that of all ordered tuples of k
// samples.
//
//   WISP_ASSIGN_OR_RETURN(DistributionPair pair, OrderedSamples(2, with_record, without_record));
//   WISP_ASSIGN_OR_RETURN(double epsilon, ExactEpsilon(pair.p, pair.q, 0.0));
//
// There is no sampling and no confidence: the result is the truth for these two distributions up to rounding (1e-12),
// and a lower bound on the mechanism's epsilon, which is the worst over all neighbouring data. Entry i of both is the
// probability of the same output. Each must be finite, >= 0 and sum to 1 within 1e-9; both have one size, at least 1.
// Otherwise kInvalidArgument.
#ifndef WISP_RUNTIME_PRIVACY_AUDIT_AUDIT_EXACT_H_
#define WISP_RUNTIME_PRIVACY_AUDIT_AUDIT_EXACT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::privacy {

// max over outputs of |log(p / q)|: the pure epsilon. Infinity if one distribution gives an output that the other
// cannot.
Result<double> MaxLogRatio(std::span<const double> p, std::span<const double> q);

// delta(epsilon): the larger of sum max(0, p - e^epsilon q) and the same with p and q exchanged (the hockey-stick
// divergence; Barthe and Olmedo 2013). epsilon >= 0.
Result<double> HockeyStick(std::span<const double> p, std::span<const double> q, double epsilon);

// The smallest epsilon >= 0 with HockeyStick(p, q, epsilon) <= delta, solved in closed form between neighbouring
// ratios; infinity if no epsilon does. 0 <= delta < 1; at 0 it is MaxLogRatio.
Result<double> ExactEpsilon(std::span<const double> p, std::span<const double> q, double delta);

struct DistributionPair {
  std::vector<double> p, q;
};

// The distribution of the next sample over items 0, 1, ..., n - 1 after those in `sampled`; n is the same at every
// call. An item that cannot follow (sampling without replacement) has probability 0. It is not called for samples of
// probability 0.
using NextSample = std::function<Result<std::vector<double>>(std::span<const uint32_t> sampled)>;

// More tuples than this are refused: 256 MiB for the two distributions.
inline constexpr uint64_t kMostTuples = uint64_t{1} << 24;

// The distributions of ordered tuples of `samples` >= 1 samples under two models: products of the conditional
// probabilities, in lexicographic order, without tuples that neither model can give. A user who sees k recommended
// items sees such a tuple: its epsilon may exceed k times that of one set, because order is part of the output.
Result<DistributionPair> OrderedSamples(uint32_t samples, const NextSample& p, const NextSample& q);

// Samples without replacement from fixed probabilities: p(i | sampled) = p_i / (1 - sum over sampled), separately for
// each model.
NextSample WithoutReplacement(std::vector<double> probabilities);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_AUDIT_AUDIT_EXACT_H_
