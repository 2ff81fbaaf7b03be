// Sums of logarithms, and parameters that are rounded up.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_ROUNDING_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_ROUNDING_H_

#include <algorithm>
#include <cmath>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// log(e^a + e^b)
inline double LogAddExp(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == -kInfinity ? high : high + std::log1p(std::exp(low - high));
}

// The next power of 2^(1 / per_octave) from `value` on.
inline double UpToPower(double value, double per_octave) {
  return std::exp2(std::ceil(std::log2(value) * per_octave) / per_octave) * (1 + 1e-13);
}

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_ROUNDING_H_
