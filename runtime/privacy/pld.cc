#include "runtime/privacy/pld.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wisp::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Outcomes this many standard deviations out are cut off: 1e-21 of the mass, added to infinity or moved up.
constexpr double kTailDeviations = 9.5;
// Relative allowance for rounding where a small difference of masses is taken; moves mass up, never down.
constexpr double kSplitAllowance = 1e-9;

double UpperTail(double z) { return 0.5 * std::erfc(z * M_SQRT1_2); }

// Mass of the standard normal in (a, b], to nearly full relative accuracy: from the side where both tails are small.
double NormalMass(double a, double b) {
  if (!(a < b)) return 0;
  return a > 0 ? UpperTail(a) - UpperTail(b) : UpperTail(-b) - UpperTail(-a);
}

// One step of a Poisson-subsampled Gaussian: outcomes x, N(0, s^2) without the record, the mixture with it.
class Pair {
 public:
  Pair(const Mechanism& m, Direction direction) : s_(m.noise_multiplier()), q_(m.sampling_probability()), direction_(direction) {}

  // The loss as a function that rises with x (remove) or falls (add).
  double MixtureRatio(double x) const {
    const double log_ratio = (2 * x - 1) / (2 * s_ * s_);
    if (q_ == 1) return log_ratio;
    const double a = std::log1p(-q_), b = std::log(q_) + log_ratio;
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
  // x with MixtureRatio(x) = loss; minus infinity at and below log(1 - q).
  double Outcome(double loss) const {
    if (q_ == 1) return loss * s_ * s_ + 0.5;
    const double base = std::log1p(-q_);
    if (loss <= base) return -kInfinity;
    // exp(loss) - (1 - q) = (1 - q) (exp(loss - base) - 1)
    const double excess = loss - base;
    const double log_excess = excess > 30 ? excess + std::log1p(-std::exp(-excess)) : std::log(std::expm1(excess));
    return s_ * s_ * (base + log_excess - std::log(q_)) + 0.5;
  }

  struct Masses {
    double p, q;
  };
  // Of the outcomes whose loss lies in (low, high].
  Masses Between(double low, double high) const {
    const bool remove = direction_ == Direction::kRemove;
    const double a = remove ? Outcome(low) : Outcome(-high), b = remove ? Outcome(high) : Outcome(-low);
    const double without = NormalMass(a / s_, b / s_);
    const double with = (1 - q_) * without + q_ * NormalMass((a - 1) / s_, (b - 1) / s_);
    return remove ? Masses{with, without} : Masses{without, with};
  }
  LossRange Range() const {
    const double low = MixtureRatio(-kTailDeviations * s_), high = MixtureRatio(1 + kTailDeviations * s_);
    return direction_ == Direction::kRemove ? LossRange{low, high} : LossRange{-high, -low};
  }

 private:
  double s_, q_;
  Direction direction_;
};

}  // namespace

LossRange RangeOf(const Mechanism& mechanism, Direction direction) { return Pair(mechanism, direction).Range(); }

DiscretePld Discretise(const Mechanism& mechanism, Direction direction, double step) {
  const Pair pair(mechanism, direction);
  const LossRange range = pair.Range();
  DiscretePld pld{.step = step};
  pld.first = static_cast<int64_t>(std::floor(range.low / step));
  const auto last = static_cast<int64_t>(std::ceil(range.high / step));
  pld.mass.assign(static_cast<size_t>(last - pld.first + 1), 0.0);
  const double spread = -std::expm1(-step);  // 1 - exp(-step)
  for (size_t i = 0; i + 1 < pld.mass.size(); ++i) {
    const double low = static_cast<double>(pld.first + static_cast<int64_t>(i)) * step, high = low + step;
    const Pair::Masses m = pair.Between(low, high);
    if (m.p <= 0) continue;
    // upper + lower = p and upper e^-high + lower e^-low = q: upper = (p - q e^low) / (1 - e^-step).
    const double upper = (m.p - m.q * std::exp(low)) / spread + kSplitAllowance * m.p;
    pld.mass[i + 1] += std::clamp(upper, 0.0, m.p);
    pld.mass[i] += m.p - std::clamp(upper, 0.0, m.p);
  }
  // Below the range: moved up to its first point. Above: infinity. Also there: what the masses above lost to rounding.
  const double low = static_cast<double>(pld.first) * step, high = static_cast<double>(last) * step;
  pld.mass[0] += pair.Between(-kInfinity, low).p;
  pld.infinity = pair.Between(high, kInfinity).p + 1e-22;
  return pld;
}

double DeltaOf(const DiscretePld& pld, double epsilon) {
  double delta = pld.infinity;
  for (size_t i = pld.mass.size(); i-- > 0;) {
    const double loss = static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step;
    if (loss <= epsilon) break;
    delta += pld.mass[i] * -std::expm1(epsilon - loss);
  }
  return std::min(1.0, delta);
}

double EpsilonOf(const DiscretePld& pld, double delta) {
  if (pld.infinity > delta) return kInfinity;
  // From the top: delta(e) = infinity + sum m - e^e sum m e^-l over the losses above e, linear in e^e between two losses.
  double above = 0, scaled = 0;  // sums of m and of m e^-(l - reference), reference: the current loss
  for (size_t i = pld.mass.size(); i-- > 0;) {
    const double loss = static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step;
    if (loss < 0) break;
    scaled *= std::exp(-pld.step);  // the reference moved down by one step
    // At e = loss (this mass not counted yet): delta = infinity + above - scaled.
    if (pld.infinity + above - scaled > delta) {
      // Crossed between loss and loss + step: solve infinity + above - e^(e - loss) scaled = delta.
      const double ratio = (pld.infinity + above - delta) / scaled;
      return std::max(0.0, loss + std::log(std::max(1.0, ratio)));
    }
    above += pld.mass[i];
    scaled += pld.mass[i];
  }
  // Not crossed at or above loss 0... the whole of delta(0) is spent below the first loss under zero.
  const double at_zero = DeltaOf(pld, 0.0);
  if (at_zero <= delta) return 0.0;
  return std::max(0.0, std::log(std::max(1.0, (pld.infinity + above - delta) / scaled)));
}

}  // namespace wisp::privacy
