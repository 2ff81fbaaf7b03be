// The perplexity of private sampling: computed by hand, at both ends, and compared with actual samples of the sampler
// and the recommender.
#include "runtime/private_sampling/decoding_quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/private_sampling/sample_cost.h"
#include "runtime/private_sampling/private_recommender.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/privacy/noise/chi_square.h"

namespace wisp::decoding_quality_test {
namespace {

constexpr double kAlpha = 1e-6;
constexpr float kInf = std::numeric_limits<float>::infinity();

// The scores are logarithms of 1, 2, 4, 1, 8. Item 4 is outside the support, so q is 1/8, 2/8, 4/8, 1/8.
const std::vector<float> kScores = {0, std::log(2.0f), std::log(4.0f), 0, std::log(8.0f)};
const std::vector<float> kBase = {0, 0, 0, std::log(2.0f), 0};
const std::vector<int32_t> kSupport = {0, 1, 2, 3};

ItemLaw Uniform(double lambda) { return {.mode = DecodingMode::kUniform, .lambda = lambda}; }

double ComputePerplexity(const ItemLaw& law, const std::vector<int32_t>& targets) {
  Perplexity sum;
  for (int32_t target : targets) sum.Add(ItemProbability(law, {kScores}, kSupport, target));
  return sum.Value();
}

TEST(DecodingQuality, ByHand) {
  EXPECT_NEAR(ItemProbability({}, {kScores}, kSupport, 2), 0.5, 1e-7);
  EXPECT_NEAR(ItemProbability(Uniform(0.6), {kScores}, kSupport, 2), 0.6 * 0.5 + 0.4 * 0.25, 1e-7);
  EXPECT_NEAR(ItemProbability(Uniform(0.6), {kScores}, kSupport, 0), 0.6 * 0.125 + 0.4 * 0.25, 1e-7);
  // Targets 2 and 0: 1 / sqrt(0.4 * 0.175).
  EXPECT_NEAR(ComputePerplexity(Uniform(0.6), {2, 0}), 1 / std::sqrt(0.4 * 0.175), 1e-6);
  // Temperature 2: square roots of the weights, 1, sqrt 2, 2, 1.
  EXPECT_NEAR(ItemProbability({.temperature = 2}, {kScores}, kSupport, 2), 2 / (4 + std::sqrt(2.0)), 1e-7);
}

TEST(DecodingQuality, NothingOfTheModelIsTheSupportAndAllOfItIsTheModel) {
  EXPECT_NEAR(ComputePerplexity(Uniform(0), {0, 2, 1}), 4, 1e-12);
  EXPECT_NEAR(ComputePerplexity({}, {0, 2, 1}), std::cbrt(8.0 * 2 * 4), 1e-5);
  EXPECT_NEAR(ComputePerplexity(Uniform(1 - 1e-12), {0, 2, 1}), ComputePerplexity({}, {0, 2, 1}), 1e-9);
}

// The law is the base plus the clipped difference: scores less base, centred over all five items, clipped to +-c.
TEST(DecodingQuality, AnchoredByHand) {
  const double c = 0.3;
  std::vector<double> law;
  double mean = 0;
  for (size_t i = 0; i < 5; ++i) mean += (static_cast<double>(kScores[i]) - kBase[i]) / 5;
  for (size_t i = 0; i < 4; ++i)
    law.push_back(std::exp(kBase[i] + std::clamp(static_cast<double>(kScores[i]) - kBase[i] - mean, -c, c)));
  const double total = std::accumulate(law.begin(), law.end(), 0.0);
  for (int32_t item : kSupport) {
    const ItemLaw anchored{.mode = DecodingMode::kBaseAnchored, .clip = c};
    EXPECT_NEAR(ItemProbability(anchored, {kScores, kBase}, kSupport, item), law[static_cast<size_t>(item)] / total,
                1e-6);
  }
  // A tiny clip gives the base; a clip that exceeds all scores gives the model. (A huge one gives the uniform:
  // sample_law.h, 29 nats.)
  EXPECT_NEAR(ItemProbability({.mode = DecodingMode::kBaseAnchored, .clip = 1e-9}, {kScores, kBase}, kSupport, 3), 0.4,
              1e-7);
  EXPECT_NEAR(ItemProbability({.mode = DecodingMode::kBaseAnchored, .clip = 5}, {kScores, kBase}, kSupport, 2), 0.5,
              1e-6);
}

TEST(DecodingQuality, OutsideTheSupportIsNeverSampled) {
  EXPECT_EQ(ItemProbability(Uniform(0.5), {kScores}, kSupport, 4), 0);
  Perplexity sum;
  EXPECT_TRUE(std::isnan(sum.Value()));
  sum.Add(0.5);
  sum.Add(0);
  EXPECT_EQ(sum.Value(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(sum.count(), 2u);
}

TEST(DecodingQuality, AModelWithoutAnOpinionCountsAsUniform) {
  const std::vector<float> none(5, -kInf);
  EXPECT_EQ(ItemProbability(Uniform(0.7), {none}, kSupport, 1), 0.25);
}

// Compares first samples of the actual recommender, history excluded, with the law: a p-value below 1e-6 fails.
class AgainstTheRecommender : public ::testing::TestWithParam<DecodingMode> {};
TEST_P(AgainstTheRecommender, SamplesFromThisLaw) {
  const bool anchored = GetParam() == DecodingMode::kBaseAnchored;
  const UniformArchitecture architecture = UniformArchitecture{
      .num_items = 12, .max_length = 6, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};
  const test::TemporaryFolder folder;
  std::unique_ptr<Session> sessions[2];
  for (uint32_t i = 0; i < 2; ++i) {
    const std::string path = folder / ("m" + std::to_string(i));
    ASSERT_TRUE(
        WriteModel(path, {.architecture = architecture,
                          .weights = wisp::test::RandomWeights(architecture, i + 1),
                          .provenance = {{.description = "trained", .dataset = i == 0 ? "private" : "shipped"}}})
            .ok());
    sessions[i] = *Session::Open(path);
  }
  auto ledger =
      *privacy::Ledger::Open(folder / "l", {.dataset = "private", .record = privacy::RecordSpec::OfEvents({})});
  const std::vector<std::string> shipped = {"shipped"};
  PrivateRecommenderOptions o{.base = anchored ? sessions[1].get() : nullptr,
                              .goal = {.lambda = 0.5},
                              .public_datasets = shipped,
                              .ledger = &ledger,
                              .samples_per_charge = 1000000,
                              .reproducible_seed = 5};
  if (anchored) o.goal = {.clip = 0.4};
  auto recommender = *PrivateRecommender::Create(*sessions[0], o);
  const std::vector<int32_t> history = {3, 7, 3, 11}, support = {0, 1, 2, 4, 5, 6, 8, 9, 10};
  std::vector<uint64_t> counts(support.size());
  for (int i = 0; i < 20000; ++i) {
    const int32_t item = (*recommender.Recommend(history, {.count = 1}))[0];
    ++counts[static_cast<size_t>(std::find(support.begin(), support.end(), item) - support.begin())];
  }
  std::vector<float> scores[2] = {std::vector<float>(12), std::vector<float>(12)};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(sessions[i]->Score(history, scores[i]).ok());
  std::vector<double> law;
  for (int32_t item : support) {
    law.push_back(
        ItemProbability({.mode = GetParam(), .lambda = 0.5, .clip = 0.4}, {scores[0], scores[1]}, support, item));
  }
  EXPECT_NEAR(std::accumulate(law.begin(), law.end(), 0.0), 1, 1e-12);
  EXPECT_GT(ChiSquarePValue(counts, law), kAlpha);
}
INSTANTIATE_TEST_SUITE_P(Modes, AgainstTheRecommender,
                         ::testing::Values(DecodingMode::kUniform, DecodingMode::kBaseAnchored));

// The clip for a range costs at most that range, and nearly all of it.
TEST(ClipForRange, CostsTheRangeOrLess) {
  for (double range : {1e-6, 0.01, 1.0, 40.0}) {
    const auto clip = ClipForRange(range, 0.7);
    ASSERT_TRUE(clip.ok());
    EXPECT_LE(AnchoredSampleCost(*clip, 0.7, 100).range, range);
    EXPECT_GT(AnchoredSampleCost(*clip, 0.7, 100).range, range * (1 - 1e-8));
  }
  EXPECT_EQ(ClipForRange(1e-9, 1).status().code(), StatusCode::kPrivacyRefused);
}

}  // namespace
}  // namespace wisp::decoding_quality_test
