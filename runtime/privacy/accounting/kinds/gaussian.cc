// Built for speed: loops over the accountant's grid, and sums over every order within searches.

// Gaussian noise on a sum in which every record takes part, or each with the same probability (Poisson sampling).
// Renyi divergence: Mironov 2017; with sampling, Mironov, Talwar, Zhang 2019.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "runtime/privacy/accounting/kinds/rounding.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

#if defined(_WIN32)
extern "C" double __lgamma_r(double x, int* sign);  // mingw-w64 has it, and no header names it
#elif defined(__APPLE__)
extern "C" double lgamma_r(double x, int* sign);  // the header has it only beside extensions of the language
#endif

namespace wisp::privacy {
namespace {

// Outcomes this many standard deviations out are cut off: 1e-21 of the mass, added to infinity or moved up.
constexpr double kTailDeviations = 9.5;
constexpr double kSmallestNoise = 0.03;

double UpperTail(double z) { return 0.5 * std::erfc(z * (std::numbers::sqrt2 / 2)); }

// The standard normal's tails on both sides of z, each computed when it is first needed.
class Tails {
 public:
  explicit Tails(double z) : z_(z) {}

  // The mass in (a, b], to nearly full relative accuracy: computed from the side on which both tails are small. Its
  // calls of erfc take far longer than it takes to call it.
  [[gnu::noinline]] static double MassBetween(Tails& a, Tails& b) {
    if (!(a.z_ < b.z_)) return 0;
    return a.z_ > 0 ? a.Above() - b.Above() : b.Below() - a.Below();
  }

 private:
  double Above() { return above_ < 0 ? above_ = UpperTail(z_) : above_; }
  double Below() { return below_ < 0 ? below_ = UpperTail(-z_) : below_; }

  double z_, above_ = -1, below_ = -1;
};

// One step: an outcome x is N(0, s^2) without the record, and a mixture with it.
class GaussianPair : public LossPair {
 public:
  GaussianPair(const Mechanism& m, Direction direction)
      : s_(m.noise_multiplier()),
        q_(m.sampling_probability()),
        log_q_(std::log(q_)),
        base_(std::log1p(-q_)),
        direction_(direction) {}

  Masses Between(double low, double high) const override {
    const bool remove = direction_ == Direction::kRemove;
    Edge at_low = newest_.loss == low ? newest_ : At(low);
    newest_ = At(high);
    Edge& a = remove ? at_low : newest_;
    Edge& b = remove ? newest_ : at_low;
    const double without = Tails::MassBetween(a.without, b.without);
    const double with = (1 - q_) * without + q_ * Tails::MassBetween(a.with, b.with);
    const double p = remove ? with : without, q = remove ? without : with;
    return {p, p - q * std::exp(low)};
  }
  LossRange Range() const override {
    const double low = MixtureRatio(-kTailDeviations * s_), high = MixtureRatio(1 + kTailDeviations * s_);
    return direction_ == Direction::kRemove ? LossRange{low, high} : LossRange{-high, -low};
  }

 private:
  // The loss as a function of x, which rises (remove) or falls (add).
  double MixtureRatio(double x) const {
    const double log_ratio = (2 * x - 1) / (2 * s_ * s_);
    if (q_ == 1) return log_ratio;
    const double a = base_, b = log_q_ + log_ratio;
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }
  // The x with MixtureRatio(x) = loss; minus infinity at and below log(1 - q).
  double Outcome(double loss) const {
    if (q_ == 1) return loss * s_ * s_ + 0.5;
    if (loss <= base_) return -kInfinity;
    // exp(loss) - (1 - q) = (1 - q) (exp(loss - base) - 1)
    const double excess = loss - base_;
    const double log_excess = excess > 30 ? excess + std::log1p(-std::exp(-excess)) : std::log(std::expm1(excess));
    return s_ * s_ * (base_ + log_excess - log_q_) + 0.5;
  }

