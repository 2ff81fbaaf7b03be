// Retired items, which are never recommended, and the popular items that a user without history gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "runtime/inference/batch_recommender.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::offer_test {
namespace {

const UniformArchitecture kArchitecture = {
    .num_items = 40, .max_length = 6, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};
const std::vector<int32_t> kHistory = {3, 17, 5}, kRetired = {0, 5, 17, 30};

class OfferTest : public ::testing::Test {
 protected:
  OfferTest() : weights_(test::RandomWeights(kArchitecture, 3)) {}
  std::unique_ptr<Session> Open(std::vector<int32_t> retired, std::vector<ProvenanceEntry> provenance = {}) {
    EXPECT_TRUE(WriteModel(path_, {.architecture = kArchitecture,
                                   .weights = weights_,
                                   .retired = std::move(retired),
                                   .provenance = std::move(provenance)})
                    .ok());
    return *Session::Open(path_);
  }
  static std::vector<int32_t> GetItems(const std::vector<Recommendation>& list) {
    std::vector<int32_t> items;
    for (const Recommendation& r : list) items.push_back(r.item);
    return items;
  }
  static std::vector<int32_t> Without(std::vector<int32_t> items, const std::vector<int32_t>& gone) {
    std::erase_if(items, [&](int32_t item) { return std::ranges::find(gone, item) != gone.end(); });
    return items;
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.wisp";
  std::vector<float> weights_;
};

TEST_F(OfferTest, RetiredItemsAreNeverRecommendedAndStandInHistories) {
  const RecommendOptions all{.count = 40, .seen = SeenItems::kAllow};
  const auto before = GetItems(*Open({})->Recommend(kHistory, all));
  const auto session = Open(kRetired);
  EXPECT_EQ(GetItems(*session->Recommend(kHistory, all)), Without(before, kRetired))
      << "the others stay in their order";
  // Retired items are not listed even if they are asked for.
  const std::vector<int32_t> candidates = {30, 31, 0};
  EXPECT_EQ(GetItems(*session->Recommend(kHistory, {.count = 3, .candidates = candidates})), std::vector<int32_t>{31});

  const auto batch = *BatchRecommender::Create(*session, {.num_threads = 1});
  const std::vector<std::span<const int32_t>> histories = {kHistory};
  std::vector<Recommendation> best(40);
  std::vector<size_t> found(1);
  ASSERT_TRUE(batch->Recommend(histories, all, best, found).ok());
  best.resize(found[0]);
  EXPECT_EQ(GetItems(best), Without(before, kRetired));
}

// Without counts, the list is by the mean of the scores after each item.
TEST_F(OfferTest, NoHistory_GivesItemsThatAreLikelyAfterAnyItem) {
  const auto session = Open({});
  std::vector<double> mean(40, 0);
  std::vector<float> scores(40);
  for (int32_t item = 0; item < 40; ++item) {
    ASSERT_TRUE(session->Score({&item, 1}, scores).ok());
    for (size_t i = 0; i < 40; ++i) mean[i] += static_cast<double>(scores[i]) / 40;
  }
  ASSERT_TRUE(session->Score({}, scores).ok());
  for (size_t i = 0; i < 40; ++i) EXPECT_NEAR(scores[i], mean[i], 1e-4) << i;

  const auto best = *session->Recommend({}, {.count = 3});
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].item, std::ranges::max_element(mean) - mean.begin());
  // The next list is that of the given history, and does not depend on the request without history.
  const auto after = *session->Recommend(kHistory, {.count = 3});
  EXPECT_EQ(GetItems(after), GetItems(*Open({})->Recommend(kHistory, {.count = 3})));
  const auto retired = Open({best[0].item});
  EXPECT_EQ((*retired->Recommend({}, {.count = 3}))[0].item, best[1].item);
}

// In a large catalogue 256 items are asked, spread over all of it: asking each of 65,000 took seconds.
TEST_F(OfferTest, NoHistory_AsksSomeOfManyItems) {
  UniformArchitecture large = kArchitecture;
  large.num_items = 700;
  ASSERT_TRUE(WriteModel(path_, {.architecture = large, .weights = test::RandomWeights(large, 3)}).ok());
  const auto session = *Session::Open(path_);
  std::vector<double> mean(700, 0);
  std::vector<float> scores(700);
  for (int32_t asked = 0; asked < 256; ++asked) {
    const int32_t item = asked * 700 / 256;
    ASSERT_TRUE(session->Score({&item, 1}, scores).ok());
    for (size_t i = 0; i < 700; ++i) mean[i] += static_cast<double>(scores[i]) / 256;
  }
  ASSERT_TRUE(session->Score({}, scores).ok());
  for (size_t i = 0; i < 700; ++i) EXPECT_NEAR(scores[i], mean[i], 1e-4) << i;
}

// All items are scored once, not once for each asked item: for a million items that took 5.6 s.
TEST_F(OfferTest, NoHistory_ScoresTheCatalogueOnce) {
  UniformArchitecture large = kArchitecture;
  large.num_items = 200000;
  ASSERT_TRUE(WriteModel(path_, {.architecture = large, .weights = test::RandomWeights(large, 3)}).ok());
  const auto session = *Session::Open(path_);
  std::vector<float> scores(large.num_items);
  const auto seconds = [&](std::span<const int32_t> history) {
    timespec begin{}, end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    EXPECT_TRUE(session->Score(history, scores).ok());
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  };
  const std::vector<int32_t> one = {7};
  (void)seconds(one);  // touches the pages
  const double of_one = seconds(one), of_cold_start = seconds({});
  EXPECT_LT(of_cold_start, 32 * of_one) << "256 passes take 256 times as long";
}

// If the model has counts, these are better.
TEST_F(OfferTest, NoHistory_FollowsTheCounts) {
  UniformArchitecture with_counts = kArchitecture;
  with_counts.output_bias = OutputBias::kFixed;
  std::vector<float> weights = test::RandomWeights(with_counts, 3);
  const auto parameters = ListParameters(with_counts);
  const ParameterSpec& bias = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)];
  for (size_t i = 0; i < 40; ++i) weights[bias.offset + i] = static_cast<float>((i * 7) % 40);
  for (const OutputBiasOrigin origin : {OutputBiasOrigin::kPublicCounts, OutputBiasOrigin::kPrivateCounts}) {
    ASSERT_TRUE(
        WriteModel(path_, {.architecture = with_counts, .weights = weights, .output_bias_origin = origin}).ok());
    const auto best = *(*Session::Open(path_))->Recommend({}, {.count = 2});
    EXPECT_EQ(best[0].item, 17) << "7 * 17 = 39 modulo 40";
    EXPECT_EQ(best[0].score, 39.0f);
  }
}

TEST_F(OfferTest, NoHistory_DamagedWeightsAreAnError) {
  weights_[5] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(WriteModel(path_, {.architecture = kArchitecture, .weights = weights_}).ok());
  weights_[5] = 3e38f;
  const auto session = Open({});
  EXPECT_EQ(session->Recommend({}, {}).status().code(), StatusCode::kInvalidData);
}

}  // namespace
}  // namespace wisp::offer_test
