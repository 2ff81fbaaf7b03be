// Gaps between the successes of independent, equally likely trials, drawn exactly, for processes over millions of
// trials that must not look at each trial.
//
//   const GeometricGaps gaps(UpperTail(tau / sigma));     // probability of success
//   for (uint64_t i = gaps.Next(random); i < n; i += 1 + gaps.Next(random)) ... trial i succeeded
//
// P[gap >= n] = exp(-rate n) exactly, where rate is the double nearest to -log(1 - p) (so p itself is met within 2^-51
// relative). No floating-point error enters a draw. The method is that of the discrete Laplace of Canonne, Kamath and
// Steinke (2020), algorithm 2.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_GEOMETRIC_GAPS_H_
#define WISP_RUNTIME_PRIVACY_NOISE_GEOMETRIC_GAPS_H_

#include <cstdint>

#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

// P[N(0, 1) >= x].
double UpperTail(double x);

// The smallest probability offered.
inline constexpr double kSmallestSuccess = 0x1p-70;

// Longer gaps are returned as about this, which exceeds every number of trials.
inline constexpr uint64_t kLongestGap = uint64_t{1} << 63;

class GeometricGaps {
 public:
  // kSmallestSuccess <= success <= 1 - 2^-53.
  explicit GeometricGaps(double success);
  // Failures before the next success.
  uint64_t Next(RandomStream& random) const;
  double rate() const { return rate_; }

 private:
  // True with probability exp(-rate count) exactly.
  bool AllFail(RandomStream& random, uint64_t count) const;

  double rate_;
  uint64_t mantissa_;  // rate = mantissa_ / 2^exponent_
  int exponent_;
  uint64_t block_;  // a power of two; rate * block_ <= 1, or 1
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_GEOMETRIC_GAPS_H_
