// The parts of the exact sampler on chosen bits, where its decisions are close: compared with multi-precision
// arithmetic, integers, and figures of an independent program.
#include "runtime/privacy/noise/discrete_gaussian_sampler.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace wisp::privacy::discrete_gaussian_sampler_test {
namespace {

using Fast = GaussianSampler<GaussianPath::kFiltered>;
using Slow = GaussianSampler<GaussianPath::kSlow>;
using U128 = unsigned __int128;

constexpr int kRest = 63 - kCellBits;

RandomStream Seeded(uint64_t seed) { return RandomStream::Reproducible(seed, StreamPurpose::kNoise); }

TEST(CellTable, HoldsTheFiguresOfAnIndependentProgram) {  // 120 decimal digits, in Python
  for (const auto& [v, threshold, accept] :
       std::vector<std::tuple<size_t, uint64_t, int>>{{0, 0x326f92a06d5dc74, 4094},
                                                      {1, 0x64d8d7b3619f4e6, 4090},
                                                      {31, 0x56ec65ecf82ad318, 3971},
                                                      {32, 0x58d5da295cb1edfb, 3968},
                                                      {100, 0x7fc9761103dc4914, 3713},
                                                      {200, 0x7fffffff36b367dd, 3367},
                                                      {250, 0x7fffffffffff503a, 3207},
                                                      {290, 0x7ffffffffffffffe, 3084}}) {
    EXPECT_EQ(kCellTable.threshold[v], threshold) << v;
    EXPECT_EQ(kCellTable.accept[v], accept) << v;
  }
}

// Multi-precision arithmetic decides 63 bits below and above a threshold without a further bit; equal bits need more.
TEST(CellTable, ThresholdsAreTheTrueOnes) {
  auto stream = Seeded(83);
  HalfGaussian slow(kCellsPerSigma);
  for (size_t v = 0; v + 1 < CellTable::kCells; ++v) {
    const uint64_t threshold = kCellTable.threshold[v];
    const uint64_t position = stream.position();
    if (threshold > (v == 0 ? 0 : kCellTable.threshold[v - 1]) + 1) {
      LazyUniform below(stream, (threshold - 1) << 1, 63);
      ASSERT_EQ(slow.Draw(below), v);
    }
    if (threshold + 1 < kCellTable.threshold[v + 1]) {
      LazyUniform above(stream, (threshold + 1) << 1, 63);
      ASSERT_EQ(slow.Draw(above), v + 1);
    }
    ASSERT_EQ(stream.position(), position) << v;
    LazyUniform at(stream, threshold << 1, 63);
    const uint64_t cell = slow.Draw(at);
    ASSERT_GE(cell, v);
    if (v < 270) {
      ASSERT_LE(cell, v + 1);  // further out several thresholds may share their 63 bits
    }
    ASSERT_GT(stream.position(), position);
  }
  LazyUniform last(stream, ~uint64_t{0}, 63);
  EXPECT_GE(slow.Draw(last), CellTable::kCells - 1);
}

TEST(CellTable, AcceptsNoMoreThanTheFarEndOfTheCell) {
  for (size_t v = 0; v < CellTable::kCells; ++v) {
    const double least = ExpNegative(2 * v + 1, 2 * kCellsPerSigma * kCellsPerSigma) * (1 << kAcceptBits);
    EXPECT_LE(kCellTable.accept[v], least) << v;
    EXPECT_GT(kCellTable.accept[v] + 1, least) << v;
  }
}

// All possible first bits: the thresholds decide most of them, and only those equal to a threshold's take a further
// word.
TEST(DrawCell, EveryPrefix) {
  auto stream = Seeded(89);
  Fast fast(stream, 1000);
  std::vector<uint64_t> cut;
  for (uint64_t t : kCellTable.threshold) cut.push_back(t >> kRest);
  size_t undecided = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << kCellBits; ++bits) {
    const auto at = std::lower_bound(cut.begin(), cut.end(), bits);
    const uint64_t position = stream.position(), v = fast.DrawCell(bits),
                   first = static_cast<uint64_t>(at - cut.begin());
    if (*at != bits) {
      ASSERT_EQ(v, first) << bits;
      ASSERT_EQ(stream.position(), position) << bits;
    } else {
      ++undecided;
      ASSERT_GE(v, first) << bits;
      ASSERT_GT(stream.position(), position) << bits;
    }
  }
  EXPECT_EQ(undecided, static_cast<size_t>(std::unique(cut.begin(), cut.end()) - cut.begin()));
}

