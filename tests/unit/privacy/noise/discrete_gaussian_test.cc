// Compares the exact sampler with the exact distribution. Seeds are fixed; alpha = 1e-6 for each statistical test.
#include "runtime/privacy/noise/discrete_gaussian.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/privacy/noise/discrete_gaussian_compare.h"
#include "runtime/privacy/noise/discrete_gaussian_table.h"

namespace wisp::privacy::discrete_gaussian_test {
namespace {

constexpr double kDeviations = 4.9;  // two-sided alpha of a normal: 9.6e-7

std::vector<int64_t> Draw(uint64_t seed, uint64_t sigma, size_t n) {
  testing::Test::RecordProperty("seed", std::to_string(seed));
  auto stream = RandomStream::Reproducible(seed, StreamPurpose::kNoise);
  std::vector<int64_t> samples(n, 0);
  AddDiscreteGaussian(stream, sigma, samples);
  return samples;
}

// Pr[chi^2_k > bound] = 1e-6, by Wilson and Hilferty.
double ChiSquareBound(double k) { return k * std::pow(1 - 2 / (9 * k) + 4.753 * std::sqrt(2 / (9 * k)), 3); }

double Weight(int64_t x, double sigma) {
  return std::exp(-static_cast<double>(x) * static_cast<double>(x) / (2 * sigma * sigma));
}

double TotalWeight(double sigma) {
  double total = 0;
  const int64_t reach = static_cast<int64_t>(40 * sigma) + 1;
  for (int64_t y = -reach; y <= reach; ++y) total += Weight(y, sigma);
  return total;
}

// Pearson's statistic over single integers; those expected fewer than 10 times are pooled into two tails.
void ExpectMatchesPmf(const std::vector<int64_t>& samples, uint64_t sigma) {
  const double n = static_cast<double>(samples.size());
  const double sigma_real = static_cast<double>(sigma), total = TotalWeight(sigma_real);
  const auto pmf = [&](int64_t x) { return Weight(x, sigma_real) / total; };
  std::map<int64_t, double> counts;
  for (int64_t x : samples) ++counts[x];
  int64_t edge = 0;
  while (n * pmf(edge + 1) >= 10) ++edge;
  double statistic = 0, inside = 0, seen_below = 0, seen_above = 0;
  for (const auto& [x, count] : counts) (x < -edge ? seen_below : seen_above) += x < -edge || x > edge ? count : 0;
  for (int64_t x = -edge; x <= edge; ++x) {
    const double expected = n * pmf(x);
    inside += expected;
    statistic += (counts[x] - expected) * (counts[x] - expected) / expected;
  }
  const double tail = (n - inside) / 2;
  statistic += (seen_below - tail) * (seen_below - tail) / tail + (seen_above - tail) * (seen_above - tail) / tail;
  const double cells = static_cast<double>(2 * edge + 3);
  EXPECT_LT(statistic, ChiSquareBound(cells - 1)) << "sigma " << sigma << ", " << cells << " cells";
}

TEST(DiscreteGaussian, SmallSigmaMatchesExactProbabilities) {
  for (uint64_t sigma : {1, 2, 3, 5, 17, 31, 32, 33, 100}) ExpectMatchesPmf(Draw(100 + sigma, sigma, 400000), sigma);
}

// Private runs with a seed repeat on another processor: the filter's doubles decide nothing differently from the exact
// path.
TEST(DiscreteGaussian, SamplesAreTheSameOnEveryProcessor) {
  const auto fingerprint = [](uint64_t sigma) {
    uint64_t h = 0xcbf29ce484222325u;  // FNV-1a over the samples
    for (const int64_t x : Draw(21, sigma, 20000)) h = (h ^ static_cast<uint64_t>(x)) * 0x100000001b3u;
    return h;
  };
  EXPECT_EQ(fingerprint(1), 18253275850981973498u);
  EXPECT_EQ(fingerprint(1000), 4120483248639996303u);
  EXPECT_EQ(fingerprint(uint64_t{1} << 40), 2102125866033976135u);
}

// Half cells, so that neither the law of the cell, nor that of the place in it, nor the acceptance can be off by a
// percent.
TEST(DiscreteGaussian, EveryHalfCellHasItsShare) {
  constexpr uint64_t kSigma = (uint64_t{1} << 30) + 3222;
  constexpr int kPerSigma = 2 * kCellsPerSigma, kBins = 3 * kPerSigma;  // for each sign, up to 3 sigma
  std::vector<uint64_t> counts(2 * kBins + 1, 0);
  std::vector<double> law(counts.size(), 0);
  const auto bin = [&](uint64_t below) { return below < kBins ? below : static_cast<uint64_t>(kBins); };
  for (int64_t x : Draw(47, kSigma, 3000000)) {
    const uint64_t b = bin(static_cast<uint64_t>(std::abs(x)) * kPerSigma / kSigma);
    ++counts[b == kBins ? 2 * kBins : 2 * b + (x < 0)];
  }
  for (int b = 0; b < kBins; ++b) {
    const double from = static_cast<double>(b) / kPerSigma / std::sqrt(2.0),
                 to = static_cast<double>(b + 1) / kPerSigma / std::sqrt(2.0);
    law[2 * b] = law[2 * b + 1] = (std::erf(to) - std::erf(from)) / 2;
  }
  law[2 * kBins] = std::erfc(3 / std::sqrt(2.0));
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = 3000000 * law[i], off = static_cast<double>(counts[i]) - expected;
    statistic += off * off / expected;
  }
  EXPECT_LT(statistic, ChiSquareBound(2 * kBins));
}

// 2^32 is not a multiple of 3: a missing rejection of a product shows at a range of 3 * 2^26.
TEST(DiscreteGaussian, PlacesInTheCellAreUnbiased) {
  constexpr uint64_t kRange = uint64_t{3} << 26;
  double residues[3] = {};
  for (int64_t x : Draw(43, kCellsPerSigma * kRange, 300000)) ++residues[static_cast<uint64_t>(std::abs(x)) % 3];
  double statistic = 0;
  for (double r : residues) statistic += (r - 100000) * (r - 100000) / 100000;
  EXPECT_LT(statistic, ChiSquareBound(2));
}

TEST(DiscreteGaussian, SlowPathMatchesExactProbabilitiesByItself) {
  auto stream = RandomStream::Reproducible(7, StreamPurpose::kNoise);
  std::vector<int64_t> samples(15000, 0);
  AddDiscreteGaussianSlowly(stream, 40, samples);
  ExpectMatchesPmf(samples, 40);
}

TEST(DiscreteGaussian, EveryPathGivesTheSameSamplesForTheSameBits) {
  for (uint64_t sigma :
       {uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{1024}, uint64_t{1000003}, (uint64_t{1} << 30) + 12345,
        uint64_t{1} << 33, (uint64_t{1} << 33) + 1, (uint64_t{1} << 40) - 1, kMaxDiscreteGaussianSigma}) {
    auto fast_stream = RandomStream::Reproducible(sigma, StreamPurpose::kNoise);
    auto slow_stream = RandomStream::Reproducible(sigma, StreamPurpose::kNoise);
    std::vector<int64_t> fast(1500, 0), slow(1500, 0);
    AddDiscreteGaussian(fast_stream, sigma, fast);
    AddDiscreteGaussianSlowly(slow_stream, sigma, slow);
    EXPECT_EQ(fast, slow) << "sigma " << sigma;
    EXPECT_EQ(fast_stream.position(), slow_stream.position());
  }
}

TEST(DiscreteGaussian, LargeSigmaHasItsMoments) {
  for (uint64_t sigma : {uint64_t{1} << 20, (uint64_t{3} << 29) + 1, uint64_t{1} << 40}) {
    constexpr double n = 1000000;
    double mean = 0, square = 0, third = 0, fourth = 0;
    for (int64_t x : Draw(sigma, sigma, static_cast<size_t>(n))) {
      const double z = static_cast<double>(x) / static_cast<double>(sigma);
      mean += z / n;
      square += z * z / n;
      third += z * z * z / n;
      fourth += z * z * z * z / n;
    }
    EXPECT_LT(std::abs(mean), kDeviations / std::sqrt(n));
    EXPECT_LT(std::abs(square - 1), kDeviations * std::sqrt(2 / n));
    EXPECT_LT(std::abs(third), kDeviations * std::sqrt(15 / n));
    EXPECT_LT(std::abs(fourth - 3), kDeviations * std::sqrt(96 / n));
  }
}

// Kolmogorov and Smirnov at alpha = 1e-6: D sqrt(n) < 2.694.
TEST(DiscreteGaussian, LargeSigmaIsNormalInDistribution) {
  constexpr uint64_t kSigma = (uint64_t{1} << 30) + 7;
  auto samples = Draw(53, kSigma, 400000);
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  double distance = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double cdf = 0.5 * std::erfc(-static_cast<double>(samples[i]) / static_cast<double>(kSigma) / std::sqrt(2.0));
    distance = std::max(
        {distance, std::abs(cdf - static_cast<double>(i) / n), std::abs(cdf - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(distance * std::sqrt(n), 2.694);
}

TEST(DiscreteGaussian, TailsHaveTheirWeight) {
  constexpr uint64_t kSigma = uint64_t{1} << 30;
  const auto samples = Draw(59, kSigma, 3000000);
  const double n = static_cast<double>(samples.size());
  for (double z : {1.0, 2.0, 3.0, 4.0}) {
    const double p = std::erfc(z / std::sqrt(2.0));
    const double hits = static_cast<double>(std::count_if(samples.begin(), samples.end(), [z](int64_t x) {
      return std::abs(static_cast<double>(x)) > z * static_cast<double>(kSigma);
    }));
    EXPECT_LT(std::abs(hits - n * p), kDeviations * std::sqrt(n * p) + 1) << z;
  }
}

// Floating-point mechanisms leak if the noise is coarser than the grid, or if the grid shows through.
TEST(DiscreteGaussian, LowBitsAreUniformForLargeSigma) {
  for (uint64_t sigma : {uint64_t{1} << 30, (uint64_t{1} << 30) + 1, uint64_t{1} << 44}) {
    std::vector<double> residues(16, 0);
    const auto samples = Draw(61 + sigma, sigma, 320000);
    for (int64_t x : samples) ++residues[static_cast<uint64_t>(x) & 15];
    double statistic = 0;
    for (double r : residues) statistic += (r - 20000) * (r - 20000) / 20000;
    EXPECT_LT(statistic, ChiSquareBound(15)) << sigma;
  }
}

TEST(DiscreteGaussian, EveryElementHasNoiseOfItsOwn) {
  constexpr uint64_t kSigma = uint64_t{1} << 40;
  auto stream = RandomStream::Reproducible(71, StreamPurpose::kNoise),
       one_by_one = RandomStream::Reproducible(71, StreamPurpose::kNoise);
  std::vector<int64_t> all;
  for (size_t n = 0; n <= 100; ++n) {
    std::vector<int64_t> sum(n, 0), single(n, 0);
    AddDiscreteGaussian(stream, kSigma, sum);
    for (int64_t& s : single) AddDiscreteGaussian(one_by_one, kSigma, std::span(&s, 1));
    EXPECT_EQ(sum, single);
    all.insert(all.end(), sum.begin(), sum.end());
  }
  for (int64_t& x : all) x = std::abs(x);
  all.push_back(0);
  std::sort(all.begin(), all.end());
  // two equal numbers, or a zero, have a chance of 2e-5
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(DiscreteGaussian, AddsToWhatIsThere) {
  const auto noise = Draw(67, 1000, 100);
  auto stream = RandomStream::Reproducible(67, StreamPurpose::kNoise);
  std::vector<int64_t> sum(100);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<int64_t>(i) * 1000000007;
  AddDiscreteGaussian(stream, 1000, sum);
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], noise[i] + static_cast<int64_t>(i) * 1000000007);
  AddDiscreteGaussian(stream, 1000, {});
  auto unchanged = sum;
  AddDiscreteGaussian(stream, 0, sum);
  EXPECT_EQ(sum, unchanged);
}

TEST(LazyUniform, ExtendsBitByBitWithoutGaps) {
  for (uint64_t seed = 0; seed < 16; ++seed) {  // the borrowed bit is 0 for some seeds and 1 for others
    const int bits = seed % 4 == 0 ? 12 : seed % 4 == 1 ? 64 : 63;
    auto stream = RandomStream::Reproducible(seed, StreamPurpose::kNoise),
         words = RandomStream::Reproducible(seed, StreamPurpose::kNoise);
    LazyUniform w(stream, 0x8010000000000001u, bits);
    w.Extend();
    w.Extend();
    const uint64_t a = words.NextU64(), b = words.NextU64();
    EXPECT_EQ(w.num_bits(), static_cast<size_t>(bits) + 128);
    if (bits == 64) {
      EXPECT_EQ(w.digits(), (std::vector<uint64_t>{0x8010000000000001u, a, b}));
    } else if (bits == 63) {
      EXPECT_EQ(w.digits(), (std::vector<uint64_t>{0x8010000000000000u | a >> 63, a << 1 | b >> 63, b << 1}));
    } else {
      EXPECT_EQ(w.digits(), (std::vector<uint64_t>{0x8010000000000000u | a >> 12, a << 52 | b >> 12, b << 52}));
    }
  }
}

// A word equal to the threshold's leading digit decides nothing; the next digits must. exp(-1/2) in hexadecimal:
// 0.9b4597e37cb04ff3 d675a35530cdd767 e347... (from an independent program, 120 decimal digits).
TEST(BelowExp, EqualDigitsAreDecidedByTheNext) {
  constexpr uint64_t kDigit0 = 0x9b4597e37cb04ff3, kDigit1 = 0xd675a35530cdd767;
  int below = 0, extended = 0;
  constexpr int kRounds = 400;
  for (uint64_t seed = 0; seed < kRounds; ++seed) {
    auto stream = RandomStream::Reproducible(seed, StreamPurpose::kNoise);
    const uint64_t next = RandomStream::Reproducible(seed, StreamPurpose::kNoise).NextU64();
    LazyUniform w(stream, kDigit0, 64);
    const bool answer = BelowExp(w, 1, 2);
    ASSERT_EQ(answer, next < kDigit1) << "seed " << seed;
    below += answer;
    extended += w.digits().size() > 1;
  }
  EXPECT_EQ(extended, kRounds);
  EXPECT_GT(below, 0);
  EXPECT_LT(below, kRounds);
  auto stream = RandomStream::Reproducible(1, StreamPurpose::kNoise);
  LazyUniform just_below(stream, kDigit0 - 1, 64), just_above(stream, kDigit0 + 1, 64);
  EXPECT_TRUE(BelowExp(just_below, 1, 2));
  EXPECT_FALSE(BelowExp(just_above, 1, 2));
  EXPECT_EQ(stream.position(), 0u);
}

TEST(BelowExp, ExponentZeroIsCertain) {
  auto stream = RandomStream::Reproducible(73, StreamPurpose::kNoise);
  LazyUniform w(stream, ~uint64_t{0}, 64);
  EXPECT_TRUE(BelowExp(w, 0, 5));
}

TEST(BelowExp, LargeExponentsComeOutAsTheirPower) {
  // exp(-44) = 2^-63.479: below 2^-63, above 2^-64, so of the words 0 and 1 only 0 is certainly below.
  auto stream = RandomStream::Reproducible(79, StreamPurpose::kNoise);
  LazyUniform zero(stream, 0, 64), two(stream, 2, 64);
  EXPECT_TRUE(BelowExp(zero, 44, 1));
  EXPECT_FALSE(BelowExp(two, 44, 1));
  LazyUniform again(stream, 1, 64);  // 1 * 2^-64 .. 2 * 2^-64 holds exp(-44) = 1.434 * 2^-64: bits decide
  BelowExp(again, 44, 1);
  EXPECT_GT(again.digits().size(), 1u);
  LazyUniform far(stream, 0, 64);
  EXPECT_FALSE(BelowExp(far, 1000000, 1));
}

TEST(ExpNegative, AgreesWithTheLibrary) {
  for (uint64_t i = 0; i <= 320; ++i) {
    const double expected = std::exp(-static_cast<double>(i) / 32);
    EXPECT_NEAR(ExpNegative(i, 32), expected, 4e-16 * expected) << i;
  }
}

}  // namespace
}  // namespace wisp::privacy::discrete_gaussian_test
