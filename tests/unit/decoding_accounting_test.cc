// Randomised response and bounded-range draws: against enumeration, against exact figures of small cases, against each
// other and together with Gaussian mechanisms.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/pld.h"

namespace wisp::privacy {
namespace {

Mechanism Response(uint64_t support, double lambda, uint64_t count = 1) {
  return *Mechanism::RandomisedResponse({.support = support, .lambda = lambda, .count = count});
}
Mechanism Range(double range, uint64_t count = 1) { return *Mechanism::BoundedRange({.range = range, .count = count}); }
Delta DeltaAt(double value) { return *Delta::Create(value); }
double Pld(const std::vector<Mechanism>& m, double delta) { return *PldEpsilon(m, DeltaAt(delta)); }

// delta at epsilon of two distributions over the same values, by the definition.
double HockeyStick(const std::vector<double>& p, const std::vector<double>& q, double epsilon) {
  double delta = 0;
  for (size_t j = 0; j < p.size(); ++j) delta += std::max(0.0, p[j] - std::exp(epsilon) * q[j]);
  return delta;
}

// T-fold product.
std::vector<double> Product(const std::vector<double>& p, int times) {
  std::vector<double> all = {1};
  for (int t = 0; t < times; ++t) {
    std::vector<double> next;
    for (double a : all) {
      for (double b : p) next.push_back(a * b);
    }
    all = std::move(next);
  }
  return all;
}

std::vector<double> Mixed(const std::vector<double>& q, const std::vector<double>& u, double lambda) {
  std::vector<double> out(u.size());
  for (size_t j = 0; j < u.size(); ++j) out[j] = lambda * q[j] + (1 - lambda) * u[j];
  return out;
}

// delta of T draws of randomised response by the trinomial formula, in long double.
double TrinomialDelta(double support, double lambda, int draws, double epsilon) {
  const long double low = (1 - lambda) / support, high = lambda + low, still = 1 - high - low, eps0 = std::log(high / low);
  std::vector<long double> log_factorial(static_cast<size_t>(draws) + 1, 0);
  for (size_t i = 1; i < log_factorial.size(); ++i) log_factorial[i] = log_factorial[i - 1] + std::log(static_cast<long double>(i));
  long double delta = 0;
  for (int up = 0; up <= draws; ++up) {
    for (int down = 0; up + down <= draws && down < up; ++down) {
      const int rest = draws - up - down;
      const long double loss = (up - down) * eps0;
      if (loss <= epsilon) break;
      const long double log_p = log_factorial[static_cast<size_t>(draws)] - log_factorial[static_cast<size_t>(up)] - log_factorial[static_cast<size_t>(down)] -
                                log_factorial[static_cast<size_t>(rest)] + up * std::log(high) + down * std::log(low) + rest * std::log(still);
      delta += std::exp(log_p) * -std::expm1(epsilon - loss);
    }
  }
  return static_cast<double>(delta);
}

TEST(Response, GoldenOfDecoding) {
  const std::vector m = {Response(10000, 1e-4, 100)};
  EXPECT_NEAR(*PureEpsilon(m), 69.3, 0.05);
  EXPECT_NEAR(Pld(m, 1e-6), 1.38, 0.01);
}

TEST(Response, DeltaEqualsTrinomialFormula) {
  for (const auto& [support, lambda, draws] : {std::tuple{10000, 1e-4, 100}, {10000, 1e-3, 40}, {50, 0.01, 30}, {2, 0.3, 10}, {3, 0.05, 200}}) {
    for (double epsilon : {0.0, 0.1, 0.5, 1.0, 1.38, 2.0, 5.0, 9.0}) {
      const double exact = TrinomialDelta(support, lambda, draws, epsilon);
      const double bound = *PldDelta(std::vector{Response(static_cast<uint64_t>(support), lambda, static_cast<uint64_t>(draws))}, epsilon);
      EXPECT_GE(bound, exact * (1 - 1e-12)) << support << " " << lambda << " " << draws << " " << epsilon;
      EXPECT_LE(bound, exact * (1 + 1e-7) + 1e-28) << support << " " << lambda << " " << draws << " " << epsilon;
    }
  }
}

}  // namespace
}  // namespace wisp::privacy
