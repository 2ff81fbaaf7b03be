// Compares samples of tokens with their law, and checks that texts end where they should.
#include "runtime/text/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace wisp::token_sampler_test {
namespace {

std::map<int32_t, double> MeasureShares(const SamplingOptions& options, const std::vector<float>& scores, int samples,
                                        const std::vector<int32_t>& history = {}) {
  TokenSampler sampler(options);
  std::map<int32_t, double> shares;
  for (int i = 0; i < samples; ++i) {
    std::vector<float> copy = scores;
    shares[sampler.Sample(copy, history)] += 1.0 / samples;
  }
  return shares;
}

// Probabilities 0.5, 0.25, 0.125, 0.0625, 0.0625, unordered.
const std::vector<float> kScores = {std::log(0.125f), std::log(0.5f), std::log(0.0625f), std::log(0.25f),
                                    std::log(0.0625f)};
constexpr int kSamples = 40000;
constexpr double kOff = 0.0125;  // five standard deviations of a share of one half: a false alarm in a million

TEST(TokenSampler, FollowsTheSoftmax) {
  const auto shares = MeasureShares({.seed = 3}, kScores, kSamples);
  EXPECT_NEAR(shares.at(1), 0.5, kOff);
  EXPECT_NEAR(shares.at(3), 0.25, kOff);
  EXPECT_NEAR(shares.at(0), 0.125, kOff);
  EXPECT_NEAR(shares.at(2), 0.0625, kOff);
}

TEST(TokenSampler, TemperatureSharpensAndZeroTakesTheMostLikely) {
  const auto sharp = MeasureShares({.temperature = 0.5}, kScores, kSamples);  // squares of the probabilities
  EXPECT_NEAR(sharp.at(1), 0.25 / (0.25 + 0.0625 + 0.015625 + 2 * 0.00390625), kOff);
  EXPECT_EQ(MeasureShares({.temperature = 0}, kScores, 10).size(), 1u);
  EXPECT_EQ(MeasureShares({.temperature = 0}, kScores, 10).count(1), 1u);
}

TEST(TokenSampler, TopKKeepsTheMostLikely) {
  const auto shares = MeasureShares({.top_k = 2}, kScores, kSamples);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares.at(1), 2.0 / 3, kOff);
  // The first of equal tokens is kept.
  EXPECT_EQ(MeasureShares({.top_k = 4}, kScores, kSamples).count(4), 0u);
}

TEST(TokenSampler, TopPKeepsTheFewestThatReachIt) {
  EXPECT_EQ(MeasureShares({.top_p = 0.5}, kScores, 1000).size(), 1u);
  EXPECT_EQ(MeasureShares({.top_p = 0.51}, kScores, 1000).size(), 2u);
  const auto shares = MeasureShares({.top_p = 0.8}, kScores, kSamples);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_NEAR(shares.at(1), 0.5 / 0.875, kOff);
}

TEST(TokenSampler, MinPKeepsWhatIsNearTheMostLikely) {
  const auto shares = MeasureShares({.min_p = 0.4}, kScores, kSamples);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares.at(3), 1.0 / 3, kOff);
}

TEST(TokenSampler, RepetitionCountsEachTokenOnce) {
  // Scores below 0 are multiplied: log(1/2) * 2 is log(1/4).
  const auto shares = MeasureShares({.repetition_penalty = 2}, kScores, kSamples, {1, 1, 1});
  EXPECT_NEAR(shares.at(1), 0.25 / 0.75, kOff);
  const std::vector<float> above = {2, 1};
  EXPECT_NEAR(MeasureShares({.repetition_penalty = 2}, above, kSamples, {0}).at(0), 0.5, kOff);
}

TEST(TokenSampler, TheSameSeedGivesTheSameTokens) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> scores(1000);
  for (float& s : scores) s = normal(random);
  const SamplingOptions options{.temperature = 0.9, .top_k = 50, .top_p = 0.9, .seed = 11};
  TokenSampler one(options), two(options);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> a = scores, b = scores;
    EXPECT_EQ(one.Sample(a, {}), two.Sample(b, {}));
  }
}

TEST(TokenSampler, OptionsOutOfRangeAreRefused) {
  EXPECT_TRUE(Validate(SamplingOptions{}).ok());
  for (const SamplingOptions& bad :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = NAN}, SamplingOptions{.top_p = 0},
        SamplingOptions{.top_p = 1.5}, SamplingOptions{.min_p = -0.1}, SamplingOptions{.repetition_penalty = 0}})
    EXPECT_FALSE(Validate(bad).ok());
}

}  // namespace
}  // namespace wisp::token_sampler_test
