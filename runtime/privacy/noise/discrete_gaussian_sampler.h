// One sample of the discrete Gaussian. Internal to runtime/privacy: discrete_gaussian.cc loops over it, tests take it
// apart.
//
// It is a rejection sampler. Its structure is that of Karney ("Sampling Exactly from the Normal Distribution", 2016,
// section 4) and of Canonne, Kamath and Steinke: a coarse part from a fixed distribution, uniform low digits,
// acceptance by an exponential. Cells are 1/32 of sigma wide, where theirs are sigma wide, and are accepted with
// probability 0.98, where theirs have 0.71 and 0.48. With s = 32, sigma any integer:
//
//   1. v >= 0 with probability proportional to exp(-v^2 / (2 s^2))
//   2. u uniform on {0, ..., ceil(sigma / s) - 1}
//      x = ceil(v sigma / s) + u;  y = s x - v sigma >= 0;  y >= sigma: x is in the next cell, start again
//   3. accept with probability exp(-g), g = y (y + 2 v sigma) / (2 s^2 sigma^2); else start again
//   4. a random sign; -0 starts again
//
// Correctness. Every integer x >= 0 lies in one cell v sigma <= s x < (v + 1) sigma, and has one u there, in the range
// that is drawn from. v^2 / (2 s^2) + g = (v sigma + y)^2 / (2 s^2 sigma^2) = x^2 / (2 sigma^2), so a round ends in +x,
// and in -x, each with a probability proportional to exp(-x^2 / (2 sigma^2)), and in 0 likewise by rule 4. Rounds are
// independent, so an accepted sample has the desired distribution. These are integers only: no rounding so far.
//
// Source of the bits. A round takes one word, and almost never more: 32 bits for u (Lemire's unbiased product, with a
// word of its own above 2^28), the first 19 bits of the uniform real of step 1, the first 12 of that of step 3, 1 for
// the sign. All are disjoint, hence independent.
//
// Neither short prefixes nor floating point change the distribution. Steps 1 and 3 ask whether a uniform real W is
// below a real number p. W is never rounded: if the bits at hand do not decide, 64 more are drawn. W known to m bits
// lies in [w, w + 2^-m), and
//   step 1     p is a threshold of discrete_gaussian_table.h; prefixes that are equal decide nothing
//   step 3     kCellTable.accept holds a lower bound of exp(-g) for the whole cell: below it, W < p. Otherwise p' is
//              computed in double precision with |p' - p| <= kError: if w + 2^-m <= p' - kError then W < p; if
//              w >= p' + kError then W >= p
// The multi-precision code of discrete_gaussian_compare.h decides the rest, for the same W. So every answer
// is [W < p] itself, the event of probability exactly p, whichever path gave it: prefixes, table and kError affect the
// time, not the distribution.
//
// kError. With h = 2^-53, each operation has a relative error of at most h (IEEE 754, no contraction of a * b + c, see
// CMakeLists.txt). inverse = 1 / sigma: h (sigma <= 2^50 is exact, so are y < sigma and 2 v). t = y * inverse: 2 h. 2 v
// + t: 3 h. g = t (2 v + t) / (2 s^2): 6 h to first order, 7 h in all; g < 0.3. The series of exp(-g) is cut off after
// g^11 / 11!, at 0.3^12 / 12! < 2^-49, and each of its steps rounds thrice numbers of at most 1, weighted by powers of
// g: below 6 h. So |p' - p| < 2^-48. Taking kError = 2^-40 leaves a factor of 256 for an error in this paragraph.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_SAMPLER_H_
#define WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_SAMPLER_H_

#include <cstddef>
#include <cstdint>

#include "runtime/privacy/noise/discrete_gaussian_compare.h"
#include "runtime/privacy/noise/discrete_gaussian_table.h"
#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

// kSlow uses multi-precision arithmetic every time. The samples, and the bits drawn for them, are the same.
enum class GaussianPath { kFiltered, kSlow };

static_assert(32 + kCellBits + kAcceptBits + 1 == 64, "one word serves a round");

// exp(-g) for 0 <= g < 0.3 within 2^-48.
inline double FilterExp(double g) {
  double sum = 1;
  for (int i = 11; i > 0; --i) sum = 1 - g * sum / i;
  return sum;
}

// The known bits of a uniform real W: `count` of them, and a further word if one was drawn. It allocates only when it
// is passed to the multi-precision code.
struct LazyBits {
  uint64_t bits;
  int count;
  bool has_next = false;
  uint64_t next = 0;

  uint64_t DrawNext(RandomStream& random) {
    has_next = true;
    return next = random.NextU64();
  }
  LazyUniform ToUniform(RandomStream& random) const {
    LazyUniform w(random, bits << (64 - count), count);
    if (has_next) w.Append(next);
    return w;
  }
};

template <GaussianPath path>
class GaussianSampler {
 public:
  static constexpr double kError = 0x1p-40;
  // Largest ceil(sigma / s) that takes its u from 32 bits: above it too many products would be rejected.
  static constexpr uint64_t kMaxNarrow = uint64_t{1} << 28;

  // sigma in 1 .. kMaxDiscreteGaussianSigma.
  GaussianSampler(RandomStream& random, uint64_t sigma)
      : random_(random),
        sigma_(sigma),
        range_((sigma + kCellsPerSigma - 1) / kCellsPerSigma),
        biased_below_((uint64_t{1} << 32) % range_) {}

