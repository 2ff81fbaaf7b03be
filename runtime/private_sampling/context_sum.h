// The law of samples from several private contexts. A public context's scores are moved by the mean difference of the
// private contexts' scores, each difference clipped (InvisibleInk, Vinod et al. 2025; docs/algorithms.md, section 7).
//
//   std::vector<int64_t> sums(n, 0);
//   for (...) AddClipped(scores_of_one_context, public_scores, clip, sums);
//   AggregateWeights(sums, public_scores, items, {.clip = clip, .temperature = 0.8, .contexts = 8}, weights);
//
// The sensitivity is exact because it rests on whole numbers. A context adds a whole number of steps, at most
// kContextSteps up or down, and such sums are exact in any order. private_sampling.h charges the ledger.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_CONTEXT_SUM_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_CONTEXT_SUM_H_

#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

// G: the number of steps in one clip.
inline constexpr int64_t kContextSteps = int64_t{1} << 24;
inline constexpr uint32_t kMostContexts = 1u << 20;

// Adds round(G clip(f_j - b_j, -c, c) / c) to sums[j]. The added number is in [-G, G] for any f_j, and 0 if the
// difference is NaN.
void AddClipped(std::span<const float> scores, std::span<const float> base_scores, double clip,
                std::span<int64_t> sums);

// Weights of some items, in the form of AnchoredWeights (sample_law.h): w_j = max(2^53, 2^95 exp(t_j)), with t_j = (b_j
// + D_j - max b - c) / tau and D_j = clip(sums_j, -B G, B G) c / (B G), so |D_j| <= c (1 + 2^-52).
//
// Claim. If two `sums` differ by at most G for each item, log(w_j / w'_j) varies over j by at most 2c / (B tau) +
// kAggregateRangeSlack. If they differ by 2 G, the first term doubles.
//   Clipping never moves two sums further apart, so D_j moves by at most c / B. log psi (sample_law.h) moves by no
//   more than t does.
//   Error of log w_j: that of AnchoredWeights is below 6 u Z / tau. D_j adds 2 u c <= 2 u Z: the whole numbers are
//   below 2^53, so exact; c / (B G) and the product round once each. In sum 8 u Z / tau <= 2^-30, and exp 2^-48.
//   Together e < 2^-30 * 1.01, so the range is off by at most 4e < kAggregateRangeSlack.
inline constexpr double kAggregateRangeSlack = 0x1p-27;

struct AggregateOptions {
  double clip = 0;
  double temperature = 1;
  uint32_t contexts = 1;  // B, 1 to kMostContexts
};
float AggregateWeights(std::span<const int64_t> sums, std::span<const float> base_scores,
                       std::span<const int32_t> items, const AggregateOptions& options, std::vector<double>& weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_CONTEXT_SUM_H_
