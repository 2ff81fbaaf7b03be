// Built for speed: sums over every order, within searches.

// Renyi differential privacy (Mironov 2017; subsampled Gaussian: Mironov, Talwar, Zhang 2019), and the central limit of
// Gaussian differential privacy (Bu, Dong, Long, Su 2020) for restating papers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"

namespace wisp::privacy {
namespace {

double LogAddExp(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == -kInfinity ? high : high + std::log1p(std::exp(low - high));
}

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
  return sum + std::log(step / (s * std::sqrt(2 * M_PI)));
}

// RDP of the dominating pair (pld_response.cc), exactly.
double ResponseRdp(const Mechanism& m, double order) {
  const double a = order - 1, eps0 = m.PureEpsilonOfStep(), low = (1 - m.lambda()) * m.min_probability();
  const double still = (1 - m.lambda()) * (1 - 2 * m.min_probability());
  // E of e^(a L), minus 1, is lambda (e^(a eps0) - 1) + low (e^(a eps0) + e^(-a eps0) - 2): no difference of nearly
  // equal numbers.
  if (a * eps0 < 1)
    return std::log1p(m.lambda() * std::expm1(a * eps0) + 4 * low * std::pow(std::sinh(a * eps0 / 2), 2)) / a;
  return LogAddExp(LogAddExp(std::log(m.lambda() + low) + a * eps0, std::log(still)), std::log(low) - a * eps0) / a;
}

// The largest RDP over the family of binary pairs (pld.cc), at its t. With a = order - 1, D = 1 - e^-eta,
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

double Rdp(const Mechanism& m, double order) {
  const double s = m.noise_multiplier(), q = m.sampling_probability();
  const double steps = static_cast<double>(m.steps());
  if (m.kind() == Mechanism::Kind::kRandomisedResponse) return steps * ResponseRdp(m, order);
  if (m.kind() == Mechanism::Kind::kBoundedRange) return steps * BoundedRangeRdp(m.range(), order);
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
  return lgamma_r(x, &sign);
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

double NormalCdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// The delta of mu-GDP at epsilon.
double GdpDelta(double mu, double epsilon) {
  return NormalCdf(-epsilon / mu + mu / 2) - std::exp(epsilon) * NormalCdf(-epsilon / mu - mu / 2);
}

std::vector<double> UsualOrders() {
  std::vector<double> orders;
  for (double a = 1.05; a < 2; a += 0.05) orders.push_back(a);
  for (double a = 2; a < 12; a += 0.25) orders.push_back(a);
  for (double a = 12; a < 2000; a *= 1.12) orders.push_back(a);
  return orders;
}

}  // namespace

Status CheckAccountable(std::span<const Mechanism> mechanisms) {
  for (const Mechanism& m : mechanisms) {
    if (m.kind() == Mechanism::Kind::kPoissonSubsampledGaussian && m.adjacency() != Adjacency::kAddRemove &&
        m.sampling_probability() < 1) {
      return PrivacyRefused("Poisson sampling under ", std::string(ToText(m.adjacency())),
                            " adjacency: amplification is proved here for add_remove only");
    }
    if (m.adjacency() != mechanisms.front().adjacency()) {
      return PrivacyRefused("mechanisms under ", std::string(ToText(mechanisms.front().adjacency())), " and ",
                            std::string(ToText(m.adjacency())), " adjacency do not compose to one figure");
    }
  }
  return OkStatus();
}

// Remove is the larger direction of the subsampled Gaussian (the same paper, theorem 5: reflection swaps the pair).
double RdpOfStep(const Mechanism& m, uint32_t order) {
  constexpr double kRoundUp = 1 + 1e-10;  // the terms above are accurate to 1e-12
  const double a = order, s = m.noise_multiplier(), q = m.sampling_probability();
  switch (m.kind()) {
    case Mechanism::Kind::kGaussian:
      return a / (2 * s * s) * kRoundUp;
    case Mechanism::Kind::kPoissonSubsampledGaussian:
      return (q == 1 ? a / (2 * s * s) : SubsampledLogMoment(q, s, order) / (a - 1)) * kRoundUp;
    case Mechanism::Kind::kRandomisedResponse: {
      const double eps0 = m.PureEpsilonOfStep(), size = (a - 1) * eps0;
      // If ResponseRdp adds logarithms as large as `size`, each is rounded.
      return eps0 == 0 ? 0 : ResponseRdp(m, a) * kRoundUp + (size < 1 ? 0 : 1e-14 * (1 + size) / (a - 1));
    }
    case Mechanism::Kind::kBoundedRange:
      return BoundedRangeRdp(m.range(), a) * kRoundUp;
  }
  return kInfinity;
}

Result<double> RdpEpsilonAtOrders(std::span<const Mechanism> mechanisms, Delta delta, std::span<const double> orders) {
  WISP_RETURN_IF_ERROR(CheckAccountable(mechanisms));
  if (mechanisms.empty()) return 0.0;
  double best = kInfinity;
  for (double a : orders) {
    if (!(a > 1)) return InvalidArgument("RDP order is ", a, ", allowed are orders above 1");
    double total = 0;
    for (const Mechanism& m : mechanisms) total += Rdp(m, a);
    // Canonne, Kamath, Steinke 2020, proposition 12.
    best = std::min(best, total + std::log1p(-1 / a) - (std::log(delta.value()) + std::log(a)) / (a - 1));
  }
  return std::max(0.0, best);
}

Result<double> RdpEpsilon(std::span<const Mechanism> mechanisms, Delta delta) {
  return RdpEpsilonAtOrders(mechanisms, delta, UsualOrders());
}

Result<double> RdpDelta(std::span<const Mechanism> mechanisms, double epsilon) {
  WISP_RETURN_IF_ERROR(CheckAccountable(mechanisms));
  if (!(epsilon >= 0)) return InvalidArgument("epsilon is ", epsilon, ", allowed are 0 and above");
  if (mechanisms.empty()) return 0.0;
  double best = 0;  // best logarithm of delta
  for (double a : UsualOrders()) {
    double total = 0;
    for (const Mechanism& m : mechanisms) total += Rdp(m, a);
    // The conversion above, solved for delta.
    best = std::min(best, (a - 1) * (total - epsilon + std::log1p(-1 / a)) - std::log(a));
  }
  return std::exp(best);
}

Result<double> GdpCltEpsilon(std::span<const Mechanism> mechanisms, Delta delta) {
  WISP_RETURN_IF_ERROR(CheckAccountable(mechanisms));
  double mu_squared = 0;
  for (const Mechanism& m : mechanisms) {
    if (!m.is_gaussian())
      return PrivacyRefused("the central limit of Gaussian DP is offered for Gaussian mechanisms only, not for: ",
                            m.Describe());
    const double s = m.noise_multiplier(), q = m.sampling_probability(), steps = static_cast<double>(m.steps());
    mu_squared += q == 1 ? steps / (s * s) : q * q * steps * std::expm1(1 / (s * s));
  }
  const double mu = std::sqrt(mu_squared);
  if (mu == 0 || GdpDelta(mu, 0) <= delta.value()) return 0.0;
  double low = 0, high = 1;
  while (GdpDelta(mu, high) > delta.value()) {
    if ((high *= 2) > 700) return kInfinity;
  }
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (GdpDelta(mu, middle) > delta.value() ? low : high) = middle;
  }
  return high;
}

}  // namespace wisp::privacy
