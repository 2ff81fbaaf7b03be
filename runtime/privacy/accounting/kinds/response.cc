// Built for speed: loops over the accountant's grid.

// The privacy loss of T samples of a randomised response, exactly: losses are multiples of eps0, and their masses are
// sums and products of positive numbers, so that even the smallest keeps its leading digits. (A transform would leave
// an error of about T sqrt(points) 1e-16 in each, which is more than the small deltas that samples must meet.)
//
// The pair. A sample of x is from P = lambda q + (1 - lambda) u, for the neighbour from Q = lambda q' + (1 - lambda) u.
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
// earlier samples, and so may u as long as its smallest probability is not below the one that is charged.
#include <algorithm>
#include <cmath>

#include "runtime/privacy/accounting/kinds/samples.h"
#include "runtime/privacy/accounting/kinds/rounding.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// A lattice with more points than this is composed by transforms instead.
constexpr double kMostResponsePoints = 4096;
constexpr double kMostSamples = 0x1p20;
// A relative error per sample that exceeds the rounding of the convolutions. Sums of n products of positive numbers are
// off by (n + 1) u, u = 2^-53, and the factors' errors add up: e(2 T) = 2 e(T) + (min(2 T + 1, kMostResponsePoints) +
// 1) u and e(1) <= 4 u give e(T) <= 20 T u for powers of two, hence 40 T u for the product of several.
constexpr double kSampleRounding = 64 * 0x1p-53;
// A margin of this kind for ConvolveDirectly's use in Compose, on at most 512 nonzero points.
constexpr double kTermRounding = 600 * 0x1p-53;

constexpr MechanismParameter kLambda{"lambda", "lambda", 0, kBelowOne, "0 and above, below 1"};

double ResponseLoss(const Mechanism& m) { return std::log1p(m.lambda() / ((1 - m.lambda()) * m.min_probability())); }

// Renyi divergence of the pair above in one sample, exactly.
double ResponseRdp(const Mechanism& m, double order) {
  const double a = order - 1, eps0 = m.PureEpsilonPerStep(), low = (1 - m.lambda()) * m.min_probability();
  const double still = (1 - m.lambda()) * (1 - 2 * m.min_probability());
  // E of e^(a L), minus 1, is lambda (e^(a eps0) - 1) + low (e^(a eps0) + e^(-a eps0) - 2): no difference of nearly
  // equal numbers.
  if (a * eps0 < 1)
    return std::log1p(m.lambda() * std::expm1(a * eps0) + 4 * low * std::pow(std::sinh(a * eps0 / 2), 2)) / a;
  return LogAddExp(LogAddExp(std::log(m.lambda() + low) + a * eps0, std::log(still)), std::log(low) - a * eps0) / a;
}

double ResponseTotalRdp(const Mechanism& m, double order) {
  return static_cast<double>(m.steps()) * ResponseRdp(m, order);
}

double ResponseStepRdp(const Mechanism& m, uint32_t order) {
  const double a = order, eps0 = m.PureEpsilonPerStep(), size = (a - 1) * eps0;
  // If ResponseRdp adds logarithms as large as `size`, each is rounded.
  return eps0 == 0 ? 0 : ResponseRdp(m, a) * (1 + 1e-10) + (size < 1 ? 0 : 1e-14 * (1 + size) / (a - 1));
}

// H_gamma = max(0, lambda (1 + (gamma - 1) u) - (gamma - 1) u), u = min_probability, rises with lambda and falls with
// u.
bool IsNoMoreResponse(const Mechanism& smaller, const Mechanism& larger) {
  return smaller.lambda() <= larger.lambda() && smaller.min_probability() >= larger.min_probability();
}

Mechanism ResponseRoundedUp(const Mechanism& m, double per_octave) {
  const double lambda = UpToPower(m.lambda(), per_octave);
  const auto rounded =
      Mechanism::NonUniformResponse({.min_probability = 1 / UpToPower(1 / m.min_probability(), per_octave),
                                     .lambda = lambda < 1 ? lambda : m.lambda(),
                                     .count = m.steps(),
                                     .adjacency = m.adjacency()});
  return rounded.ok() ? *rounded : m;
}

DiscretePld DiscretiseResponse(const Mechanism& m, Direction, double step, Fineness) {
  return Regrid(ResponseLattice(*m.WithSteps(1)), step);
}

std::optional<DiscretePld> LatticeIfWorthIt(const Mechanism& m) {
  return WorthALattice(m) ? std::optional(ResponseLattice(m)) : std::nullopt;
}

constexpr MechanismKind MakeResponseKind(const MechanismParameter& public_values) {
  return {
      .word = "randomised_response",
      .in_words = "randomised response",
      .unit = "sample",
      .is_sample = true,
      .sampling = nullptr,
      .participation = nullptr,
      .released = nullptr,
      .parameters = {public_values, kLambda},
      .steps_of_unit = nullptr,
      .check = nullptr,
      .pure_epsilon = ResponseLoss,
      .rdp = ResponseTotalRdp,
      .rdp_of_step = ResponseStepRdp,
      .gdp_mu_squared = nullptr,
      .fits_grid = SampleFitsGrid,
      .is_symmetric = SampleIsSymmetric,
      .as_one_gaussian = nullptr,
      .range = SampleRange,
      .discretise = DiscretiseResponse,
      .compose_alone = LatticeIfWorthIt,
      .is_no_more_than = IsNoMoreResponse,
      .rounded_up = ResponseRoundedUp,
  };
}

}  // namespace

bool WorthALattice(const Mechanism& response) {
  const double moves = response.lambda() + 2 * (1 - response.lambda()) * response.min_probability();
  const double samples = static_cast<double>(response.steps());
  // Twelve deviations and a hundred points on either side leave less than the cut (Bernstein).
  return samples <= kMostSamples && 24 * std::sqrt(moves * samples) + 200 <= kMostResponsePoints;
}

DiscretePld ResponseLattice(const Mechanism& response) {
  const double lambda = response.lambda(), m = (1 - lambda) * response.min_probability();
  DiscretePld power{.step = response.PureEpsilonPerStep(),
                    .first = -1,
                    .mass = {m, (1 - lambda) * (1 - 2 * response.min_probability()), lambda + m}};
  DiscretePld all{.step = power.step, .first = 0, .mass = {1.0}};
  for (uint64_t rest = response.steps(); rest > 0; rest /= 2) {
    if (rest % 2 == 1) all = ConvolveDirectly(all, power);
    if (rest > 1) power = ConvolveDirectly(power, power);
  }
  const double rounding = kSampleRounding * static_cast<double>(response.steps()) + kTermRounding;
  for (double& mass : all.mass) mass *= 1 + (response.steps() == 1 ? 0.0 : rounding);
  return all;
}

// The public distribution is uniform over so many values.
constinit const MechanismKind kUniformResponseKind =
    MakeResponseKind({"support", "support", 2, kLargestWhole, "2 to 2^53", true});

// The public distribution is any whose support has at least two values. With a smaller probability than this eps0 of a
// lambda near 1 would overflow.
constinit const MechanismKind kResponseKind =
    MakeResponseKind({"min_probability", "smallest public probability", 1e-200, 0.5, "1e-200 to 0.5"});

}  // namespace wisp::privacy
