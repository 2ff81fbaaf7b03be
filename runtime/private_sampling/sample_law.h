// The weights of the laws that private samples use; distinct_samples.h samples. Internal to runtime/private_sampling.
//
// Each guarantee rests on different arithmetic:
//   mixing     rests on two exact samples: the coin (RandomStream::Bernoulli(lambda)) and u (integer weights). q may be
//              computed and sampled in floating point, however inexactly: whatever law over the support results is the
//              q of the theorem.
//   anchored   rests on the probabilities themselves. They are integer weights that are sampled exactly. Only computing
//              the weights has an error; it is bounded below and charged (kAnchoredRangeSlack).
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLE_LAW_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLE_LAW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

struct SoftmaxOptions {
  double temperature = 1;
  size_t top_k = 0;    // keeps this many of the best; 0: all
  double nucleus = 1;  // then keeps the fewest best that hold this share of the probability
};

// The unnormalised q of items[i], at least 0: exp((score - best) / temperature), or 0 if truncated. A score of -inf or
// NaN has weight 0; a score of +inf has all the weight. All weights are 0 if no score is above -inf. There is never an
// error, because it would tell if a private model's scores are finite, which depends on its records.
void SoftmaxWeights(std::span<const float> scores, std::span<const int32_t> items, const SoftmaxOptions& options,
                    std::vector<double>& weights);

// Integer weights in proportion to `u` (all positive and finite). Their sum is between 2^51 and 2^52 + size, and none
// is below 1. Convert once: from then on these integers define u and its smallest probability.
std::vector<double> IntegerWeights(std::span<const double> u);

// Weights of the base-anchored law over some items: w_j = max(2^53, 2^95 exp(t_j)) in double, which are integers, with
// t_j = (b_j + d_j - m) / tau, d_j = clip(f_j - b_j, -c, c), m = max b + c over these items. Items more than 29 nats
// (42 binary digits) below the best possible one count as if they were at 29: a million of them together have 2^-22.
//
// Claim. For any f, f' and the same b, log(w_j / w'_j) varies over j by at most 4c/tau + kAnchoredRangeSlack.
//   d_j is any computed number, clipped to [-c, c] exactly. Every such function of f has the guarantee; so has NaN - b,
//   which counts as 0. m depends on public numbers only. Let psi(t) = max(2^53, 2^95 e^t). log psi is non-decreasing
//   and moves no more than t does. Between f and f' each log psi(t_j) moves by at most 2c/tau, up or down, so the range
//   is 4c/tau.
//   Error of log w_j against log psi(t_j), with u = 2^-53 and z = |b_j| + c <= max_j |b_j| + c =: Z: rounding b_j + d_j
//   gives u Z, the difference to m 2 u Z, the quotient 2 u Z / tau: below 6 u Z / tau <= 6 * 2^-33 for
//   Z / tau <= kAnchoredMaxReach. exp adds 2^-48: 16 units in the last place (the kernels promise 4). The power of two
//   and the conversion are exact. Together e < 2^-30 * 0.76. The range is off by at most 4e (each of two logarithms by
//   2e) < kAnchoredRangeSlack.
inline constexpr double kAnchoredRangeSlack = 0x1p-28;
inline constexpr double kAnchoredMaxReach = 0x1p20;

struct AnchoredOptions {
  double clip = 0;
  double temperature = 1;
};
// Returns the best base score of these items; it and the scores of an item make its weight.
float AnchoredWeights(std::span<const float> scores, std::span<const float> base_scores, std::span<const int32_t> items,
                      const AnchoredOptions& options, std::vector<double>& weights);

// The second half of AnchoredWeights, for callers that compute d_j in another way (context_sum.h). On entry `weights`
// are the d_j, |d_j| <= clip up to rounding; on return they are the w_j.
float MovedWeights(std::span<const float> base_scores, std::span<const int32_t> items, const AnchoredOptions& options,
                   std::vector<double>& weights);

// Subtracts the mean of f - b from f. A shift of all items changes no softmax but would use up the clip. Any function
// of f may be clipped, so this costs no privacy.
void Centre(std::span<float> scores, std::span<const float> base_scores);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_SAMPLE_LAW_H_
