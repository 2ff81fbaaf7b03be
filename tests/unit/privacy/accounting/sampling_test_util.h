// Helpers for tests of accounting and calibration: a decoder's mechanisms in short form, their PLD figure, and deltas
// by the definition.
#ifndef WISP_TESTS_UNIT_PRIVACY_ACCOUNTING_SAMPLING_TEST_UTIL_H_
#define WISP_TESTS_UNIT_PRIVACY_ACCOUNTING_SAMPLING_TEST_UTIL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

inline Mechanism Response(uint64_t support, double lambda, uint64_t count = 1) {
  return *Mechanism::RandomisedResponse({.support = support, .lambda = lambda, .count = count});
}
inline Mechanism Range(double range, uint64_t count = 1) {
  return *Mechanism::BoundedRange({.range = range, .count = count});
}
inline Delta DeltaAt(double value) { return *Delta::Create(value); }
inline double Pld(const std::vector<Mechanism>& m, double delta) { return *PldEpsilon(m, DeltaAt(delta)); }

// Returns delta at epsilon for two distributions over the same values, by the definition.
inline double HockeyStick(const std::vector<double>& p, const std::vector<double>& q, double epsilon) {
  double delta = 0;
  for (size_t j = 0; j < p.size(); ++j) delta += std::max(0.0, p[j] - std::exp(epsilon) * q[j]);
  return delta;
}

// Returns the binary pair P and Q with losses t and t - eta.
inline std::pair<std::vector<double>, std::vector<double>> Binary(double eta, double t) {
  const double p = -std::expm1(t - eta) / -std::expm1(-eta);
  return {{p, 1 - p}, {p * std::exp(-t), (1 - p) * std::exp(eta - t)}};
}

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_PRIVACY_ACCOUNTING_SAMPLING_TEST_UTIL_H_