TEST(DrawCell, CloseBitsGiveTheSameCellOnEveryPath) {
  auto fast_stream = Seeded(97), slow_stream = Seeded(97);
  Fast fast(fast_stream, 1000);
  Slow slow(slow_stream, 1000);
  for (int round = 0; round < 20; ++round) {
    for (size_t v = 0; v < CellTable::kCells; ++v) {
      for (int off = -1; off <= 1; ++off) {
        const uint64_t bits = std::min((kCellTable.threshold[v] >> kRest) + off, (uint64_t{1} << kCellBits) - 1);
        ASSERT_EQ(fast.DrawCell(bits), slow.DrawCell(bits)) << bits;
        ASSERT_EQ(fast_stream.position(), slow_stream.position()) << bits;
      }
    }
  }
}

// The mean over the following bits is the exact probability: 63 bits of a threshold against the share of words below
// it.
TEST(DrawCell, CloseBitsFallBelowTheThresholdAsOftenAsItSays) {
  auto stream = Seeded(101);
  Fast fast(stream, 1000);
  for (size_t v : {0, 5, 17, 40}) {
    constexpr double n = 20000;
    double below = 0;
    for (int i = 0; i < n; ++i) below += fast.DrawCell(kCellTable.threshold[v] >> kRest) <= v;
    const double p = static_cast<double>(kCellTable.threshold[v] & ((uint64_t{1} << kRest) - 1)) /
                     static_cast<double>(uint64_t{1} << kRest);
    EXPECT_LT(std::abs(below - n * p), 4.9 * std::sqrt(n * p * (1 - p)) + 1) << v;
  }
}

// Every x >= 0 has one cell and one place in it, and x = 0 is the only one whose sign does not count. Exact integers.
TEST(Locate, IsABijectionAndSplitsTheExponent) {
  for (uint64_t sigma : {1, 2, 3, 31, 32, 33, 63, 64, 65, 1000, 1027}) {
    auto stream = Seeded(1);
    const Fast sampler(stream, sigma);
    constexpr uint64_t kCells = 320;
    std::vector<int> hits(kCells * sigma / kCellsPerSigma, 0);
    for (uint64_t v = 0; v < kCells; ++v) {
      for (uint64_t u = 0; u < (sigma + kCellsPerSigma - 1) / kCellsPerSigma; ++u) {
        const auto [x, y] = sampler.Locate(v, u);
        const uint64_t scaled = kCellsPerSigma * static_cast<uint64_t>(x);
        ASSERT_EQ(v * sigma * v * sigma + y * (y + 2 * v * sigma), scaled * scaled);
        if (y >= sigma) continue;
        ASSERT_LT(static_cast<size_t>(x), hits.size());
        ++hits[static_cast<size_t>(x)];
      }
    }
    for (int h : hits) ASSERT_EQ(h, 1) << "sigma " << sigma;
  }
}

TEST(Locate, HoldsTheLargestSigma) {
  auto stream = Seeded(1);
  constexpr uint64_t kSigma = (uint64_t{1} << 50) - 1;
  const Fast sampler(stream, kSigma);
  for (uint64_t v : {uint64_t{291}, uint64_t{1} << 15}) {  // the latter has a chance of exp(-2^19)
    const auto [x, y] = sampler.Locate(v, 12345);
    EXPECT_EQ(static_cast<U128>(x) * kCellsPerSigma, static_cast<U128>(v) * kSigma + y);
    EXPECT_LT(y, kCellsPerSigma * 12346);
  }
}

TEST(FilterExp, IsWithinItsError) {
  for (uint64_t i = 0; i < 300; ++i)
    EXPECT_NEAR(FilterExp(static_cast<double>(i) / 1000), ExpNegative(i, 1000), 0x1p-48) << i;
}

