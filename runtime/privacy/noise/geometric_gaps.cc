// Built for speed: a draw for every row that noise selects.
#include "runtime/privacy/noise/geometric_gaps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/privacy/noise/discrete_gaussian_compare.h"

namespace wisp::privacy {

double UpperTail(double x) { return 0.5 * std::erfc(x * (std::numbers::sqrt2 / 2)); }

GeometricGaps::GeometricGaps(double success)
    : rate_(-std::log1p(-std::min(std::max(success, kSmallestSuccess), 1 - 0x1p-53))) {
  int exponent;
  const double fraction = std::frexp(rate_, &exponent);  // in [1/2, 1)
  mantissa_ = static_cast<uint64_t>(std::ldexp(fraction, 53));
  exponent_ = 53 - exponent;
  block_ = 1;
  while (block_ < (uint64_t{1} << 62) && rate_ * static_cast<double>(2 * block_) <= 1) block_ *= 2;
}

bool GeometricGaps::AllFail(RandomStream& random, uint64_t count) const {
  if (count == 0) return true;
  const uint64_t word = random.NextU64();
  // The product has a relative error of 2^-53 and is at most about 37, exp one of 2^-52: 2^-44 absolute is far above
  // both errors.
  const double probability = std::exp(-rate_ * static_cast<double>(count));
  const double w = static_cast<double>(word) * 0x1p-64;
  if (w < probability - 0x1p-44) return true;
  if (w > probability + 0x1p-44) return false;
  LazyUniform exact(random, word, 64);
  return BelowExp(exact, static_cast<unsigned __int128>(mantissa_) * count,
                  static_cast<unsigned __int128>(1) << exponent_);
}

uint64_t GeometricGaps::Next(RandomStream& random) const {
  uint64_t inside;
  do {
    inside = random.UniformBelow(block_);
  } while (!AllFail(random, inside));
  uint64_t blocks = 0;
  while (blocks * block_ < kLongestGap / 2 && AllFail(random, block_)) ++blocks;
  return inside + blocks * block_;
}

}  // namespace wisp::privacy
