// The privacy cost of one sample, before anything is sampled. It is a function of public numbers only.
//
// Mixing. A sample is from q' = lambda q + (1 - lambda) u. u is public, with smallest probability u_min (1 / n if it is
// uniform over n items). q is anything computed from the records. For outcomes S and e^eps >= 1,
//     q'(S) - e^eps q''(S) <= sum_j (lambda q_j - (e^eps - 1)(1 - lambda) u_j)_+ ,
// convex in q, so largest at a vertex: lambda - (e^eps - 1)(1 - lambda) u_min. Hence
//     eps = log(1 + lambda / ((1 - lambda) u_min)); for uniform u this is log((1 + (n - 1) lambda) / (1 - lambda))
// (Majmudar et al. 2022, theorem 1). The whole curve delta(eps) falls with u_min. So a charge for a support of n, or
// for a u_min, covers samples with a smaller support or a larger u_min. Blocks of charges rest on that.
//
// Base-anchored. The law is softmax((b + d) / tau), b public, |d_j| <= c. Between neighbours (b_j + d_j) / tau moves by
// at most 2c/tau, so log(p_j / p'_j) = (d_j - d'_j) / tau + log(Z' / Z) varies over j by at most 4c/tau. It is negative
// for one j and positive for another, so it never exceeds that range: eps = 4c/tau (reached in the limit of an unlikely
// item), and eta^2 / 8 = 2 c^2 / tau^2 zCDP. The charge is the range of the numbers that are actually used
// (sample_law.h), which is slightly larger.
//
// Aggregate. The law is softmax((b + D) / tau), b public, D = S c / (B G). S is the sum over records of whole numbers
// s_i, each in [-G, G]^n (context_sum.h); B is a public number. Adding or removing one record moves S by s_i. Then (b_j
// + D_j) / tau moves by at most c / (B tau), so log(p_j / p'_j) varies over j by at most 2c / (B tau). Replacing a
// record moves it by twice that. S is then clipped to [-B G, B G], which moves no two values apart.
//
// This is no accountant. ToMechanism is the one place where a cost becomes a mechanism that the ledger composes.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLE_COST_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLE_COST_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp {

struct SampleCost {
  enum class Kind {
    kNothing,           // no randomness depends on the records: lambda is 0, or one item remains
    kUniformMixing,     // support, lambda
    kNonUniformMixing,  // min_probability, lambda
    kBoundedRange,      // range
  };
  Kind kind = Kind::kNothing;
  uint64_t support = 0;
  double lambda = 0;
  double min_probability = 0;
  double range = 0;
  bool operator==(const SampleCost&) const = default;
};

SampleCost UniformSampleCost(uint64_t support, double lambda);
// For a non-uniform public distribution u_j = weights_j / sum, when `sampled` items were taken from the support before
// this sample. Which items is ignored: the cost uses the smallest possible u_min, w_1 / (R + w_1). w_1 is the smallest
// weight and R the sum of all but the `sampled` + 1 smallest (for equal weights this is 1 / (n - sampled)). `sorted`:
// integers of at least 1, ascending, with a sum below 2^53.
SampleCost NonUniformSampleCost(std::span<const double> sorted, size_t sampled, double lambda);
// 4c/tau plus the error of the arithmetic, rounded up.
SampleCost AnchoredSampleCost(double clip, double temperature, uint64_t support);
struct AggregateCostOptions {
  double clip = 0, temperature = 1;
  uint32_t contexts = 1;  // B
  privacy::Adjacency adjacency = privacy::Adjacency::kAddRemove;
};
// 2c / (B tau), or twice that if adjacency replaces records, plus the error of the arithmetic, rounded up.
SampleCost AggregateSampleCost(const AggregateCostOptions& options);
// The least probability of any of `support` items in a public distribution of which a share of `floor` is uniform and
// the rest is arbitrary. The result is reduced by what rounding to IntegerWeights may take. Those weights are at least
// 2^16 for a floor of kLeastMixingFloor and 3 million items.
inline constexpr double kLeastMixingFloor = 1e-4;
double MinMixtureProbability(double floor, uint64_t support);
// The largest clip whose cost, including the arithmetic's error, is at most this range. kPrivacyRefused: no clip is
// small enough.
Result<double> ClipForRange(double range, double temperature);
// ClipForRange for AggregateSampleCost. The clip in `options` is ignored.
Result<double> AggregateClipForRange(double range, AggregateCostOptions options);

// Epsilon of one such sample at delta 0.
double ComputeEpsilon(const SampleCost& cost);

// True if a charge for `charged` pays for a sample of cost `sample`.
bool Covers(const SampleCost& charged, const SampleCost& sample);

// `count` samples as a mechanism that the ledger composes. kInvalidArgument: kNothing, which is never charged.
Result<privacy::Mechanism> ToMechanism(const SampleCost& cost, uint64_t count, privacy::Adjacency adjacency);

// The lambda for which `samples` samples from `support` items cost `epsilon` in all at delta 0: (a - 1) / (a - 1 +
// support), a = exp(epsilon / samples), rounded down. With a delta above 0 a far larger lambda is possible: ask the
// accountant. kInvalidArgument: epsilon is not positive and finite, or samples or support is 0.
Result<double> LambdaForEpsilon(double epsilon, uint64_t samples, uint64_t support);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLE_COST_H_
