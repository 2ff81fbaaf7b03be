// The law of draws after several private contexts: a public context's scores, moved by the mean of what the private
// ones say otherwise, each clipped (InvisibleInk, Vinod et al. 2025; docs/algorithms.md, section 7).
//
//   std::vector<int64_t> sums(n, 0);
//   for (...) AddClipped(scores_of_one_context, public_scores, clip, sums);
//   AggregateWeights(sums, public_scores, items, {.clip = clip, .temperature = 0.8, .contexts = 8}, weights);
//
// Sensitivity rests on whole numbers: what a context adds is a whole number of steps, kContextSteps at most, up or
// down, and sums of them are exact in any order. What it is not: the ledger's side of it (private_sampling.h).
#ifndef WISP_RUNTIME_DECODING_CONTEXT_SUM_H_
#define WISP_RUNTIME_DECODING_CONTEXT_SUM_H_

#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

// G: the clip in steps.
inline constexpr int64_t kContextSteps = int64_t{1} << 24;
inline constexpr uint32_t kMostContexts = 1u << 20;

// Adds round(G clip(f_j - b_j, -c, c) / c) to sums[j], in [-G, G] for any f_j; 0 where the difference is no number.
void AddClipped(std::span<const float> scores, std::span<const float> base_scores, double clip,
                std::span<int64_t> sums);

// Weights of some items as AnchoredWeights has them (draw_law.h): w_j = max(2^53, 2^95 exp(t_j)), with t_j = (b_j + D_j
// - max b - c) / tau and D_j = clip(sums_j, -B G, B G) c / (B G), so |D_j| <= c (1 + 2^-52).
//
// Claim. If two `sums` differ by G at most for each item, log(w_j / w'_j) varies over j by at most 2c / (B tau) +
// kAggregateRangeSlack; if by 2 G, by twice the first.
//   Clipping sums brings no two further apart: D_j moves by c / B at most. log psi, of draw_law.h, moves no more than
//   t does. Error of log w_j: that of AnchoredWeights, below 6 u Z / tau, and 2 u c <= 2 u Z for D_j (the whole numbers
//   are below 2^53, so exact; c / (B G) and the product round once each): 8 u Z / tau <= 2^-30, exp 2^-48. Together e <
//   2^-30 * 1.01, and the range is off by at most 4e < kAggregateRangeSlack.
inline constexpr double kAggregateRangeSlack = 0x1p-27;

struct AggregateOptions {
  double clip = 0;
  double temperature = 1;
  uint32_t contexts = 1;  // B, 1 to kMostContexts
};
float AggregateWeights(std::span<const int64_t> sums, std::span<const float> base_scores,
                       std::span<const int32_t> items, const AggregateOptions& options, std::vector<double>& weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_CONTEXT_SUM_H_
