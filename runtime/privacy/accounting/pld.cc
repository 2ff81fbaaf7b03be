// Built for speed: loops over the accountant's grid.
#include "runtime/privacy/accounting/pld.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wisp::privacy {
namespace {

// Outcomes this many standard deviations out are cut off: 1e-21 of the mass, added to infinity or moved up.
constexpr double kTailDeviations = 9.5;
// Relative allowance for rounding where a small difference of masses is taken; moves mass up, never down.
constexpr double kSplitAllowance = 1e-9;

double UpperTail(double z) { return 0.5 * std::erfc(z * M_SQRT1_2); }

// The mass of the standard normal in (a, b], to nearly full relative accuracy: computed from the side on which both
// tails are small.
double NormalMass(double a, double b) {
  if (!(a < b)) return 0;
  return a > 0 ? UpperTail(a) - UpperTail(b) : UpperTail(-b) - UpperTail(-a);
}

// The P-mass of an interval of losses (low, high], and excess = p - q exp(low) with its Q-mass q.
struct Masses {
  double p, excess;
};

// One step of a Poisson-subsampled Gaussian: an outcome x is N(0, s^2) without the record, and a mixture with it.
class Pair {
 public:
  Pair(const Mechanism& m, Direction direction)
      : s_(m.noise_multiplier()), q_(m.sampling_probability()), direction_(direction) {}

  // The loss as a function of x, which rises (remove) or falls (add).
  double MixtureRatio(double x) const {
    const double log_ratio = (2 * x - 1) / (2 * s_ * s_);
    if (q_ == 1) return log_ratio;
    const double a = std::log1p(-q_), b = std::log(q_) + log_ratio;
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
  // The x with MixtureRatio(x) = loss; minus infinity at and below log(1 - q).
  double Outcome(double loss) const {
    if (q_ == 1) return loss * s_ * s_ + 0.5;
    const double base = std::log1p(-q_);
    if (loss <= base) return -kInfinity;
    // exp(loss) - (1 - q) = (1 - q) (exp(loss - base) - 1)
    const double excess = loss - base;
    const double log_excess = excess > 30 ? excess + std::log1p(-std::exp(-excess)) : std::log(std::expm1(excess));
    return s_ * s_ * (base + log_excess - std::log(q_)) + 0.5;
  }

  // The masses of the outcomes whose loss lies in (low, high].
  Masses Between(double low, double high) const {
    const bool remove = direction_ == Direction::kRemove;
    const double a = remove ? Outcome(low) : Outcome(-high), b = remove ? Outcome(high) : Outcome(-low);
    const double without = NormalMass(a / s_, b / s_);
    const double with = (1 - q_) * without + q_ * NormalMass((a - 1) / s_, (b - 1) / s_);
    const double p = remove ? with : without, q = remove ? without : with;
    return {p, p - q * std::exp(low)};
  }
  LossRange Range() const {
    const double low = MixtureRatio(-kTailDeviations * s_), high = MixtureRatio(1 + kTailDeviations * s_);
    return direction_ == Direction::kRemove ? LossRange{low, high} : LossRange{-high, -low};
  }

 private:
  double s_, q_;
  Direction direction_;
};

// One draw of bounded range eta: the pair that dominates all mechanisms of that range. The proof:
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
class BoundedRangePair {
 public:
  explicit BoundedRangePair(double eta) : eta_(eta) {}

  // With w = high - low, inside the range: p = e^((low - eta) / 2) (e^(w / 2) - 1) / D and
  // excess = e^((low - eta) / 2) (e^(w / 2) + e^(-w / 2) - 2) / D, written without a difference of near numbers.
  Masses Between(double low, double high) const {
    const double a = std::max(low, -eta_), w = std::min(high, eta_) - a;
    if (!(w > 0)) return {0, 0};
    const double scale = std::exp((a - eta_) / 2) / -std::expm1(-eta_), sinh = std::sinh(w / 4);
    const double cut = low < a ? std::expm1(low - a) * std::expm1(-w / 2) : 0;
    return {scale * std::expm1(w / 2), scale * (4 * sinh * sinh + cut)};
  }
  LossRange Range() const { return {-eta_, eta_}; }

