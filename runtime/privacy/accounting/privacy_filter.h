// Adds up privacy loss while later mechanisms are still being chosen from earlier outputs. A filter says when to stop,
// and an odometer says how much was spent (docs/algorithms.md, section 10, derives both).
//
//   RenyiPath path;
//   path.Add(hundred_steps, loss_slack);                    // everything so far, *and what is about to run*
//   if (!RenyiFilter({.epsilon = 8, .delta = 1e-6}).Fits(path)) ... it must not run
//
// Filter (Feldman and Zrnic 2021). Fix an order a. Mechanisms are chosen from earlier outputs, but none is run that
// would bring the sum of their Renyi divergences at a above B. Then all outputs together have a divergence of at most
// B, hence are (epsilon, delta)-private for
//     B = epsilon - log((a - 1) / a) + (log delta + log a) / (a - 1)
// (Canonne, Kamath, Steinke 2020, proposition 12).
// Several orders a_j are used, each with its own delta_j, which sum to delta: a path may continue as long as, for one
// j, all of it fits B_j. Assign every possible path to the first order that it fits to its end. Sums only grow, so that
// order's own filter never stopped it: the probability of this set of paths is that under the filter of a_j, and
// e^epsilon times its probability for the neighbour, plus delta_j, bounds it. The sets are disjoint; adding up gives
// delta. The order infinity has delta 0: it adds up the losses that no outcome exceeds.
//
// Odometer: the same argument with a fixed list of budgets, every one a filter with a share of delta. The figure is the
// smallest budget that the path fits. For any event S, P(S) <= the sum over budgets of e^budget Q(S and this figure),
// plus delta.
//
// Discrete noise. At integer orders the moments of shifted discrete Gaussians are those of continuous ones, because
// shifts are whole steps of the grid: complete the square, and the sum over integers is that of the mean moved by a
// whole number. So sums of Poisson samples with discrete noise cost no more than the formula, in the direction that it
// covers (remove). In the other direction reflection swaps the pair, but not if the second part of a release depends on
// the first (a map and what it masks). There the ratio of both noises, e^slack (exact_sum.h), costs slack (2 a - 1) /
// (a - 1), which is a millionth of what steps cost, and is added for everything.
//
// It knows nothing of ledgers, plans and limits (ledger_budget.h).
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_PRIVACY_FILTER_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_PRIVACY_FILTER_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// Integers, for the reason above. They are fixed: another order would be a new filter.
inline constexpr std::array<uint32_t, 31> kRenyiOrders = {2,   3,   4,   5,   6,   7,   8,   10,  12, 14, 16,
                                                          20,  24,  28,  32,  40,  48,  56,  64,  80, 96, 112,
                                                          128, 160, 192, 224, 256, 320, 384, 448, 512};

using RenyiSums = std::array<double, kRenyiOrders.size()>;

// Accumulates everything along one path, at every order.
class RenyiPath {
 public:
  // `loss_slack` is the charged one, for all steps of the mechanism.
  void Add(const Mechanism& mechanism, double loss_slack);
  // The sums are upper bounds of the true ones.
  const RenyiSums& sums() const { return sums_; }
  double pure() const { return pure_; }  // sum of the losses that no outcome exceeds; infinity with a Gaussian

 private:
  const RenyiSums& OfStep(const Mechanism& mechanism);

  RenyiSums sums_ = {};
  double pure_ = 0;
  std::vector<std::pair<Mechanism, RenyiSums>> known_;  // recently used steps
};

class RenyiFilter {
 public:
  struct Budget {
    double epsilon = 0;
    double delta = 0;  // 0 leaves only the order infinity
  };
  // Orders and shares of delta follow from the budget alone. At least half of delta goes to the few orders at which
  // Gaussians meet the budget.
  explicit RenyiFilter(const Budget& budget);
  bool Fits(const RenyiPath& path) const;

  // The order's share of delta, and B; for tests. A negative B makes the order useless.
  double delta_of(size_t order) const { return delta_[order]; }
  double bound_of(size_t order) const { return bound_[order]; }

 private:
  double epsilon_;
  RenyiSums delta_ = {}, bound_ = {};
};

// An upper bound on what the path spent, one of the budgets 2^(k / 8); 0 if it cost nothing, infinity beyond 1024.
double OdometerEpsilon(const RenyiPath& path, double delta);
// The budget's share of delta. All shares add up to less than 1.
double OdometerShare(int k);
inline constexpr int kLowestBudget = -64, kHighestBudget = 80;

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_PRIVACY_FILTER_H_
