// Every path that scores or ranks adds the successions of a model: a session, a batch, both evaluations.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/inference/batch_recommender.h"
#include "runtime/personalise/evaluate_candidate.h"
#include "runtime/train/list_scorer.h"
#include "runtime/train/run/evaluate.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::successions_served_test {
namespace {

constexpr int32_t kItems = 700, kUntrained = 699;  // three tiles
constexpr size_t kCount = 10;

TEST(FindSuccessions, AreThoseOfTheLastItem) {
  const std::vector<Succession> all = {{0, 2, 1}, {3, 0, 2}, {3, 5, 4}, {7, 1, 8}};
  const auto of = [&](const std::vector<int32_t>& history) {
    const auto found = FindSuccessions(all, history);
    return std::vector<Succession>(found.begin(), found.end());
  };
  EXPECT_EQ(of({7, 3}), std::vector<Succession>({{3, 0, 2}, {3, 5, 4}}));
  EXPECT_EQ(of({3, 0}), std::vector<Succession>({{0, 2, 1}}));
  EXPECT_EQ(of({3, 7}), std::vector<Succession>({{7, 1, 8}}));
  EXPECT_TRUE(of({3, 4}).empty());
  EXPECT_TRUE(of({3, 8}).empty());
  EXPECT_TRUE(of({}).empty());
  std::vector<float> tile(3, 0.5f);
  AddSuccessions(all, std::vector<int32_t>{3}, tile, 4);
  EXPECT_EQ(tile, std::vector<float>({0.5f, 4.5f, 0.5f}));
}

class SuccessionsServed : public ::testing::Test {
 protected:
  SuccessionsServed() {
    const UniformArchitecture a{
        .num_items = kItems, .max_length = 6, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};
    for (int32_t from = 0; from < kItems; from += 3) {
      for (const int32_t to : {(from * 7) % 256, 256 + from % 256, 512 + from % 180})
        successions_.push_back({from, to, 2.0f + static_cast<float>(random_() % 8)});
    }
    weights_ = test::RandomWeights(a, 3);
    ModelContents contents{.architecture = a, .weights = weights_, .untrained = {kUntrained}};
    EXPECT_TRUE(WriteModel(folder_ / "without", contents).ok());
    contents.successions = successions_;
    EXPECT_TRUE(WriteModel(folder_ / "with", contents).ok());
    with_ = *Session::Open(folder_ / "with");
    without_ = *Session::Open(folder_ / "without");
    for (int i = 0; i < 60; ++i) {
      auto& history = histories_.emplace_back(1 + random_() % 9);
      for (int32_t& item : history) item = static_cast<int32_t>(random_() % kUntrained);
    }
    histories_.push_back({kUntrained});  // the cold-start list
    histories_.push_back({kUntrained, kUntrained});
  }
  // The scores by hand: those of the model, and of each pair that begins with the last item.
  std::vector<float> Expected(const std::vector<int32_t>& history) {
    std::vector<float> scores(kItems);
    EXPECT_TRUE(without_->Score(history, scores).ok());
    for (const Succession& s : successions_)
      if (!history.empty() && s.from == history.back()) scores[static_cast<size_t>(s.to)] += s.score;
    return scores;
  }
  std::vector<int32_t> ExpectedList(const std::vector<int32_t>& history) {
    const std::vector<float> scores = Expected(history);
    std::vector<int32_t> items;
    for (int32_t i = 0; i < kUntrained; ++i)
      if (std::ranges::find(history, i) == history.end()) items.push_back(i);
    std::ranges::stable_sort(
        items, [&](int32_t a, int32_t b) { return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)]; });
    items.resize(kCount);
    return items;
  }
  static std::vector<int32_t> GetItems(std::span<const Recommendation> list) {
    std::vector<int32_t> items;
    for (const Recommendation& r : list) items.push_back(r.item);
    return items;
  }

  test::TemporaryFolder folder_;
  std::mt19937 random_{5};
  std::vector<float> weights_;
  std::vector<Succession> successions_;
  std::vector<std::vector<int32_t>> histories_;
  std::unique_ptr<Session> with_, without_;
};