TEST(Accept, DoublePrecisionIsWithinItsError) {
  static_assert(Fast::kError >= 0x1p-40);
  auto places = Seeded(109);
  for (uint64_t sigma : {uint64_t{3}, uint64_t{1000}, (uint64_t{1} << 20) - 3}) {
    auto stream = Seeded(1);
    const Fast sampler(stream, sigma);
    for (int round = 0; round < 1000; ++round) {
      const uint64_t v = places.UniformBelow(CellTable::kCells),
                     y = round % 8 == 0 ? sigma - 1 : places.UniformBelow(sigma);
      ASSERT_NEAR(sampler.Acceptance(v, y), ExpNegative(y * (y + 2 * v * sigma), 2048 * sigma * sigma), 0x1p-48)
          << sigma << ' ' << v << ' ' << y;
    }
  }
}

// Multi-precision continues with the bits that were undecided in double precision: other bits would not have the law.
TEST(LazyBits, HandOnTheWordThatWasDrawn) {
  auto stream = Seeded(5);
  const uint64_t next = Seeded(5).NextU64();
  LazyBits bits{0xabc, kAcceptBits};
  EXPECT_EQ(bits.ToUniform(stream).digits(), std::vector<uint64_t>{0xabcull << 52});
  EXPECT_EQ(bits.DrawNext(stream), next);
  const LazyUniform w = bits.ToUniform(stream);
  EXPECT_EQ(w.num_bits(), 76u);
  EXPECT_EQ(w.digits(), (std::vector<uint64_t>{0xabcull << 52 | next >> 12, next << 52}));
  EXPECT_EQ(stream.position(), 1u);
}

// Bits near exp(-g), from its cell's lower bound on: every path gives the same answer with the same number of words.
TEST(Accept, CloseBitsGiveTheSameAnswerOnEveryPath) {
  size_t extended = 0;
  for (uint64_t sigma : {uint64_t{1}, uint64_t{7}, uint64_t{1024}, (uint64_t{1} << 30) + 3222, uint64_t{1} << 50}) {
    auto fast_stream = Seeded(sigma), slow_stream = Seeded(sigma), places = Seeded(sigma + 1);
    Fast fast(fast_stream, sigma);
    Slow slow(slow_stream, sigma);
    for (int round = 0; round < 500; ++round) {
      const uint64_t v = round % 3 == 0 ? places.UniformBelow(CellTable::kCells + 20) : places.UniformBelow(64);
      const uint64_t y = round % 8 == 0 ? sigma - 1 : round % 8 == 1 ? 0 : places.UniformBelow(sigma);
      const double t = static_cast<double>(y) / static_cast<double>(sigma);
      const double p = std::exp(-t * (2 * static_cast<double>(v) + t) / 2048);
      for (const int64_t near : {static_cast<int64_t>(p * (1 << kAcceptBits)),
                                 static_cast<int64_t>(std::exp(-(2.0 * v + 1) / 2048) * 4096)}) {
        for (int64_t off = -1; off <= 1; ++off) {
          const uint64_t bits = static_cast<uint64_t>(std::clamp<int64_t>(near + off, 0, (1 << kAcceptBits) - 1));
          const uint64_t position = fast_stream.position();
          ASSERT_EQ(fast.Accept(v, y, bits), slow.Accept(v, y, bits)) << sigma << ' ' << v << ' ' << y << ' ' << bits;
          ASSERT_EQ(fast_stream.position(), slow_stream.position()) << sigma << ' ' << v << ' ' << y << ' ' << bits;
          extended += fast_stream.position() != position;
        }
      }
    }
  }
  EXPECT_GT(extended, 1000u);
}

TEST(Accept, CloseBitsAreBelowAsOftenAsTheExponentialSays) {
  auto stream = Seeded(103);
  constexpr uint64_t kSigma = 1 << 20;
  Fast fast(stream, kSigma);
  for (const auto& [v, y] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, kSigma - 1}, {20, 700001}, {41, 123456}, {150, kSigma / 2}}) {
    const double scaled = ExpNegative(y * (y + 2 * v * kSigma), 2048 * kSigma * kSigma) * (1 << kAcceptBits);
    const double p = scaled - std::floor(scaled), n = 20000;
    double accepted = 0;
    for (int i = 0; i < n; ++i) accepted += fast.Accept(v, y, static_cast<uint64_t>(scaled));
    EXPECT_LT(std::abs(accepted - n * p), 4.9 * std::sqrt(n * p * (1 - p)) + 1) << v << ' ' << y;
  }
}

