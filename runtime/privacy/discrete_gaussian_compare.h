// Comparisons of a uniform random real with a computable real, decided exactly however close they are.
//
// What it is: the slow half of discrete_gaussian.cc, taken when double precision cannot tell. A uniform real W is known
// by its leading bits, further bits are drawn as needed; the other side is enclosed in an interval of multi-precision
// fixed-point numbers. While the two intervals meet, both are refined: one more 64-bit digit each. A meeting after m
// digits has probability about 2^(-64 m), so this ends with probability 1 and its answer is the true one.
// What it is not: fast, or a general multi-precision library.
#ifndef WISP_RUNTIME_PRIVACY_DISCRETE_GAUSSIAN_COMPARE_H_
#define WISP_RUNTIME_PRIVACY_DISCRETE_GAUSSIAN_COMPARE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/privacy/random.h"

namespace wisp::privacy {

// W in [0, 1), uniform: `word` holds its first `num_bits` bits (63 or 64) at the top, the rest is drawn from `random`.
class LazyUniform {
 public:
  LazyUniform(RandomStream& random, uint64_t word, int num_bits);

  // Number of known bits, num_bits + 64 * (calls of Extend).
  size_t num_bits() const { return num_bits_; }
  void Extend();
  // Digits of W, most significant first; unknown bits are 0.
  const std::vector<uint64_t>& digits() const { return digits_; }

 private:
  RandomStream* random_;
  std::vector<uint64_t> digits_;
  size_t num_bits_;
};

// [W < exp(-numerator / denominator)]. 0 < denominator < 2^127.
bool BelowExp(LazyUniform& w, unsigned __int128 numerator, unsigned __int128 denominator);

// The v >= 0 with S(v - 1) / S(inf) <= W < S(v) / S(inf), where S(v) = sum of exp(-k^2 / 2) over k = 0 .. v:
// a draw of the half discrete Gaussian with sigma 1.
uint64_t HalfGaussianQuantile(LazyUniform& w);

// floor(2^63 S(v) / S(inf)), from 120 decimal digits. A word of 63 bits below entry v means a quantile of at most v,
// one above it means more than v, an equal one decides nothing. The last entry is 1 - 2^-73, rounded.
inline constexpr std::array<uint64_t, 10> kHalfGaussianTable = {
    0x49012d8ca4167395, 0x7548bcc2a3d077c9, 0x7f2a0ae374ed25d7, 0x7ff9a9198cc84608, 0x7fffee18dc77aca1,
    0x7fffffed516b91a2, 0x7ffffffff8d106d2, 0x7ffffffffffefbb6, 0x7ffffffffffffff2, 0x7fffffffffffffff,
};

// exp(-numerator / denominator) within 2^-52 relative, for the tables of the fast path.
double ExpNegative(uint64_t numerator, uint64_t denominator);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_DISCRETE_GAUSSIAN_COMPARE_H_
