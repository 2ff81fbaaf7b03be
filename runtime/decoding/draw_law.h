// The weights of the laws that private draws are made from; distinct_draws.h draws. Internal to runtime/inference.
//
// Which arithmetic a guarantee rests on:
//   mixing     On two exact draws: the coin (RandomStream::Bernoulli(lambda)) and u (integer weights). q may be
//              computed and drawn in floating point, however badly: whatever law over the support comes out is the q of
//              the theorem.
//   anchored   On the probabilities themselves. They are integer weights drawn exactly, so only the computing of the
//              weights errs, and the error is bounded below and charged (kAnchoredRangeSlack).
#ifndef WISP_RUNTIME_DECODING_DRAW_LAW_H_
#define WISP_RUNTIME_DECODING_DRAW_LAW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

struct SoftmaxOptions {
  double temperature = 1;
  size_t top_k = 0;    // keep this many best; 0: all
  double nucleus = 1;  // then the fewest best that hold this share of the probability
};

// Unnormalised q of items[i], at least 0: exp((score - best) / temperature), 0 where truncated. A score of -inf or NaN
// has weight 0, of +inf all of it. All of them 0 where no score is above -inf. Never an error: whether the scores of a
// private model are finite is a fact about its records.
void SoftmaxWeights(std::span<const float> scores, std::span<const int32_t> items, const SoftmaxOptions& options,
                    std::vector<double>& weights);

// Integer weights in proportion to `u` (all above 0, finite), the sum between 2^51 and 2^52 + size; none is below 1.
// Done once: after that these integers are u, and its smallest probability is read from them.
std::vector<double> IntegerWeights(std::span<const double> u);

// Weights of the base-anchored law over some items: w_j = max(2^53, 2^95 exp(t_j)) in double, which are integers, with
// t_j = (b_j + d_j - m) / tau, d_j = clip(f_j - b_j, -c, c), m = max b + c over these items. Items further than 29 nats
// below the best possible one count as if they were at 29 (42 binary digits): a million of them together have 2^-22.
//
// Claim. For any f, f' and the same b, log(w_j / w'_j) varies over j by at most 4c/tau + kAnchoredRangeSlack.
//   d_j is whatever was computed, clipped: in [-c, c] exactly, and any such function of f has the guarantee; so has
//   NaN - b, which counts as 0. m depends on public numbers only. Let psi(t) = max(2^53, 2^95 e^t). log psi is
//   non-decreasing and moves no more than t does: between f and f' each log psi(t_j) moves by at most 2c/tau, up or
//   down, so the range is 4c/tau.
//   Error of log w_j against log psi(t_j), with u = 2^-53 and z = |b_j| + c <= max_j |b_j| + c =: Z: rounding b_j + d_j
//   u Z, the difference to m 2 u Z, the quotient 2 u Z / tau: below 6 u Z / tau <= 6 * 2^-33 for
//   Z / tau <= kAnchoredMaxReach. exp: 16 units in the last place are allowed for (the kernels promise 4), 2^-48; the
//   power of two is exact, and so is the conversion. Together e < 2^-30 * 0.76; the range is off by at most 4e (each of
//   two logarithms by 2e) < kAnchoredRangeSlack.
inline constexpr double kAnchoredRangeSlack = 0x1p-28;
inline constexpr double kAnchoredMaxReach = 0x1p20;

struct AnchoredOptions {
  double clip = 0;
  double temperature = 1;
};
// Returns the best base score of these items; it and the scores of an item make its weight.
float AnchoredWeights(std::span<const float> scores, std::span<const float> base_scores, std::span<const int32_t> items,
                      const AnchoredOptions& options, std::vector<double>& weights);

// The second half of it, for whoever has d_j otherwise (context_sum.h): `weights` are the d_j, |d_j| <= clip but for
// rounding, and become the w_j.
float MovedWeights(std::span<const float> base_scores, std::span<const int32_t> items, const AnchoredOptions& options,
                   std::vector<double>& weights);

// f less the mean of f - b: what is the same for all items changes no softmax but would use up the clip. Any function
// of f may be clipped: this one is free.
void Centre(std::span<float> scores, std::span<const float> base_scores);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DRAW_LAW_H_
