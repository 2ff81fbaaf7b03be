// What one private draw costs, before anything is drawn: a function of public numbers only.
//
// Mixing. A draw from q' = lambda q + (1 - lambda) u, u public with smallest probability u_min (1 / n for the uniform
// of n items), q anything computed from the records. For outcomes S and e^eps >= 1,
//     q'(S) - e^eps q''(S) <= sum_j (lambda q_j - (e^eps - 1)(1 - lambda) u_j)_+ ,
// convex in q, so largest at a vertex: lambda - (e^eps - 1)(1 - lambda) u_min. Hence
//     eps = log(1 + lambda / ((1 - lambda) u_min)), which for the uniform is log((1 + (n - 1) lambda) / (1 - lambda))
// (Majmudar et al. 2022, theorem 1), and the whole curve delta(eps) falls with u_min: a charge for a support of n, or
// for a u_min, covers draws with a smaller support, or a larger u_min. Blocks rest on that.
//
// Base-anchored. softmax((b + d) / tau), b public, |d_j| <= c. Between neighbours (b_j + d_j) / tau moves by at most
// 2c/tau, so log(p_j / p'_j) = (d_j - d'_j) / tau + log(Z' / Z) varies over j by at most 4c/tau, and as it is negative
// for one j and positive for another it is never above that: eps = 4c/tau (reached in the limit of an unlikely item),
// and eta^2 / 8 = 2 c^2 / tau^2 zCDP. What is charged is the range of the numbers drawn with (draw_law.h), a little
// more.
//
// Aggregate. softmax((b + D) / tau), b public, D = S c / (B G), S the sum over records of whole numbers s_i, each of
// them in [-G, G]^n (context_sum.h), B a public number. One record more or less moves S by s_i: (b_j + D_j) / tau moves
// by c / (B tau) at most, up or down, so log(p_j / p'_j) varies over j by at most 2c / (B tau). A record exchanged for
// another moves it by twice that. S is held to [-B G, B G] afterwards, by which no two values move apart.
//
// What it is not: an accountant. ToMechanism is the one place where a cost becomes what the ledger composes.
#ifndef WISP_RUNTIME_DECODING_DRAW_COST_H_
#define WISP_RUNTIME_DECODING_DRAW_COST_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp {

struct DrawCost {
  enum class Kind {
    kNothing,           // no randomness depends on the records: lambda is 0, or one item is left
    kUniformMixing,     // support, lambda
    kNonUniformMixing,  // min_probability, lambda
    kBoundedRange,      // range
  };
  Kind kind = Kind::kNothing;
  uint64_t support = 0;
  double lambda = 0;
  double min_probability = 0;
  double range = 0;
  bool operator==(const DrawCost&) const = default;
};

DrawCost UniformDrawCost(uint64_t support, double lambda);
// The same for the non-uniform mixing distribution u_j = weights_j / sum, of `left` draws before which `drawn` items
// were taken from the support. Which ones is not looked at: the least u_min that is possible is used, w_1 / (R + w_1)
// with w_1 the smallest weight and R the sum of all but the `drawn` + 1 smallest (for equal weights that is 1 / (n -
// drawn)). `sorted`: integers of 1 and above, ascending, their sum below 2^53.
DrawCost NonUniformDrawCost(std::span<const double> sorted, size_t drawn, double lambda);
// 4c/tau and the error of the arithmetic, rounded up.
DrawCost AnchoredDrawCost(double clip, double temperature, uint64_t support);
struct AggregateCostOptions {
  double clip = 0, temperature = 1;
  uint32_t contexts = 1;  // B
  privacy::Adjacency adjacency = privacy::Adjacency::kAddRemove;
};
// 2c / (B tau), or twice that where records are exchanged, and the error of the arithmetic, rounded up.
DrawCost AggregateDrawCost(const AggregateCostOptions& options);
// For each of `support` items a public distribution has at least so much that is `floor` uniform, else anything. What
// rounding to IntegerWeights takes is taken off: they are 2^16 and above for a floor of kLeastMixingFloor and 3 million
// items.
inline constexpr double kLeastMixingFloor = 1e-4;
double LeastOfMixture(double floor, uint64_t support);
// The clip whose cost, the arithmetic's error included, is at most this range. kPrivacyRefused where there is none.
Result<double> ClipForRange(double range, double temperature);
// The same for AggregateDrawCost; the clip of `options` is not read.
Result<double> AggregateClipForRange(double range, AggregateCostOptions options);

// Epsilon of one such draw at delta 0.
double EpsilonOf(const DrawCost& cost);

// Whether a draw of cost `draw` may be made on a charge for `charged`.
bool Covers(const DrawCost& charged, const DrawCost& draw);

// `count` draws as the ledger composes them. kInvalidArgument for kNothing, which is not charged.
Result<privacy::Mechanism> ToMechanism(const DrawCost& cost, uint64_t count, privacy::Adjacency adjacency);

// The lambda for which `draws` draws with a support of `support` items have `epsilon` in all at delta 0: (a - 1) /
// (a - 1 + support), a = exp(epsilon / draws), rounded down. With a delta far more is possible: ask the accountant.
// kInvalidArgument unless epsilon is positive and finite, and draws and support are 1 and above.
Result<double> LambdaForEpsilon(double epsilon, uint64_t draws, uint64_t support);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DRAW_COST_H_
