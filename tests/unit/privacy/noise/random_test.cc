// Random streams. Statistical tests use fixed seeds and alpha = 1e-6 each (5 standard deviations two-sided: 4.9).
#include "runtime/privacy/noise/random.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include "gtest/gtest.h"
#include "tests/unit/core/unseen_copy.h"

namespace wisp::privacy::random_test {
namespace {

constexpr double kDeviations = 4.9;

RandomStream Seeded(uint64_t seed) {
  testing::Test::RecordProperty("seed", std::to_string(seed));
  return RandomStream::Reproducible(seed, StreamPurpose::kNoise);
}

// Returns |hits / n - p| in standard deviations.
double Deviations(double hits, double n, double p) { return std::abs(hits - n * p) / std::sqrt(n * p * (1 - p)); }

TEST(RandomStream, ReproducibleSameSeedAndPurposeRepeats) {
  auto a = RandomStream::Reproducible(3, StreamPurpose::kSampling),
       b = RandomStream::Reproducible(3, StreamPurpose::kSampling);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(a.NextU64(), b.NextU64());
  EXPECT_FALSE(a.IsSecure());
}

TEST(RandomStream, ReproducibleFirstWordsAreFixedForEver) {
  // Seeds in papers and bug reports must keep their meaning. The numbers come from a plain ChaCha20 (20 rounds, counter
  // and nonce of 64 bits) in Python, with the key from hashlib.blake2b.
  auto stream = RandomStream::Reproducible(1, StreamPurpose::kSampling);
  EXPECT_EQ(stream.NextU64(), 7997852642004928918u);
  EXPECT_EQ(stream.NextU64(), 10372914272983492486u);
  ASSERT_TRUE(stream.Seek(1000).ok());
  EXPECT_EQ(stream.NextU64(), 4051615807257331762u);
}

TEST(RandomStream, OtherSeedOrPurposeGivesOtherBits) {
  std::set<uint64_t> words;
  size_t drawn = 0;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32, 1ull << 63}) {
    for (auto purpose : {StreamPurpose::kSampling, StreamPurpose::kNoise, StreamPurpose::kInitialisation,
                         StreamPurpose::kDropout, StreamPurpose::kDecoding, StreamPurpose::kCarriers}) {
      auto stream = RandomStream::Reproducible(seed, purpose);
      for (int i = 0; i < 1000; ++i, ++drawn) words.insert(stream.NextU64());
    }
  }
  EXPECT_EQ(words.size(), drawn);  // a collision of 24,000 words of 64 bits has probability 1e-11
}

TEST(RandomStream, SecureStreamsDiffer) {
  auto a = RandomStream::Secure(), b = RandomStream::Secure();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(a->IsSecure());
  std::set<uint64_t> words;
  for (int i = 0; i < 1000; ++i) {
    words.insert(a->NextU64());
    words.insert(b->NextU64());
  }
  EXPECT_EQ(words.size(), 2000u);
}

TEST(RandomStream, SecureWithoutEntropyIsAnErrorNotAWeakKey) {
  auto refused = RandomStream::SecureForTesting([](void*, size_t) {
    errno = ENOSYS;
    return -1;
  });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kIo);
  EXPECT_NE(refused.status().message().find("operating system"), std::string::npos);
}

TEST(RandomStream, DoesNotCopy) {
  static_assert(!std::is_copy_constructible_v<RandomStream> && !std::is_copy_assignable_v<RandomStream>);
  static_assert(std::is_nothrow_move_constructible_v<RandomStream>);
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
// Draws 600 words (beyond one buffer) in a child process and returns them.
std::vector<uint64_t> DrawInChild(RandomStream& stream) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    bool written = true;
    for (int i = 0; i < 600; ++i) {
      const uint64_t word = stream.NextU64();
      written = written && write(ends[1], &word, sizeof word) == sizeof word;
    }
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::vector<uint64_t> words;
  for (uint64_t word; read(ends[0], &word, sizeof word) == sizeof word;) words.push_back(word);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return words;
}
#endif

#ifdef __linux__
TEST(RandomStream, AStreamThatIsFreshenedIsAnotherInEachCopyOfTheMemory) {
  for (const bool freshened : {false, true}) {
    auto stream = RandomStream::Secure();
    ASSERT_TRUE(stream.ok());
    stream->NextU64();
    const auto words = [&] {
      if (freshened) stream->Freshen();
      std::vector<uint64_t> drawn;
      for (int i = 0; i < 600; ++i) drawn.push_back(stream->NextU64());
      return drawn;
    };
    const std::vector<uint64_t> other = test::InAnUnseenCopy(words), own = words();
    ASSERT_EQ(other.size(), 600u);
    size_t same = 0;
    for (size_t i = 0; i < own.size(); ++i) same += other[i] == own[i] ? 1 : 0;
    EXPECT_EQ(same, freshened ? 0u : 600u);  // the second case shows that this test sees the danger
  }
}