// The whole sampling again, from the words themselves: the use of each bit, and the order in which further ones are
// drawn.
int64_t SampleInPlainCode(RandomStream& words, uint64_t sigma) {
  const uint64_t range = (sigma + 31) / 32;
  for (;;) {
    const uint64_t word = words.NextU64();
    uint64_t u;
    if (range <= uint64_t{1} << 28) {
      const uint64_t product = (word >> 32) * range;
      if (product % (uint64_t{1} << 32) < (uint64_t{1} << 32) % range) continue;
      u = product >> 32;
    } else {
      u = words.UniformBelow(range);
    }
    const uint64_t prefix = word >> 13 & 0x7ffff;
    size_t v = 0;
    while (prefix > kCellTable.threshold[v] >> 44) ++v;
    if (prefix == kCellTable.threshold[v] >> 44) {
      const uint64_t all = prefix << 44 | words.NextU64() >> 20;
      while (all > kCellTable.threshold[v]) ++v;
    }
    const U128 start = static_cast<U128>(v) * sigma;
    const int64_t x = static_cast<int64_t>((start + 31) / 32 + u);
    if (32 * static_cast<U128>(x) >= start + sigma) continue;
    const long double z = static_cast<long double>(x) / static_cast<long double>(sigma),
                      cell = static_cast<long double>(v) / 32;
    const long double p = std::exp((cell + z) * (cell - z) / 2);
    const uint64_t bits = word >> 1 & 0xfff;
    if (bits > p * 4096) continue;
    if (bits + 1 > p * 4096 &&
        static_cast<long double>(bits) + static_cast<long double>(words.NextU64()) * 0x1p-64L > p * 4096)
      continue;
    if (x == 0 && word % 2 == 1) continue;
    return word % 2 == 1 ? -x : x;
  }
}

TEST(GaussianSampler, IsItsOwnDescription) {
  for (uint64_t sigma : {uint64_t{1}, uint64_t{33}, uint64_t{5000}, (uint64_t{1} << 30) + 3222, (uint64_t{3} << 31) + 1,
                         uint64_t{1} << 33, (uint64_t{1} << 33) + 1, uint64_t{1} << 50}) {
    auto stream = Seeded(107 + sigma), words = Seeded(107 + sigma);
    Fast sampler(stream, sigma);
    for (int i = 0; i < 60000; ++i)
      ASSERT_EQ(sampler.Next(), SampleInPlainCode(words, sigma)) << "sigma " << sigma << ", sample " << i;
    EXPECT_EQ(stream.position(), words.position());
  }
}

// The tests above have too few samples for this: the law of a round, summed exactly from table, places and
// exponentials.
TEST(GaussianSampler, ARoundHasTheExactLaw) {
  constexpr uint64_t kSigma = 70;
  auto stream = Seeded(1);
  const Fast sampler(stream, kSigma);
  std::vector<long double> mass(10 * kSigma, 0);
  for (uint64_t v = 0; v < CellTable::kCells; ++v) {
    const uint64_t cell = kCellTable.threshold[v] - (v == 0 ? 0 : kCellTable.threshold[v - 1]);
    for (uint64_t u = 0; u < (kSigma + kCellsPerSigma - 1) / kCellsPerSigma; ++u) {
      const auto [x, y] = sampler.Locate(v, u);
      if (y >= kSigma) continue;
      const long double p = std::exp(-static_cast<long double>(y * (y + 2 * v * kSigma)) / (2048.0L * kSigma * kSigma));
      mass[static_cast<size_t>(x)] += static_cast<long double>(cell) * p;
    }
  }
  for (uint64_t x = 0; x < 6 * kSigma; ++x) {
    const long double expected = mass[0] * std::exp(-static_cast<long double>(x * x) / (2.0L * kSigma * kSigma));
    // The table's 63 bits leave 2^-63 / 4e-10 at 6 sigma.
    EXPECT_NEAR(static_cast<double>(mass[x] / expected), 1, 1e-9) << x;
  }
}

}  // namespace
}  // namespace wisp::privacy::discrete_gaussian_sampler_test
