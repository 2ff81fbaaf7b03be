// Built for speed: loops over the accountant's grid.

// A sample whose privacy loss varies by at most a known range over its outcomes.
#include <algorithm>
#include <cmath>

#include "runtime/privacy/accounting/kinds/samples.h"
#include "runtime/privacy/accounting/kinds/rounding.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// One sample of bounded range eta: the pair that dominates all mechanisms of that range. The proof:
//   Family      Between neighbours the losses log(P / Q) lie in some [t - eta, t], and 0 <= t <= eta since both P and Q
//       sum to 1. P / Q has mean 1 under Q, and a convex function of it is largest with all mass at the two ends (Dong,
//       Durfee, Rogers 2020): P has p_t = (1 - e^(t - eta)) / D at loss t, the rest at t - eta; D = 1 - e^-eta. Hence
//       for |x| <= eta
//           delta_t(x) = (1 - e^(t - eta)) (1 - e^(x - t)) / D   where t - eta <= x <= t.
//   Supremum    Over t it is largest at t = (x + eta) / 2:  delta(x) = (1 - e^((x - eta) / 2))^2 / D; 0 above eta, 1 -
//       e^x below -eta. A supremum of convex functions of e^x, between max(0, 1 - e^x) and 1: so some pair has exactly
//       this curve (Zhu, Dong, Wang 2022, proposition 8), it dominates every mechanism of the family, and products of
//       dominating pairs dominate adaptive compositions (their theorem 10). Changing t from step to step is paid for.
//   The pair    From delta and its derivative in e^x:  P(L > x) = (1 - e^((x - eta) / 2)) / D  and
//       Q(L > x) = (e^(-(x + eta) / 2) - e^-eta) / D: densities on [-eta, eta], no atoms. e^x delta(-x) + 1 - e^x =
//       delta(x): both directions are the same.
class BoundedRangePair : public LossPair {
 public:
  explicit BoundedRangePair(double eta) : eta_(eta) {}

  // With w = high - low, inside the range: p = e^((low - eta) / 2) (e^(w / 2) - 1) / D and
  // excess = e^((low - eta) / 2) (e^(w / 2) + e^(-w / 2) - 2) / D, written without a difference of near numbers.
  Masses Between(double low, double high) const override {
    const double a = std::max(low, -eta_), w = std::min(high, eta_) - a;
    if (!(w > 0)) return {0, 0};
    const double scale = std::exp((a - eta_) / 2) / -std::expm1(-eta_), sinh = std::sinh(w / 4);
    const double cut = low < a ? std::expm1(low - a) * std::expm1(-w / 2) : 0;
    return {scale * std::expm1(w / 2), scale * (4 * sinh * sinh + cut)};
  }
  LossRange Range() const override { return {-eta_, eta_}; }

 private:
  double eta_;
};

// The largest RDP over the family of binary pairs above, at its t. With a = order - 1, D = 1 - e^-eta,
//   E e^(a L) = e^(a t) (A - B e^t) / D,   A = 1 - e^(-(a + 1) eta),   B = e^-eta (1 - e^(-a eta)),
// largest at e^t = a A / ((a + 1) B), between 1 and e^eta, where it is e^(a t) A / ((a + 1) D). It is never above
// eta^2 / 8 times the order (eta-bounded range is eta^2 / 8-zCDP: Dong, Durfee, Rogers 2020; Cesar, Rogers 2021), which
// is used if eta is so small that the logarithms would cancel, nor above eta.
double BoundedRangeRdp(double eta, double order) {
  const double a = order - 1, simple = std::min(eta, order * eta * eta / 8);
  const double big_a = -std::expm1(-(a + 1) * eta), share = std::log(big_a) - std::log1p(a);
  const double t = std::log(a) + share + eta - std::log(-std::expm1(-a * eta));
  const double exact = t + (share - std::log(-std::expm1(-eta))) / a;
  constexpr double kRounding = 1e-14;  // per logarithm: they are of size 1 wherever `simple` is not used
  return std::min(simple, exact + kRounding * (1 + 1 / a) * (1 + std::abs(share)));
}

double BoundedRangeTotalRdp(const Mechanism& m, double order) {
  return static_cast<double>(m.steps()) * BoundedRangeRdp(m.range(), order);
}

double GetSampleRange(const Mechanism& m) { return m.range(); }

DiscretePld DiscretiseBoundedRange(const Mechanism& m, Direction, double step, Fineness) {
  return ConnectTheDots(BoundedRangePair(m.range()), step);
}

bool IsNoMoreRange(const Mechanism& smaller, const Mechanism& larger) { return smaller.range() <= larger.range(); }

// A range is bounded by any larger one.
Mechanism BoundedRangeRoundedUp(const Mechanism& m, double per_octave) {
  const auto rounded = Mechanism::BoundedRange(
      {.range = UpToPower(m.range(), per_octave), .count = m.steps(), .adjacency = m.adjacency()});
  return rounded.ok() ? *rounded : m;
}

}  // namespace

constinit const MechanismKind kBoundedRangeKind{
    .word = "bounded_range",
    .in_words = "bounded-range sample",
    .unit = "sample",
    .is_sample = true,
    .sampling = nullptr,
    .participation = nullptr,
    .released = nullptr,
    .parameters = {{{"range", "range", kAboveZero, std::numeric_limits<double>::max(), "a positive number"}}},
    .steps_of_unit = nullptr,
    .check = nullptr,
    .pure_epsilon = GetSampleRange,
    .rdp = BoundedRangeTotalRdp,
    .rdp_of_step = nullptr,
    .gdp_mu_squared = nullptr,
    .fits_grid = SampleFitsGrid,
    .is_symmetric = SampleIsSymmetric,
    .as_one_gaussian = nullptr,
    .range = SampleRange,
    .discretise = DiscretiseBoundedRange,
    .compose_alone = nullptr,
    .is_no_more_than = IsNoMoreRange,
    .rounded_up = BoundedRangeRoundedUp,
};

}  // namespace wisp::privacy
