// The weight of the output bias: what a record adds, what is charged, the noise of each sum, what the ledger stores,
// and the chosen weight.
#include "runtime/train/bias_weight.h"

#include <cmath>
#include <random>

#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/gain_sums.h"
#include "runtime/train/popularity.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::bias_weight_test {
namespace {

class BiasWeight : public test::RingTraining {
 protected:
  BiasWeight() : RingTraining(40) {
    architecture_.head.output_bias = OutputBias::kFixed;
    std::mt19937 random(7);
    for (float& b : bias_) b = std::normal_distribution<float>(0, 0.5f)(random);
    start_ = test::StartWeights(architecture_);
    SetOutputBias(architecture_, bias_, start_);
    graph_ = MakeModelView(architecture_, kernels::Device(kernels::BestOps()), {.use = GraphUse::kInference});
    weights_.emplace(*graph_, ParameterSource(start_.data()));
  }

  Result<WeighedBias> Release(std::span<const Record> records, const BiasWeightOptions& options,
                              privacy::RandomStream& noise) {
    Workers workers(2);
    return ReleaseBiasGains(*graph_, weights_->view(), lists_, bias_, records, options, workers, noise);
  }
  static privacy::RandomStream Noise(uint64_t seed) {
    return privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kNoise);
  }
  // NDCG@10 of the list after `history` with another weight of the bias.
  double Quality(std::span<const int32_t> history, int32_t target, float weight) {
    std::vector<float> other = start_, weighed(bias_.begin(), bias_.end());
    for (float& b : weighed) b *= weight;
    SetOutputBias(architecture_, weighed, other);
    const PackedWeights packed(*graph_, ParameterSource(other.data()));
    ListScorer scorer(*graph_, packed.view(), lists_);
    return Ndcg(scorer.FindPosition(target, scorer.Score(history), history));
  }

  static constexpr uint32_t kItems = kSmall.num_items;
  Architecture architecture_ = kSmall;
  std::vector<float> bias_ = std::vector<float>(kItems);
  const std::vector<int32_t> withheld_ = {3, 8};
  const ModelLists lists_{.withheld = withheld_};
  std::unique_ptr<const ModelView> graph_;
  std::optional<PackedWeights> weights_;
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(BiasWeight, ARecordAddsItsMeanGainInTheListsOfItsNewestEvents) {
  BiasGains gains(*graph_, weights_->view(), lists_, bias_);
  size_t moved = 0;
  for (const Record& record : std::span(ring_.records).first(12)) {
    std::vector<double> expected;
    double squares = 0;
    for (const float weight : kBiasWeights) {
      double sum = 0;
      for (size_t t = record.inputs.size() - 8; t < record.inputs.size(); ++t) {
        const auto history = record.inputs.first(t + 1);
        sum += Quality(history, record.targets[t], weight) - Quality(history, record.targets[t], 1);
      }
      expected.push_back(sum / 8 / kBiasGainScale);
      squares += expected.back() * expected.back();
    }
    const double cut = std::min(1.0, 1 / std::sqrt(squares));
    const std::span<const int64_t> got = gains.Of(record);
    ASSERT_EQ(got.size(), 2 * expected.size());
    for (size_t k = 0; k < expected.size(); ++k) {
      const double gain = cut * expected[k];
      EXPECT_NEAR(static_cast<double>(got[k]) / kGainSteps, gain, 1e-5);
      EXPECT_NEAR(static_cast<double>(got[expected.size() + k]) / kGainSteps, kSquareWeight * gain * gain, 1e-5);
      moved += got[k] != 0;
    }
  }
  EXPECT_GT(moved, 10u);
}

// The sensitivity: however good or bad the lists are, the vector is no longer than the norm of the noise.
TEST_F(BiasWeight, ARecordMovesTheSumsByAtMostTheNorm) {
  BiasGains gains(*graph_, weights_->view(), lists_, bias_);
  double longest = 0;
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<int32_t> items(2 + random() % 11);
    for (int32_t& item : items) item = static_cast<int32_t>(random() % kItems);
    const Record record{std::span(items).first(items.size() - 1), std::span(items).subspan(1)};
    double squares = 0;
    for (const int64_t gain : gains.Of(record)) squares += static_cast<double>(gain) * static_cast<double>(gain);
    EXPECT_LE(std::sqrt(squares), GainNorm());
    longest = std::max(longest, std::sqrt(squares));
  }
  EXPECT_GT(longest, 0.97 * GainNorm()) << "some are cut";
}

TEST_F(BiasWeight, PaddingAndMissingTargetsAddNothing) {
  BiasGains gains(*graph_, weights_->view(), lists_, bias_);
  const std::vector<int32_t> padded = {-1, -1, 4, 5, 6}, targets = {-1, -1, 5, -1, 9}, plain = {4, 5, 6},
                             of_plain = {5, -1, 9}, none = {-1, -1, -1};
  const auto of = [&](std::span<const int32_t> inputs, std::span<const int32_t> wanted) {
    const auto got = gains.Of({inputs, wanted});
    return std::vector<int64_t>(got.begin(), got.end());
  };
  EXPECT_EQ(of(padded, targets), of(plain, of_plain));
  EXPECT_EQ(of(plain, none), std::vector<int64_t>(2 * kBiasWeights.size()));
  EXPECT_EQ(of(none, plain), std::vector<int64_t>(2 * kBiasWeights.size()));
}