  [[gnu::always_inline]] inline int64_t Next() {  // 107 instructions instead of 124, stream included
    for (;;) {
      const uint64_t word = random_.NextU64();
      uint64_t u;
      if (range_ <= kMaxNarrow) {
        const uint64_t product = (word >> 32) * range_;
        if (static_cast<uint32_t>(product) < biased_below_) [[unlikely]]
          continue;
        u = product >> 32;
      } else {
        u = random_.UniformBelow(range_);
      }
      const uint64_t v = DrawCell(word >> (kAcceptBits + 1) & Ones(kCellBits));
      const Place place = Locate(v, u);
      if (place.y >= sigma_ || !Accept(v, place.y, word >> 1 & Ones(kAcceptBits))) [[unlikely]]
        continue;
      // A branch on the sign alone would be mispredicted every second time.
      const int64_t sign = -static_cast<int64_t>(word & 1);  // 0 or -1
      if ((place.x | ~sign) == 0) [[unlikely]]               // -0
        continue;
      return (place.x ^ sign) - sign;
    }
  }

  // Step 1, from the first kCellBits bits of its W.
  uint64_t DrawCell(uint64_t bits) {
    if constexpr (path == GaussianPath::kFiltered) {
      constexpr int kRest = 63 - kCellBits;
      uint64_t v = kCellTable.guide[bits >> (kCellBits - kGuideBits)];
      v += bits > kCellTable.threshold[v] >> kRest;
      while (bits > kCellTable.threshold[v] >> kRest) ++v;
      if (bits != kCellTable.threshold[v] >> kRest) [[likely]]
        return v;
    }
    return DrawCloseCell(bits);
  }

  // Step 2.
  struct Place {
    int64_t x;
    uint64_t y;
  };
  Place Locate(uint64_t v, uint64_t u) const {
    const unsigned __int128 start = static_cast<unsigned __int128>(v) * sigma_;
    const uint64_t y = ((0 - static_cast<uint64_t>(start)) & (kCellsPerSigma - 1)) + kCellsPerSigma * u;
    return {static_cast<int64_t>((start + y) / kCellsPerSigma), y};
  }

  // Step 3, from the first kAcceptBits bits of its W.
  bool Accept(uint64_t v, uint64_t y, uint64_t bits) {
    if constexpr (path == GaussianPath::kFiltered) {
      if (v < CellTable::kCells && bits < kCellTable.accept[v]) [[likely]]
        return true;
    }
    return AcceptByExp(v, y, bits);
  }

  // exp(-g) of step 3 within kError, for a v of the table and y < sigma.
  double Acceptance(uint64_t v, uint64_t y) const {
    const double t = static_cast<double>(y) * (1.0 / static_cast<double>(sigma_));
    return FilterExp(t * (2 * static_cast<double>(v) + t) * (0.5 / (kCellsPerSigma * kCellsPerSigma)));
  }

 private:
  static constexpr uint64_t Ones(int n) { return (uint64_t{1} << n) - 1; }

  [[gnu::noinline]] uint64_t DrawCloseCell(uint64_t bits) {
    LazyBits bits_of_w{bits, kCellBits};
    if constexpr (path == GaussianPath::kFiltered) {
      const uint64_t w = bits << (63 - kCellBits) | bits_of_w.DrawNext(random_) >> (kCellBits + 1);
      uint64_t v = kCellTable.guide[bits >> (kCellBits - kGuideBits)];
      while (v + 1 < CellTable::kCells && w > kCellTable.threshold[v]) ++v;
      if (w != kCellTable.threshold[v]) return v;
    }
    LazyUniform w = bits_of_w.ToUniform(random_);
    return quantile_.Draw(w);
  }

  [[gnu::noinline]] bool AcceptByExp(uint64_t v, uint64_t y, uint64_t bits) {
    if (y == 0) return true;  // W < 1
    LazyBits bits_of_w{bits, kAcceptBits};
    if constexpr (path == GaussianPath::kFiltered) {
      if (v < CellTable::kCells) {
        constexpr double kUnit = 1.0 / (1 << kAcceptBits);
        const double p = Acceptance(v, y);
        double w = static_cast<double>(bits) * kUnit;
        if (w + kUnit <= p - kError) return true;
        if (w >= p + kError) return false;
        // p certainly lies among these bits: multi-precision would draw more as well.
        if (w < p - kError && w + kUnit > p + kError) {
          w += static_cast<double>(bits_of_w.DrawNext(random_) >> (11 + kAcceptBits)) * 0x1p-53;
          if (w + 0x1p-53 <= p - kError) return true;
          if (w >= p + kError) return false;
        }
      }
    }
    LazyUniform w = bits_of_w.ToUniform(random_);
    return BelowExp(w, static_cast<unsigned __int128>(y) * (y + 2 * static_cast<unsigned __int128>(v) * sigma_),
                    2 * kCellsPerSigma * kCellsPerSigma * static_cast<unsigned __int128>(sigma_) * sigma_);
  }

  RandomStream& random_;
  const uint64_t sigma_;
  const uint64_t range_;
  const uint64_t biased_below_;  // 2^32 mod range
  HalfGaussian quantile_{kCellsPerSigma};
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_SAMPLER_H_