TEST(RandomStream, SecureForkedChildDrawsOtherNoise) {
  auto stream = RandomStream::Secure();
  ASSERT_TRUE(stream.ok());
  stream->NextU64();
  std::set<uint64_t> words;
  for (int child = 0; child < 2; ++child) {
    const auto drawn = DrawInChild(*stream);
    ASSERT_EQ(drawn.size(), 600u);
    words.insert(drawn.begin(), drawn.end());
  }
  for (int i = 0; i < 600; ++i) words.insert(stream->NextU64());
  EXPECT_EQ(words.size(), 1800u);
}

TEST(RandomStream, ReproducibleForkedChildDrawsTheSame) {
  auto stream = Seeded(5), same = Seeded(5);
  const auto drawn = DrawInChild(stream);
  ASSERT_EQ(drawn.size(), 600u);
  for (uint64_t word : drawn) ASSERT_EQ(word, same.NextU64());
}
#endif

TEST(RandomStream, SeekReturnsToAPosition) {
  for (uint64_t skip : {0, 1, 511, 512, 513, 1024, 5000}) {
    auto stream = Seeded(11);
    for (uint64_t i = 0; i < skip; ++i) stream.NextU64();
    ASSERT_EQ(stream.position(), skip);
    std::vector<uint64_t> expected;
    for (int i = 0; i < 700; ++i) expected.push_back(stream.NextU64());
    auto resumed = Seeded(11);
    ASSERT_TRUE(resumed.Seek(skip).ok());
    EXPECT_EQ(resumed.position(), skip);
    for (uint64_t word : expected) ASSERT_EQ(resumed.NextU64(), word) << "after " << skip;
  }
}

TEST(RandomStream, SeekPast32BitBlockCounterDoesNotWrap) {
  auto stream = Seeded(11);
  const uint64_t first = stream.NextU64();
  ASSERT_TRUE(stream.Seek((uint64_t{1} << 32) * 8).ok());  // block 2^32
  EXPECT_NE(stream.NextU64(), first);
}

TEST(RandomStream, SeekOfASecureStreamIsRefused) {
  auto stream = RandomStream::Secure();
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(stream->Seek(0).code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(stream->position(), 0u);
}

TEST(RandomStream, BitsAreBalanced) {
  auto stream = Seeded(17);
  constexpr int kWords = 20000;
  std::array<int, 64> ones{};
  for (int i = 0; i < kWords; ++i) {
    const uint64_t word = stream.NextU64();
    for (int b = 0; b < 64; ++b) ones[b] += word >> b & 1;
  }
  for (int count : ones) EXPECT_LT(Deviations(count, kWords, 0.5), kDeviations);
}

TEST(RandomStream, UniformBelowIsUniformWhereModuloWouldNotBe) {
  auto stream = Seeded(19);
  constexpr int kSamples = 60000;
  // 3 * 2^62: four words for three values. Modulo would hit the lowest third twice as often; the product without
  // rejection would do so for the multiples of three.
  const uint64_t n = uint64_t{3} << 62;
  std::array<int, 3> thirds{}, residues{};
  for (int i = 0; i < kSamples; ++i) {
    const uint64_t x = stream.UniformBelow(n);
    ASSERT_LT(x, n);
    ++thirds[x >> 62];
    ++residues[x % 3];
  }
  for (int h : thirds) EXPECT_LT(Deviations(h, kSamples, 1.0 / 3), kDeviations);
  for (int h : residues) EXPECT_LT(Deviations(h, kSamples, 1.0 / 3), kDeviations);
  std::array<int, 6> die{};
  for (int i = 0; i < kSamples; ++i) ++die[stream.UniformBelow(6)];
  for (int h : die) EXPECT_LT(Deviations(h, kSamples, 1.0 / 6), kDeviations);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(stream.UniformBelow(1), 0u);
}

// The words of a stream, as digits of W, must give [W < p]; this recomputes it digit by digit with integers.
TEST(RandomStream, BernoulliComparesWithTheBinaryExpansion) {
  auto stream = Seeded(23), words = Seeded(23);
  for (int i = 0; i < 100000; ++i) {
    const double p = std::ldexp(static_cast<double>((i * 2654435761u) | 1u), -32 - i % 3);
    const uint64_t threshold = static_cast<uint64_t>(std::ldexp(p, 64));
    ASSERT_EQ(stream.Bernoulli(p), words.NextU64() < threshold) << p;  // equality has probability 5e-15 in total
  }
}

// p is chosen to begin with exactly the drawn word, so the following words must decide.
TEST(RandomStream, BernoulliEqualFirstDigitIsDecidedByTheRest) {
  auto stream = Seeded(23);
  int exact = 0, halves = 0;
  for (uint64_t i = 0; i < 60000; ++i) {
    ASSERT_TRUE(stream.Seek(i).ok());
    const uint64_t word = stream.NextU64(), next = stream.NextU64();
    if (word % 2048 == 0) {  // p = word / 2^64 is a double: W = p + more, never below p
      ASSERT_TRUE(stream.Seek(i).ok());
      EXPECT_FALSE(stream.Bernoulli(static_cast<double>(word) * 0x1p-64));
      ++exact;
    }
    if (word < uint64_t{1} << 52) {  // p = (word + 1/2) / 2^64 is a double: the next word is compared with 1/2
      ASSERT_TRUE(stream.Seek(i).ok());
      EXPECT_EQ(stream.Bernoulli((static_cast<double>(word) + 0.5) * 0x1p-64), next < uint64_t{1} << 63);
      ++halves;
    }
  }
  EXPECT_GT(exact, 5);
  EXPECT_GT(halves, 5);
}

TEST(RandomStream, BernoulliTinyProbabilityNeedsSeveralDigits) {
  // For p = 2^-64 the first word must be 0: never here.
  auto stream = Seeded(29);
  for (double p : {0x1p-64, 0x1p-65, std::numeric_limits<double>::denorm_min()}) {
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(stream.Bernoulli(p));
  }
}

TEST(RandomStream, BernoulliFrequencies) {
  auto stream = Seeded(31);
  for (double p : {0.0424, 0.5, 1.0 / 3, 0.999}) {
    int hits = 0;
    constexpr int kSamples = 100000;
    for (int i = 0; i < kSamples; ++i) hits += stream.Bernoulli(p);
    EXPECT_LT(Deviations(hits, kSamples, p), kDeviations) << p;
  }
}

TEST(RandomStream, BernoulliEdges) {
  auto stream = Seeded(37);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(stream.Bernoulli(0));
    EXPECT_FALSE(stream.Bernoulli(-1));
    EXPECT_FALSE(stream.Bernoulli(std::nan("")));
    EXPECT_TRUE(stream.Bernoulli(1));
    EXPECT_TRUE(stream.Bernoulli(2));
  }
}

