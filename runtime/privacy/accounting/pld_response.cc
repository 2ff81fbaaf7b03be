// Built for speed: loops over the accountant's grid.

// The privacy loss of T draws of a randomised response, exactly: losses are multiples of eps0, and their masses are
// sums and products of positive numbers, so that even the smallest keeps its leading digits. (A transform would leave
// an error of about T sqrt(points) 1e-16 in each, which is more than the small deltas that draws must meet.)
//
// The pair. A draw of x is from P = lambda q + (1 - lambda) u, for the neighbour from Q = lambda q' + (1 - lambda) u.
// Let u_min be the least u_j, m = (1 - lambda) u_min, eps0 = log(1 + lambda / m). Then P* with
//     loss +eps0 of mass lambda + m,    loss -eps0 of mass m,    loss 0 of mass 1 - lambda - 2 m
// (Q* its mirror image) dominates (P, Q) and (Q, P), for every q, q' and u:
//   gamma >= 1   H = sum_j max(0, P_j - gamma Q_j) is jointly convex in (q, q'), so it is largest where both are single
//       values, q = e_a and q' = e_b. If a = b then P = Q and H = 0. Else only j = a can be positive:
//           H = max(0, lambda + (1 - lambda) u_a - gamma (1 - lambda) u_a) = max(0, lambda - (gamma - 1)
//             (1 - lambda) u_a)
//       which is largest for u_a = u_min: max(0, lambda + m - gamma m). That is H of (P*, Q*): of its losses only +eps0
//       can count, with mass lambda + m under P* and m under Q*.
//   gamma < 1    H_gamma(P, Q) = 1 - gamma + gamma H_(1/gamma)(Q, P), for both pairs; (Q, P) is covered by the line
//       above, as q and q' were any, and (P*, Q*) is its own mirror image.
// Each value is reached by some q, q', so no smaller pair would do. The mass at 0 is not negative, because u_min <=
// 1/2. Domination for all gamma is what adaptive composition needs (Zhu, Dong, Wang 2022, theorem 10): q may depend on
// earlier draws, and so may u as long as its smallest probability is not below the one that is charged.
#include <algorithm>
#include <cmath>

#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy {
namespace {

// A lattice with more points than this is composed by transforms instead.
constexpr double kMostResponsePoints = 4096;
constexpr double kMostDraws = 0x1p20;
// A relative error per draw that exceeds the rounding of the convolutions. Sums of n products of positive numbers are
// off by (n + 1) u, u = 2^-53, and the factors' errors add up: e(2 T) = 2 e(T) + (min(2 T + 1, kMostResponsePoints) +
// 1) u and e(1) <= 4 u give e(T) <= 20 T u for powers of two, hence 40 T u for the product of several.
constexpr double kRoundingOfDraw = 64 * 0x1p-53;
// A margin of this kind for ConvolveDirectly's use in Compose, on at most 512 nonzero points.
constexpr double kRoundingOfTerm = 600 * 0x1p-53;

}  // namespace

void TrimTails(DiscretePld& pld, double cut) {
  size_t begin = 0, end = pld.mass.size();
  double below = 0, above = 0;
  while (begin + 1 < end && below + pld.mass[begin] < cut) below += pld.mass[begin++];
  while (begin + 1 < end && above + pld.mass[end - 1] < cut) above += pld.mass[--end];
  pld.mass = std::vector<double>(pld.mass.begin() + static_cast<ptrdiff_t>(begin),
                                 pld.mass.begin() + static_cast<ptrdiff_t>(end));
  pld.mass.front() += below;
  pld.infinity += above;
  pld.first += static_cast<int64_t>(begin);
}

DiscretePld ConvolveDirectly(const DiscretePld& dense, const DiscretePld& sparse) {
  DiscretePld sum{
      .step = dense.step, .first = dense.first + sparse.first, .infinity = dense.infinity + sparse.infinity};
  sum.mass.assign(dense.mass.size() + sparse.mass.size() - 1, 0.0);
  for (size_t j = 0; j < sparse.mass.size(); ++j) {
    const double weight = sparse.mass[j];
    if (weight == 0) continue;
    double* out = &sum.mass[j];
    for (size_t i = 0; i < dense.mass.size(); ++i) out[i] += weight * dense.mass[i];
  }
  TrimTails(sum, kTailCut);
  return sum;
}

bool WorthALattice(const Mechanism& response) {
  const double moves = response.lambda() + 2 * (1 - response.lambda()) * response.min_probability();
  const double draws = static_cast<double>(response.steps());
  // Twelve deviations and a hundred points on either side leave less than the cut (Bernstein).
  return draws <= kMostDraws && 24 * std::sqrt(moves * draws) + 200 <= kMostResponsePoints;
}

DiscretePld ResponseLattice(const Mechanism& response) {
  const double lambda = response.lambda(), m = (1 - lambda) * response.min_probability();
  DiscretePld power{.step = response.PureEpsilonOfStep(),
                    .first = -1,
                    .mass = {m, (1 - lambda) * (1 - 2 * response.min_probability()), lambda + m}};
  DiscretePld all{.step = power.step, .first = 0, .mass = {1.0}};
  for (uint64_t rest = response.steps(); rest > 0; rest /= 2) {
    if (rest % 2 == 1) all = ConvolveDirectly(all, power);
    if (rest > 1) power = ConvolveDirectly(power, power);
  }
  const double rounding = kRoundingOfDraw * static_cast<double>(response.steps()) + kRoundingOfTerm;
  for (double& mass : all.mass) mass *= 1 + (response.steps() == 1 ? 0.0 : rounding);
  return all;
}

}  // namespace wisp::privacy