 private:
  double eta_;
};

template <class Pair>
DiscretePld ConnectTheDots(const Pair& pair, double step) {
  const LossRange range = pair.Range();
  DiscretePld pld{.step = step};
  pld.first = static_cast<int64_t>(std::floor(range.low / step));
  const auto last = static_cast<int64_t>(std::ceil(range.high / step));
  pld.mass.assign(static_cast<size_t>(last - pld.first + 1), 0.0);
  const double spread = -std::expm1(-step);  // 1 - exp(-step)
  for (size_t i = 0; i + 1 < pld.mass.size(); ++i) {
    const double low = static_cast<double>(pld.first + static_cast<int64_t>(i)) * step, high = low + step;
    const Masses m = pair.Between(low, high);
    if (m.p <= 0) continue;
    // upper + lower = p and upper e^-high + lower e^-low = q: upper = (p - q e^low) / (1 - e^-step).
    const double upper = m.excess / spread + kSplitAllowance * m.p;
    pld.mass[i + 1] += std::clamp(upper, 0.0, m.p);
    pld.mass[i] += m.p - std::clamp(upper, 0.0, m.p);
  }
  // Losses below the range are moved up to its first point, those above to infinity. Infinity also gets what the masses
  // above lost to rounding.
  const double low = static_cast<double>(pld.first) * step, high = static_cast<double>(last) * step;
  pld.mass[0] += pair.Between(-kInfinity, low).p;
  pld.infinity = pair.Between(high, kInfinity).p + 1e-22;
  return pld;
}

}  // namespace

LossRange RangeOf(const Mechanism& mechanism, Direction direction) {
  if (mechanism.is_gaussian()) return Pair(mechanism, direction).Range();
  const double loss = mechanism.PureEpsilonOfStep();
  return {-loss, loss};
}

DiscretePld Discretise(const Mechanism& mechanism, Direction direction, double step) {
  if (mechanism.kind() == Mechanism::Kind::kBoundedRange)
    return ConnectTheDots(BoundedRangePair(mechanism.range()), step);
  if (mechanism.kind() == Mechanism::Kind::kRandomisedResponse)
    return Regrid(ResponseLattice(*mechanism.WithSteps(1)), step);
  return ConnectTheDots(Pair(mechanism, direction), step);
}

DiscretePld Regrid(const DiscretePld& pld, double step) {
  const auto loss_at = [&](size_t i) { return static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step; };
  DiscretePld out{.step = step, .infinity = pld.infinity};
  out.first = static_cast<int64_t>(std::floor(loss_at(0) / step));
  const auto last = static_cast<int64_t>(std::ceil(loss_at(pld.mass.size() - 1) / step)) + 1;
  out.mass.assign(static_cast<size_t>(last - out.first + 1), 0.0);
  const double spread = -std::expm1(-step);
  for (size_t i = 0; i < pld.mass.size(); ++i) {
    const double loss = loss_at(i), p = pld.mass[i];
    const auto low = static_cast<int64_t>(std::floor(loss / step));
    // Splits the mass as above, with q = p e^-loss.
    const double upper =
        std::clamp(-std::expm1(static_cast<double>(low) * step - loss) / spread + kSplitAllowance, 0.0, 1.0) * p;
    const auto index = static_cast<size_t>(low - out.first);
    out.mass[index + 1] += upper;
    out.mass[index] += p - upper;
  }
  return out;
}

double DeltaOf(const DiscretePld& pld, double epsilon) {
  double delta = pld.infinity;
  for (size_t i = pld.mass.size(); i-- > 0;) {
    const double loss = static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step;
    if (loss <= epsilon) break;
    delta += pld.mass[i] * -std::expm1(epsilon - loss);
  }
  return delta < 1 ? delta : 1.0;  // 1 also for NaN
}

double EpsilonOf(const DiscretePld& pld, double delta) {
  if (!(pld.infinity <= delta)) return kInfinity;  // infinity also for NaN
  // From the top down, over losses above e: delta(e) = infinity + sum m (1 - e^(e - l)), which is linear in e^e between
  // two losses. above = sum m and missed = sum m (1 - e^(reference - l)) are sums of positive terms, so small deltas
  // keep their digits.
  double above = 0, missed = 0, reference = 0;
  const double spread = -std::expm1(-pld.step);
  const auto crossing = [&] {
    return std::max(0.0, reference + std::log1p((pld.infinity + missed - delta) / (above - missed)));
  };
  for (size_t i = pld.mass.size(); i-- > 0;) {
    const double loss = static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step;
    if (loss < 0) break;
    reference = loss;
    missed += (above - missed) * spread;  // the reference moved down by one step
    // At e = loss this mass adds nothing yet. If delta was crossed, it was between loss and loss + step.
    if (pld.infinity + missed > delta) return crossing();
    above += pld.mass[i];
  }
  // Delta was not crossed at or above loss 0, or at the lowest loss if that is above 0. Below it no more masses come.
  return DeltaOf(pld, 0.0) <= delta ? 0.0 : crossing();
}

}  // namespace wisp::privacy
