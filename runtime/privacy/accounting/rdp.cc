// Built for speed: sums over every order, within searches.

// Renyi differential privacy (Mironov 2017), and the central limit of Gaussian differential privacy (Bu, Dong, Long, Su
// 2020) for restating papers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// All steps of the mechanism.
double Rdp(const Mechanism& m, double order) { return m.kind().rdp ? m.kind().rdp(m, order) : kInfinity; }

double NormalCdf(double x) { return 0.5 * std::erfc(-x * (std::numbers::sqrt2 / 2)); }

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
    if (m.kind().check != nullptr) {
      WISP_RETURN_IF_ERROR(m.kind().check(m));
    }
    if (m.adjacency() != mechanisms.front().adjacency()) {
      return PrivacyRefused("mechanisms under ", std::string(ToText(mechanisms.front().adjacency())), " and ",
                            std::string(ToText(m.adjacency())), " adjacency do not compose to one figure");
    }
  }
  return OkStatus();
}

double StepRdp(const Mechanism& m, uint32_t order) {
  if (m.kind().rdp_of_step) return m.kind().rdp_of_step(m, order);
  return m.kind().rdp ? m.kind().rdp(*m.WithSteps(1), order) * (1 + 1e-10) : kInfinity;
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
    if (!m.kind().gdp_mu_squared) {
      return PrivacyRefused("the central limit of Gaussian DP is offered for Gaussian mechanisms only, not for: ",
                            m.Describe());
    }
    mu_squared += m.kind().gdp_mu_squared(m);
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
