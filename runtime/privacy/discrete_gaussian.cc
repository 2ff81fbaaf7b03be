// The algorithm is Karney's ("Sampling Exactly from the Normal Distribution", 2016, section 4): a rejection sampler
// like the one of Canonne, Kamath and Steinke, with a proposal that is accepted more often (0.71 against 0.48).
//
//   1. v >= 0 with probability proportional to exp(-v^2 / 2)        one random word against a table
//   2. u uniform on {0, ..., sigma - 1};  x = sigma v + u           one word
//   3. accept with probability exp(-g), g = u (u + 2 sigma v) / (2 sigma^2); else start again          one word
//   4. a random sign (a bit of word 1); -0 starts again
//
// Why the result is right. v^2 / 2 + g = (sigma v + u)^2 / (2 sigma^2), so a round ends in +x, and in -x, each with a
// probability proportional to exp(-x^2 / (2 sigma^2)); every integer except 0 belongs to exactly one (v, u, sign), and
// 0 to one after rule 4. Rounds are independent, so what is accepted has the distribution wanted.
//
// Why floating point does not enter. Steps 1 and 3 ask whether a uniform real W is below a real number p. W is never
// rounded: a word holds its first bits, more are drawn on demand. The fast path computes p' with |p' - p| <= kError and
// knows x <= W < x + 2^-53, x the first 53 bits. If x + 2^-53 <= p' - kError then W < p; if x >= p' + kError then W >=
// p. Otherwise it does not answer, and discrete_gaussian_compare.h finds the true answer for the same W. So every
// answer is [W < p] itself, the event of probability exactly p, whichever path gave it: kError decides the time, not
// the result.
//
// kError. With h = 2^-53, each operation has a relative error of at most h (IEEE 754, no contraction of a * b + c, see
// CMakeLists.txt). inverse = 1 / sigma: h (sigma <= 2^50 is exact, and so is u). t = u * inverse: 2 h. v + t / 2: 3 h.
// g = t (v + t / 2): 6 h to first order, 7 h in all; g < 10, so |g' - g| < 70 h. exp(-g') is table[n] * q(r) with n =
// floor(32 g') and r = g' - n / 32 in [0, 1/32) exact (both are multiples of the last place of g'); table[n] has an
// error of 2 h, q cuts off r^8 / 8! < 2^-55 < h / 2 and rounds 14 times near 1, its errors shrinking with r: below 4 h;
// one product: h. So |p' - p| < 70 h + 8 h < 2^-46. Taking kError = 2^-40 leaves a factor of 64 for an error in this
// paragraph, and sends one comparison in 2^39 to the slow path.
#include "runtime/privacy/discrete_gaussian.h"

#include <array>
#include <cstddef>

#include "runtime/privacy/discrete_gaussian_compare.h"

namespace wisp::privacy {
namespace {

using U128 = unsigned __int128;

enum class Path { kFiltered, kSlow };

constexpr double kError = 0x1p-40;

constexpr uint64_t kMaxFilteredV = kHalfGaussianTable.size() - 1;

constexpr size_t kExpSteps = 32;                              // table entries per unit of g
constexpr size_t kExpSize = (kMaxFilteredV + 1) * kExpSteps;  // g <= v + 1/2

const std::array<double, kExpSize>& ExpTable() {
  static const std::array<double, kExpSize> table = [] {
    std::array<double, kExpSize> t;
    for (size_t i = 0; i < kExpSize; ++i) t[i] = ExpNegative(i, kExpSteps);
    return t;
  }();
  return table;
}

// exp(-g) for 0 <= g < kMaxFilteredV + 1, see kError.
inline double FilterExp(const double* table, double g) {
  const size_t n = static_cast<size_t>(g * kExpSteps);
  const double r = static_cast<double>(n) * (1.0 / kExpSteps) - g;  // in (-1/32, 0]
  const double q =
      1 +
      r * (1 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040)))))));
  return table[n] * q;
}

template <Path path>
class Sampler {
 public:
  Sampler(RandomStream& random, uint64_t sigma)
      : random_(random), sigma_(sigma), inverse_(1.0 / static_cast<double>(sigma)), table_(ExpTable().data()) {}

  int64_t Next() {
    for (;;) {
      const uint64_t word = random_.NextU64();
      const bool negative = word & 1;
      const uint64_t v = DrawV(word >> 1);
      const uint64_t u = random_.UniformBelow(sigma_);
      if (!Accept(v, u)) continue;
      const int64_t x = static_cast<int64_t>(sigma_ * v + u);
      if (x == 0 && negative) continue;
      return negative ? -x : x;
    }
  }

 private:
  uint64_t DrawV(uint64_t bits63) {
    if constexpr (path == Path::kFiltered) {
      uint64_t v = 0;
      for (uint64_t k = 0; k < 4; ++k) v += bits63 > kHalfGaussianTable[k];
      while (v >= 4 && v <= kMaxFilteredV && bits63 > kHalfGaussianTable[v]) ++v;
      // W < p certainly where its 63 bits are below those of p, W > p where above; equal bits decide nothing.
      if (bits63 != kHalfGaussianTable[v]) [[likely]]
        return v;
    }
    LazyUniform w(random_, bits63 << 1, 63);
    return HalfGaussianQuantile(w);
  }

  bool Accept(uint64_t v, uint64_t u) {
    const uint64_t word = random_.NextU64();
    if constexpr (path == Path::kFiltered) {
      if (v <= kMaxFilteredV) [[likely]] {
        const double t = static_cast<double>(u) * inverse_;
        const double p = FilterExp(table_, t * (static_cast<double>(v) + 0.5 * t));
        const double x = static_cast<double>(word >> 11) * 0x1p-53;
        if (x < p - kError) return true;  // kError holds the 2^-53 that x may be short of W with room to spare
        if (x > p + kError) return false;
      }
    }
    LazyUniform w(random_, word, 64);
    return BelowExp(w, static_cast<U128>(u) * (static_cast<U128>(u) + 2 * static_cast<U128>(sigma_) * v),
                    2 * static_cast<U128>(sigma_) * sigma_);
  }

  RandomStream& random_;
  const uint64_t sigma_;
  const double inverse_;
  const double* const table_;
};

template <Path path>
void AddSamples(RandomStream& random, uint64_t sigma, std::span<int64_t> sum) {
  if (sigma == 0) return;
  Sampler<path> sampler(random, sigma);
  for (int64_t& s : sum) s += sampler.Next();
}

}  // namespace

void AddDiscreteGaussian(RandomStream& random, uint64_t sigma, std::span<int64_t> sum) {
  AddSamples<Path::kFiltered>(random, sigma, sum);
}

void AddDiscreteGaussianSlowly(RandomStream& random, uint64_t sigma, std::span<int64_t> sum) {
  AddSamples<Path::kSlow>(random, sigma, sum);
}

}  // namespace wisp::privacy