TEST_F(BiasWeight, ChargeComesFirst) {
  privacy::RandomStream secure = *privacy::RandomStream::Secure(), stream = Noise(1), untouched = Noise(1);
  BiasWeightOptions options{.noise_multiplier = 2, .run = "run", .base = 7};
  EXPECT_EQ(Release(ring_.records, options, stream).status().code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(ledger_.SetLimit(*privacy::EpsilonDelta::Create(1, 1e-5)).ok());
  options.ledger = &ledger_;
  for (privacy::RandomStream* noise : {&secure, &stream})
    EXPECT_EQ(Release(ring_.records, options, *noise).status().code(), StatusCode::kPrivacyRefused);
  for (const double noise : {0.0, -1.0, std::nan(""), 1e300}) {
    options.noise_multiplier = noise;
    EXPECT_EQ(Release(ring_.records, options, stream).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(ledger_.Entries()->empty());
  std::vector<int64_t> a(4), b(4);
  privacy::AddDiscreteGaussian(stream, 1 << 20, a);
  privacy::AddDiscreteGaussian(untouched, 1 << 20, b);
  EXPECT_EQ(a, b) << "nothing was counted or noised";

  options.noise_multiplier = 20;
  ASSERT_TRUE(Release(ring_.records, options, secure).ok());
  const auto entries = *ledger_.Entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].purpose, kBiasWeightPurpose);
  EXPECT_EQ(entries[0].mechanism, *privacy::Mechanism::Gaussian({.noise_multiplier = 20, .count = 1}));
  EXPECT_EQ(entries[0].state, privacy::LedgerEntry::State::kReleased);
  const auto results = *ledger_.Results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].entry, entries[0].id);
  EXPECT_EQ(ParseWeighedBias(results[0].text)->base, 7u);
}

TEST_F(BiasWeight, EverySumHasItsNoise) {
  constexpr int kReleases = 100;
  constexpr double kNoise = 3;
  std::array<double, 2 * kBiasWeights.size()> squares = {};
  for (uint64_t seed = 0; seed < kReleases; ++seed) {
    privacy::RandomStream noise = Noise(seed);
    const auto sums = Release({}, {.noise_multiplier = kNoise, .ledger = &ledger_, .run = "run"}, noise);
    ASSERT_TRUE(sums.ok()) << sums.status().message();
    EXPECT_EQ(sums->noise_multiplier, kNoise);
    for (size_t k = 0; k < kBiasWeights.size(); ++k) {
      squares[k] += sums->gains[k] * sums->gains[k] / kReleases;
      squares[kBiasWeights.size() + k] += std::pow(kSquareWeight * sums->squares[k], 2) / kReleases;
    }
  }
  // Five standard deviations of a mean of 100 squares are 0.71 of it.
  for (const double square : squares) EXPECT_NEAR(square / std::pow(kNoise * RecordNorm(), 2), 1, 0.71);
}

TEST_F(BiasWeight, TheSumsOfAllThreadsAreThoseOfOne) {
  std::array<double, 2 * kBiasWeights.size()> expected = {};
  BiasGains gains(*graph_, weights_->view(), lists_, bias_);
  for (const Record& record : ring_.records) {
    const std::span<const int64_t> of_record = gains.Of(record);
    for (size_t k = 0; k < expected.size(); ++k) expected[k] += static_cast<double>(of_record[k]) / kGainSteps;
  }
  privacy::RandomStream noise = Noise(1);
  const auto sums = Release(ring_.records, {.noise_multiplier = 1e-3, .ledger = &ledger_, .run = "run"}, noise);
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  for (size_t k = 0; k < kBiasWeights.size(); ++k) {
    EXPECT_NEAR(sums->gains[k], expected[k], 0.006);
    EXPECT_NEAR(kSquareWeight * sums->squares[k], expected[kBiasWeights.size() + k], 0.006);
  }
}

TEST(WeighedBias, IsReadBackFromTheLedgersText) {
  const WeighedBias weighed{
      .gains = {1.5, -2, 0, 1e-9, 7}, .squares = {1, 2, 3, 4, -5}, .noise_multiplier = 4.25, .base = UINT64_MAX};
  const std::string text = ToText(weighed);
  EXPECT_TRUE(IsWeighedBias(text));
  EXPECT_EQ(*ParseWeighedBias(text), weighed);
  EXPECT_FALSE(IsWeighedBias("gains=1"));
  for (const std::string& bad : {std::string(), text.substr(1), text + " ", text.substr(0, text.size() / 2)})
    EXPECT_EQ(ParseWeighedBias(bad).status().code(), StatusCode::kInvalidData) << bad;
}

TEST(WeighedBias, ChoosesTheLeastChangeThatIsAboutAsGoodAsTheBest) {
  const auto choose = [](const std::array<double, 5>& gains) {
    // Noise and records deviate by 4 and 3: by 5 together.
    return WeighedBias{.gains = gains, .squares = {9, 9, 9, 9, 9}, .noise_multiplier = 4 / RecordNorm()}.Choose();
  };
  EXPECT_EQ(kBiasWeights[0], 0.75f);
  EXPECT_EQ(choose({-4, 6, 12, 18, 10}), 1.75f);
  EXPECT_EQ(choose({-4, 6, 13.9, 18, 19}), 1.75f) << "2 is hardly better";
  EXPECT_EQ(choose({-4, 14, 13, 18, 19}), 1.25f);
  EXPECT_EQ(choose({14, 1, 0, -2, -9}), 0.75f);
  EXPECT_EQ(choose({0, 0.5, 0, 0, 5.1}), 1.25f) << "within a deviation of the best";
  EXPECT_EQ(choose({-1, -1, -1, -1, 5.1}), 2.0f);
  EXPECT_EQ(choose({0, 0, 0, 0, 4.9}), 1.0f);
  EXPECT_EQ(choose({-1, -2, -3, -4, -5}), 1.0f);
}

}  // namespace
}  // namespace wisp::bias_weight_test
