// Pearson's test of sampled counts against a law. Tests state alpha: a p-value below it fails.
#ifndef WISP_TESTS_UNIT_PRIVACY_NOISE_CHI_SQUARE_H_
#define WISP_TESTS_UNIT_PRIVACY_NOISE_CHI_SQUARE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wisp {

// Returns the probability of counts this far from `law` (which sums to 1) or further. A count where the law has 0 gives
// 0.
inline double ChiSquarePValue(std::span<const uint64_t> counts, std::span<const double> law) {
  double draws = 0, statistic = 0;
  size_t cells = 0;
  for (uint64_t c : counts) draws += static_cast<double>(c);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (law[i] == 0 && counts[i] == 0) continue;
    if (law[i] == 0) return 0;
    const double expected = draws * law[i], off = static_cast<double>(counts[i]) - expected;
    statistic += off * off / expected;
    ++cells;
  }
  // 1 - P(a, x) by the series of the incomplete gamma function; exact to 1e-14, while alpha is 1e-6.
  const double a = static_cast<double>(cells - 1) / 2, x = statistic / 2;
  if (x > 500) return 0;
  double term = std::exp(-x + a * std::log(x) - std::lgamma(a + 1)), sum = 0;
  for (double n = 1; term > 1e-18 || n < x; ++n) {
    sum += term;
    term *= x / (a + n);
  }
  return 1 - sum;
}

}  // namespace wisp

#endif  // WISP_TESTS_UNIT_PRIVACY_NOISE_CHI_SQUARE_H_
