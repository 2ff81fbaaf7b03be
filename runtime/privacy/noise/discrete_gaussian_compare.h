// Comparisons of a uniform random real with a computable real, decided exactly however close they are.
//
// It is the slow half of discrete_gaussian.cc, used when double precision cannot decide. A uniform real W is known by
// its leading bits, and further bits are drawn as needed; the other side is enclosed in an interval of multi-precision
// fixed-point numbers. While the two intervals overlap, both are refined by one more 64-bit digit each. They overlap
// after m digits with probability about 2^(-64 m), so this ends with probability 1 and its answer is the true one. It
// is neither fast nor a general multi-precision library.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_COMPARE_H_
#define WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

// W in [0, 1), uniform: `word` holds its first `num_bits` bits (1 to 64) at the top, the rest is drawn from `random`.
class LazyUniform {
 public:
  LazyUniform(RandomStream& random, uint64_t word, int num_bits);

  // Number of known bits, num_bits + 64 * (calls of Extend and Append).
  size_t num_bits() const { return num_bits_; }
  void Extend() { Append(random_->NextU64()); }
  // The next 64 bits, drawn by the caller.
  void Append(uint64_t word);
  // Digits of W, most significant first; unknown bits are 0.
  const std::vector<uint64_t>& digits() const { return digits_; }

 private:
  RandomStream* random_;
  std::vector<uint64_t> digits_;
  size_t num_bits_;
};

// [W < exp(-numerator / denominator)]. 0 < denominator < 2^127.
bool BelowExp(LazyUniform& w, unsigned __int128 numerator, unsigned __int128 denominator);

// The half discrete Gaussian with an integer sigma of 1 .. 1024: v >= 0 with probability proportional to exp(-v^2 / (2
// sigma^2)).
class HalfGaussian {
 public:
  explicit HalfGaussian(uint64_t sigma) : sigma_(sigma) {}
  // The v with S(v - 1) / S(inf) <= W < S(v) / S(inf), where S(v) = sum of exp(-k^2 / (2 sigma^2)) over k = 0 .. v.
  uint64_t Draw(LazyUniform& w);

 private:
  // The sums S at one precision, within `error` of the last digit; total is S(inf).
  struct Sums {
    std::vector<std::vector<uint64_t>> values;
    std::vector<uint64_t> errors;
    std::vector<uint64_t> total;
    uint64_t total_error = 0;
  };
  const Sums& At(size_t num_digits);

  uint64_t sigma_;
  std::vector<Sums> sums_;  // by number of digits, computed on first use
};

// exp(-numerator / denominator) within 2^-52 relative, for tests of double precision and tables.
double ExpNegative(uint64_t numerator, uint64_t denominator);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_COMPARE_H_
