// Built for speed: loops over the accountant's grid.
#include "runtime/privacy/accounting/pld.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// Relative allowance for rounding where a small difference of masses is taken; moves mass up, never down.
constexpr double kSplitAllowance = 1e-9;

}  // namespace

DiscretePld ConnectTheDots(const LossPair& pair, double step) {
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

DiscretePld Discretise(const Mechanism& m, Direction direction, double step, Fineness fineness) {
  return m.kind().discretise(m, direction, step, fineness);
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

double ComputeDelta(const DiscretePld& pld, double epsilon) {
  double delta = pld.infinity;
  for (size_t i = pld.mass.size(); i-- > 0;) {
    const double loss = static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step;
    if (loss <= epsilon) break;
    delta += pld.mass[i] * -std::expm1(epsilon - loss);
  }
  return delta < 1 ? delta : 1.0;  // 1 also for NaN
}

namespace {

// From the top down, over losses above e: delta(e) = infinity + sum m (1 - e^(e - l)), which is linear in e^e between
// two losses. above = sum m and missed = sum m (1 - e^(reference - l)) are sums of positive terms, so small deltas keep
// their digits.
class Sweep {
 public:
  struct Sums {
    double above = 0, missed = 0;
  };
  explicit Sweep(const DiscretePld& pld, const Sums& sums)
      : pld_(pld), spread_(-std::expm1(-pld.step)), sums_(sums), next_(pld.mass.size()) {}

  // Goes on as long as delta(loss) <= delta. Nullopt at a loss below 0, or below the lowest.
  std::optional<double> Cross(double delta) {
    for (; next_ > 0; --next_) {
      const double loss = static_cast<double>(pld_.first + static_cast<int64_t>(next_) - 1) * pld_.step;
      if (loss < 0) return std::nullopt;
      Sums at = sums_;
      at.missed += (at.above - at.missed) * spread_;  // the reference moved down by one step
      // At e = loss this mass adds nothing yet. If delta was crossed, it was between loss and loss + step.
      if (pld_.infinity + at.missed > delta) return Crossing(loss, at, delta);
      at.above += pld_.mass[next_ - 1];
      sums_ = at, reference_ = loss;
    }
    return std::nullopt;
  }
  // Where the line goes on that begins at the lowest loss.
  double CrossingBelow(double delta) const { return Crossing(reference_, sums_, delta); }
  size_t next() const { return next_; }  // the points from here on are in the sums
  const Sums& sums() const { return sums_; }

 private:
  double Crossing(double reference, const Sums& at, double delta) const {
    return std::max(0.0, reference + std::log1p((pld_.infinity + at.missed - delta) / (at.above - at.missed)));
  }

  const DiscretePld& pld_;
  double spread_;
  Sums sums_;
  double reference_ = 0;
  size_t next_;
};

}  // namespace

double ComputeEpsilon(const DiscretePld& pld, double delta) {
  if (!(pld.infinity <= delta)) return kInfinity;  // infinity also for NaN
  Sweep sweep(pld, {});
  if (const std::optional<double> epsilon = sweep.Cross(delta)) return *epsilon;
  // Delta was not crossed at or above loss 0, or at the lowest loss if that is above 0. Below it no more masses come.
  return ComputeDelta(pld, 0.0) <= delta ? 0.0 : sweep.CrossingBelow(delta);
}

EpsilonNear::EpsilonNear(const DiscretePld& pld, double delta) {
  constexpr double kNear = 0.1;
  Sweep sweep(pld, {});
  if (!(pld.infinity <= delta) || !sweep.Cross(delta * (1 - kNear))) return;
  const size_t end = sweep.next();
  const Sweep::Sums sums = sweep.sums();
  if (!sweep.Cross(delta * (1 + kNear))) return;
  const size_t begin = sweep.next() - 1;
  points_ = {.step = pld.step, .first = pld.first + static_cast<int64_t>(begin), .infinity = pld.infinity};
  points_.mass.assign(&pld.mass[begin], &pld.mass[begin] + (end - begin));
  above_ = sums.above, missed_ = sums.missed;
}

std::optional<double> EpsilonNear::Epsilon(double delta) const {
  if (points_.mass.empty() || !(points_.infinity + missed_ <= delta)) return std::nullopt;
  return Sweep(points_, {above_, missed_}).Cross(delta);
}

}  // namespace wisp::privacy