TEST_F(SuccessionsServed, ScoresAndListsOfASessionHaveThem) {
  histories_.push_back({});
  size_t changed = 0;
  for (const auto& history : histories_) {
    std::vector<float> scores(kItems);
    ASSERT_TRUE(with_->Score(history, scores).ok());
    EXPECT_EQ(scores, Expected(history));
    const std::vector<int32_t> list = GetItems(*with_->Recommend(history, {.count = kCount}));
    EXPECT_EQ(list, ExpectedList(history));
    changed += list != GetItems(*without_->Recommend(history, {.count = kCount}));
  }
  EXPECT_GT(changed, 10u);
  // A history whose last item is not trained is read without it, and has its successions.
  EXPECT_NE(Expected({kUntrained}), Expected({}));
}

TEST_F(SuccessionsServed, ABatchIsThatOfTheSession) {
  const std::vector<std::span<const int32_t>> spans(histories_.begin(), histories_.end());
  const auto batch = *BatchRecommender::Create(*with_, {.num_threads = 2, .rows = 7});
  std::vector<Recommendation> best(spans.size() * kCount);
  std::vector<size_t> found(spans.size());
  ASSERT_TRUE(batch->Recommend(spans, {.count = kCount}, best, found).ok());
  for (size_t i = 0; i < spans.size(); ++i)
    EXPECT_EQ(GetItems({best.data() + i * kCount, found[i]}), ExpectedList(histories_[i])) << i;
}

TEST_F(SuccessionsServed, EvaluationIsOfTheServedLists) {
  std::vector<RankingCase> cases;
  double ndcg = 0;
  for (const auto& history : histories_) {
    const int32_t target = ExpectedList(history)[random_() % 4];
    cases.push_back({history, target});
    const auto list = GetItems(*with_->Recommend(history, {.count = kCount}));
    ndcg += Ndcg(static_cast<size_t>(std::ranges::find(list, target) - list.begin()));
  }
  Workers workers(1, {});
  EXPECT_NEAR(EvaluateModel(with_->file(), cases, workers).ndcg_at_10, ndcg / static_cast<double>(cases.size()), 1e-9);
  EXPECT_LT(EvaluateModel(without_->file(), cases, workers).ndcg_at_10, ndcg / static_cast<double>(cases.size()) - 0.1);
}

// The gain of a record is that of its served lists: with the model's weights on both sides only successions differ.
TEST_F(SuccessionsServed, GainsAreOfTheServedLists) {
  data::Sequences held_out;
  std::vector<double> expected;
  for (const auto& history : histories_) {
    const std::vector<int32_t> before = {history.back()};
    const int32_t target = ExpectedList(before)[0];
    const std::vector<int32_t> other = GetItems(*without_->Recommend(before, {.count = kCount}));
    const auto at = std::ranges::find(other, target);
    expected.push_back(1 - (at == other.end() ? 0 : Ndcg(static_cast<size_t>(at - other.begin()))));
    held_out.items.insert(held_out.items.end(), {before[0], target});
    held_out.offsets.push_back(held_out.items.size());
    held_out.user_keys.push_back(std::to_string(held_out.user_keys.size()));
  }
  const auto gains = Gains(with_->architecture(), weights_.data(), weights_.data(), held_out,
                           {.gain_scale = 1,
                            .num_targets = 1,
                            .lists_of_base = without_->file().lists(),
                            .lists_of_candidate = with_->file().lists()});
  ASSERT_EQ(gains.size(), expected.size());
  size_t won = 0;
  for (size_t i = 0; i < gains.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(gains[i].gain) / kGainSteps, expected[i], 1e-5) << i;
    won += expected[i] > 0;
  }
  EXPECT_GT(won, 5u);
}

}  // namespace
}  // namespace wisp::successions_served_test