  // One end of an interval: the outcome at a loss.
  struct Edge {
    double loss;
    Tails without, with;
  };
  [[gnu::noinline]] Edge At(double loss) const {
    const double x = Outcome(direction_ == Direction::kRemove ? loss : -loss);
    return {loss, Tails(x / s_), Tails((x - 1) / s_)};
  }

  double s_, q_, log_q_, base_;  // base: log(1 - q), below all losses if a record is removed
  Direction direction_;
  // The upper end of the last interval. The next one begins there, mostly with the same bits.
  mutable Edge newest_ = {std::numeric_limits<double>::quiet_NaN(), Tails(0), Tails(0)};
};

// log E over x ~ N(0, s^2) of ((1 - q) + q exp((2 x - 1) / (2 s^2)))^a, by the trapezoid rule. The integrand is
// analytic and falls like a Gaussian, so the rule converges faster than any power of its step; a step of s / 16 leaves
// less than 1e-12. The mass lies between the centres 0 and a.
double LogMoment(double q, double s, double a) {
  const double low = -14 * s, high = a + 14 * s, step = std::min(s / 16, (high - low) / 4096);
  const auto nodes = static_cast<uint64_t>((high - low) / step) + 1;
  double sum = -kInfinity;
  for (uint64_t i = 0; i <= nodes; ++i) {
    const double x = low + static_cast<double>(i) * step;
    const double ratio =
        q == 1 ? (2 * x - 1) / (2 * s * s) : LogAddExp(std::log1p(-q), std::log(q) + (2 * x - 1) / (2 * s * s));
    sum = LogAddExp(sum, a * ratio - x * x / (2 * s * s));
  }
  return sum + std::log(step / (s * std::sqrt(2 * std::numbers::pi)));
}

double GaussianRdp(const Mechanism& m, double order) {
  const double s = m.noise_multiplier(), q = m.sampling_probability(), steps = static_cast<double>(m.steps());
  if (q == 1) return steps * order / (2 * s * s);
  // High orders with little noise overflow the quadrature's range, and are never the best order.
  if (order / s > 2e4) return kInfinity;
  return steps * std::max(0.0, LogMoment(q, s, order)) / (order - 1);
}

// The log of exp(x) - 1.
double LogExpm1(double x) { return x < 1 ? std::log(std::expm1(x)) : x + std::log1p(-std::exp(-x)); }

// std::lgamma writes a variable (the sign) that all threads of a process share.
double LogGamma(double x) {
  int sign = 0;
#if defined(_WIN32)
  return __lgamma_r(x, &sign);
#else
  return lgamma_r(x, &sign);
#endif
}

// log E over the Gaussian of ((1 - q) + q ratio)^a for an integer a: the binomial sum of Mironov, Talwar, Zhang 2019,
// minus the 1 to which its weights add up. All terms are positive, so nothing cancels, however small the cost.
double SubsampledLogMoment(double q, double s, uint32_t order) {
  const double a = order;
  double rest = -kInfinity;
  for (double k = 2; k <= a; ++k) {
    const double log_weight =
        LogGamma(a + 1) - LogGamma(k + 1) - LogGamma(a - k + 1) + k * std::log(q) + (a - k) * std::log1p(-q);
    rest = LogAddExp(rest, log_weight + LogExpm1((k * k - k) / (2 * s * s)));
  }
  return rest > 30 ? rest + std::exp(-rest) : std::log1p(std::exp(rest));
}

// Remove is the larger direction (the same paper, theorem 5: reflection swaps the pair). The terms of the moment are
// accurate to 1e-12.
double SubsampledStepRdp(const Mechanism& m, uint32_t order) {
  const double a = order, s = m.noise_multiplier(), q = m.sampling_probability();
  return (q == 1 ? a / (2 * s * s) : SubsampledLogMoment(q, s, order) / (a - 1)) * (1 + 1e-10);
}

double GaussianMuSquared(const Mechanism& m) {
  const double s = m.noise_multiplier(), q = m.sampling_probability(), steps = static_cast<double>(m.steps());
  return q == 1 ? steps / (s * s) : q * q * steps * std::expm1(1 / (s * s));
}

bool EveryRecordTakesPart(const Mechanism& m) { return m.sampling_probability() == 1; }

// The steps of a plain Gaussian are one Gaussian with less noise.
std::optional<double> CombinedGaussianNoise(const Mechanism& m) {
  if (!EveryRecordTakesPart(m)) return std::nullopt;
  return m.noise_multiplier() / std::sqrt(static_cast<double>(m.steps())) * (1 - 1e-14);
}

// Less noise costs no less: the rest could be added afterwards.
Mechanism GaussianRoundedUp(const Mechanism& m, double per_octave) {
  Mechanism::Values values = m.values();
  values[0] = 1 / UpToPower(1 / values[0], per_octave);
  const auto rounded = Mechanism::Make(m.kind(), values, m.steps(), m.adjacency());
  return rounded.ok() ? *rounded : m;
}

bool GaussianFitsGrid(const Mechanism& m) {
  const double steps = EveryRecordTakesPart(m) ? static_cast<double>(m.steps()) : 1.0;
  return m.noise_multiplier() / std::sqrt(steps) >= kSmallestNoise;
}

LossRange GaussianRange(const Mechanism& m, Direction direction, Fineness) {
  return GaussianPair(m, direction).Range();
}

DiscretePld DiscretiseGaussian(const Mechanism& m, Direction direction, double step, Fineness) {
  return ConnectTheDots(GaussianPair(m, direction), step);
}

Status CheckSampling(const Mechanism& m) {
  if (m.adjacency() == Adjacency::kAddRemove || EveryRecordTakesPart(m)) return OkStatus();
  return PrivacyRefused("Poisson sampling under ", std::string(ToText(m.adjacency())),
                        " adjacency: amplification is proved here for add_remove only");
}

}  // namespace

constinit const MechanismKind kGaussianKind{
    .word = "gaussian",
    .in_words = "Gaussian",
    .unit = "step",
    .is_sample = false,
    .sampling = nullptr,
    .participation = nullptr,
    .released = nullptr,
    .parameters = {kNoiseMultiplier},
    .steps_of_unit = nullptr,
    .check = nullptr,
    .pure_epsilon = nullptr,
    .rdp = GaussianRdp,
    .rdp_of_step = nullptr,
    .gdp_mu_squared = GaussianMuSquared,
    .fits_grid = GaussianFitsGrid,
    .is_symmetric = EveryRecordTakesPart,
    .as_one_gaussian = CombinedGaussianNoise,
    .range = GaussianRange,
    .discretise = DiscretiseGaussian,
    .compose_alone = nullptr,
    .is_no_more_than = nullptr,
    .rounded_up = GaussianRoundedUp,
};

constinit const MechanismKind kPoissonSubsampledGaussianKind{
    .word = "poisson_subsampled_gaussian",
    .in_words = "Poisson-subsampled Gaussian",
    .unit = "step",
    .is_sample = false,
    .sampling = "poisson",
    .participation = "every record entered every step independently (Poisson), as the accountant assumes",
    .released = nullptr,
    .parameters = {kNoiseMultiplier,
                   {"sampling_probability", "sampling probability", kAboveZero, 1, "above 0 and up to 1"}},
    .steps_of_unit = nullptr,
    .check = CheckSampling,
    .pure_epsilon = nullptr,
    .rdp = GaussianRdp,
    .rdp_of_step = SubsampledStepRdp,
    .gdp_mu_squared = GaussianMuSquared,
    .fits_grid = GaussianFitsGrid,
    .is_symmetric = EveryRecordTakesPart,
    .as_one_gaussian = CombinedGaussianNoise,
    .range = GaussianRange,
    .discretise = DiscretiseGaussian,
    .compose_alone = nullptr,
    .is_no_more_than = nullptr,
    .rounded_up = GaussianRoundedUp,
};

}  // namespace wisp::privacy
