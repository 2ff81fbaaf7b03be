// Adding up privacy while the next mechanism is still being chosen, from outputs of those before it: a filter, which
// says when to stop, and an odometer, which says how much was spent (docs/algorithms.md, section 10, derives both).
//
//   RenyiPath path;
//   path.Add(hundred_steps, loss_slack);                    // everything so far, *and what is about to run*
//   if (!RenyiFilter({.epsilon = 8, .delta = 1e-6}).Fits(path)) ... it must not run
//
// Filter (Feldman and Zrnic 2021). Fix an order a. If mechanisms are chosen from earlier outputs, but none is run that
// brings the sum of their Renyi divergences at a above B, then all outputs together have a divergence of at most B,
// hence are (epsilon, delta)-private for
//     B = epsilon - log((a - 1) / a) + (log delta + log a) / (a - 1)
// (Canonne, Kamath, Steinke 2020, proposition 12).
// Several orders a_j, each with a delta_j of its own, the sum of which is delta: a path may go on while, for one j, all
// of it fits B_j. Put every path that is possible under the first order that it fits to its end. Sums only grow, so
// that order's own filter never stopped it: the chance of this set of paths is that under the filter of a_j, and
// e^epsilon times its chance for the neighbour plus delta_j bounds it. The sets are disjoint; adding up gives delta.
// The order of infinity has delta 0: the losses that nothing exceeds, added up.
//
// Odometer: the same with a fixed list of budgets, every one a filter with a share of delta. The figure is the smallest
// budget that the path fits. For any event S, P(S) <= the sum over budgets of e^budget Q(S and this figure), plus
// delta.
//
// Discrete noise. At integer orders the moments of shifted discrete Gaussians are those of continuous ones, as shifts
// are whole steps of the grid: complete the square and the sum over integers is that of the mean moved by a whole
// number. So sums of Poisson samples with it cost no more than the formula, in the direction that it is about (remove);
// in the other one reflection swaps the pair, but not where the second part of a release depends on the first (a map
// and what it masks). There the ratio of both noises, e^slack (exact_sum.h), costs slack (2 a - 1) / (a - 1), which is
// a millionth of what steps cost, and is added for everything.
//
// What it is not: aware of ledgers, plans and limits (ledger_budget.h).
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_PRIVACY_FILTER_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_PRIVACY_FILTER_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// Whole numbers, for the reason above; a new order is a new filter, so they stay as they are.
inline constexpr std::array<uint32_t, 31> kRenyiOrders = {2,   3,   4,   5,   6,   7,   8,   10,  12, 14, 16,
                                                          20,  24,  28,  32,  40,  48,  56,  64,  80, 96, 112,
                                                          128, 160, 192, 224, 256, 320, 384, 448, 512};

using RenyiSums = std::array<double, kRenyiOrders.size()>;

// Everything along one path, at every order.
class RenyiPath {
 public:
  // `loss_slack`: as charged, for all steps of the mechanism.
  void Add(const Mechanism& mechanism, double loss_slack);
  // As large as the true sums or larger.
  const RenyiSums& sums() const { return sums_; }
  double pure() const { return pure_; }  // of the losses that nothing exceeds; infinity with a Gaussian

 private:
  const RenyiSums& OfStep(const Mechanism& mechanism);

  RenyiSums sums_ = {};
  double pure_ = 0;
  std::vector<std::pair<Mechanism, RenyiSums>> known_;  // steps that were asked for lately
};

class RenyiFilter {
 public:
  struct Budget {
    double epsilon = 0;
    double delta = 0;  // 0: only the order of infinity is left
  };
  // Orders and shares of delta follow from the budget alone. Half and more of delta goes to the few orders at which
  // Gaussians meet it.
  explicit RenyiFilter(const Budget& budget);
  bool Fits(const RenyiPath& path) const;

  // The order's share of delta, and B; for tests. B is below 0 where the order is of no use.
  double delta_of(size_t order) const { return delta_[order]; }
  double bound_of(size_t order) const { return bound_[order]; }

 private:
  double epsilon_;
  RenyiSums delta_ = {}, bound_ = {};
};

// An upper bound on what the path spent, one of the budgets 2^(k / 8); 0 where it cost nothing. Infinity beyond 1024.
double OdometerEpsilon(const RenyiPath& path, double delta);
// The budget's share of delta. All shares add up to less than 1.
double OdometerShare(int k);
inline constexpr int kLowestBudget = -64, kHighestBudget = 80;

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_PRIVACY_FILTER_H_