TEST(RandomStream, NormalHasItsMoments) {
  auto stream = Seeded(41);
  constexpr int kSamples = 200000;
  double mean = 0, square = 0, fourth = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double z = stream.Normal();
    ASSERT_TRUE(std::isfinite(z));
    mean += z / kSamples;
    square += z * z / kSamples;
    fourth += z * z * z * z / kSamples;
  }
  EXPECT_LT(std::abs(mean), kDeviations / std::sqrt(kSamples));
  EXPECT_LT(std::abs(square - 1), kDeviations * std::sqrt(2.0 / kSamples));
  EXPECT_LT(std::abs(fourth - 3), kDeviations * std::sqrt(96.0 / kSamples));
}

TEST(PoissonSample, EachIndexIndependentlyWithProbabilityQ) {
  auto stream = Seeded(43);
  constexpr uint32_t kRecords = 50;
  constexpr int kRounds = 20000;
  constexpr double q = 0.13;
  std::vector<uint32_t> sample;
  std::array<int, kRecords> hits{};
  int both = 0;
  double size = 0, size_squared = 0;
  for (int round = 0; round < kRounds; ++round) {
    PoissonSample(stream, q, kRecords, sample);
    bool seven = false, eight = false;
    for (size_t i = 0; i < sample.size(); ++i) {
      ASSERT_LT(sample[i], kRecords);
      ASSERT_TRUE(i == 0 || sample[i - 1] < sample[i]);
      ++hits[sample[i]];
      seven |= sample[i] == 7;
      eight |= sample[i] == 8;
    }
    both += seven && eight;
    size += sample.size();
    size_squared += static_cast<double>(sample.size()) * sample.size();
  }
  for (int h : hits) EXPECT_LT(Deviations(h, kRounds, q), kDeviations);
  EXPECT_LT(Deviations(both, kRounds, q * q), kDeviations);
  EXPECT_LT(Deviations(size, kRounds * static_cast<double>(kRecords), q), kDeviations);
  // A batch of fixed size would have no variance; the size must be binomial.
  const double variance = size_squared / kRounds - size / kRounds * (size / kRounds);
  EXPECT_NEAR(variance, kRecords * q * (1 - q), 0.3);
}

TEST(PoissonSample, Edges) {
  auto stream = Seeded(47);
  std::vector<uint32_t> sample{1, 2};
  PoissonSample(stream, 0, 10, sample);
  EXPECT_TRUE(sample.empty());
  PoissonSample(stream, 1, 3, sample);
  EXPECT_EQ(sample, (std::vector<uint32_t>{0, 1, 2}));
  PoissonSample(stream, 0.5, 0, sample);
  EXPECT_TRUE(sample.empty());
}

}  // namespace
}  // namespace wisp::privacy::random_test
