// Lists without training, and the two ways to divide a log, worked out by hand for ten events.
#include "runtime/train/run/baselines.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/train/list_scorer.h"
#include "runtime/train/run/records.h"

namespace wisp::baselines_test {
namespace {

using Items = std::vector<int32_t>;

// Users 0, 1 and 2 with the items 0 to 4, one event a second, of each user from 0 on.
data::Sequences TenEvents() {
  return {.items = {0, 1, 2, /**/ 0, 1, 3, /**/ 0, 2, 1, 3},
          .offsets = {0, 3, 6, 10},
          .item_keys = {"a", "b", "c", "d", "e"},
          .times = {0, 1, 2, /**/ 0, 1, 2, /**/ 0, 1, 2, 3}};
}

std::vector<std::span<const int32_t>> AllOf(const data::Sequences& s) { return DivideFromEnd(s, 4, 5).train; }

std::vector<Items> Copy(const std::vector<std::span<const int32_t>>& spans) {
  std::vector<Items> copy;
  for (const auto& span : spans) copy.emplace_back(span.begin(), span.end());
  return copy;
}

TEST(Baselines, Scores_AreThoseByHand) {
  const data::Sequences s = TenEvents();
  const Baselines baselines(5, AllOf(s));
  std::vector<float> scores(5);
  baselines.ScorePopularity(scores);
  EXPECT_EQ(scores, (std::vector<float>{3, 3, 2, 2, 0}));
  // After 0 came 1 twice and 2 once; after 1 came 3 twice and 2 once; after 2 came 1.
  const double once = std::log(2.0) / std::log(3.0);
  const auto expect = [&](const Items& history, const std::vector<double>& expected) {
    baselines.ScoreTransitions(history, scores);
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(scores[i], expected[i], 1e-6) << i;
  };
  expect({}, {0.001, 0.001, 0.002 / 3, 0.002 / 3, 0});
  expect({4}, {0.001, 0.001, 0.002 / 3, 0.002 / 3, 0});
  expect({2}, {0.001, 0.601, 0.002 / 3, 0.002 / 3, 0});
  expect({3, 4, 0, 1}, {0.001, 0.401, once + 0.002 / 3, 0.6 + 0.002 / 3, 0});
}

TEST(Baselines, AreRankedAsAModelsListsAre) {
  const data::Sequences s = TenEvents();
  const Items after_a_b = {0, 1}, after_b = {1}, after_e = {4};
  Workers workers(2);
  const auto evaluate = [&](std::span<const int32_t> history, int32_t target, const ModelLists& lists = {}) {
    const RankingCase cases[] = {{history, target}};
    return EvaluateBaselines(5, AllOf(s), cases, workers, lists);
  };
  // By transitions 3 stands before 2 and 0; by popularity behind both.
  EXPECT_EQ(evaluate(after_b, 3).transitions.ndcg_at_10, 1);
  EXPECT_EQ(evaluate(after_b, 3).popularity.ndcg_at_10, 0.5);
  // Where nothing followed, popularity decides, and the smaller number between equals.
  EXPECT_EQ(evaluate(after_e, 0).transitions.ndcg_at_10, 1);
  EXPECT_EQ(evaluate(after_e, 1).transitions.ndcg_at_10, Ndcg(1));
  // The model's rules hold: seen items, withheld items. Its successions are no part of a baseline.
  EXPECT_EQ(evaluate(after_a_b, 1).transitions.hit_at_10, 0);
  EXPECT_EQ(evaluate(after_a_b, 1, {.allow_seen = true}).transitions.ndcg_at_10, 0.5);
  const Items withheld = {2};
  EXPECT_EQ(evaluate(after_a_b, 3).transitions.ndcg_at_10, Ndcg(1));
  EXPECT_EQ(evaluate(after_a_b, 3, {.withheld = withheld}).transitions.ndcg_at_10, 1);
  const Succession successions[] = {{1, 4, 100}};
  EXPECT_EQ(evaluate(after_b, 3, {.successions = successions}).transitions.ndcg_at_10, 1);
  const RankingCase both[] = {{after_b, 3}, {after_a_b, 1}};
  const BaselineQuality mean = EvaluateBaselines(5, AllOf(s), both, workers);
  EXPECT_EQ(mean.transitions.ndcg_at_10, 0.5);
  EXPECT_EQ(mean.transitions.num_users, 2u);
}

TEST(DividedLog, FromEnd_LeavesTheTestedEventOut) {
  const data::Sequences s = TenEvents();
  const DividedLog last = DivideFromEnd(s, 1, 3);
  EXPECT_EQ(Copy(last.train), (std::vector<Items>{{0, 1}, {0, 1}, {0, 2, 1}}));
  ASSERT_EQ(last.cases.size(), 3u);
  EXPECT_EQ(last.cases[2].target, 3);
  EXPECT_EQ(last.cases[2].history.size(), 3u);
  // Records that are too short to be tested train whole.
  const DividedLog validation = DivideFromEnd(s, 2, 4);
  EXPECT_EQ(Copy(validation.train), (std::vector<Items>{{0, 1, 2}, {0, 1, 3}, {0, 2}}));
  ASSERT_EQ(validation.cases.size(), 1u);
  EXPECT_EQ(validation.cases[0].target, 1);
}

TEST(DividedLog, At_TestsTheFirstEventAfterTheMoment) {
  data::Sequences s = TenEvents();
  const DividedLog log = DivideAt(s, {.second = 1});
  EXPECT_EQ(Copy(log.train), (std::vector<Items>{{0, 1}, {0, 1}, {0, 2}}));
  ASSERT_EQ(log.cases.size(), 3u);
  EXPECT_EQ(log.cases[2].target, 1);
  EXPECT_EQ(log.cases[2].history.size(), 2u);
  // Baselines learn from the events that training takes.
  const data::Sequences until = data::EventsUntil(s, {.second = 1});
  for (size_t u = 0; u < 3; ++u) EXPECT_EQ(Copy({until.User(u)}), Copy({log.train[u]}));
  // A person who came later has no history for the first event. Nobody is tested where nothing is later.
  for (int64_t& time : s.times) time += 10;
  const DividedLog later = DivideAt(s, {.second = 5});
  EXPECT_EQ(Copy(later.train), (std::vector<Items>{{}, {}, {}}));
  ASSERT_EQ(later.cases.size(), 3u);
  EXPECT_EQ(later.cases[0].target, 1);
  EXPECT_EQ(later.cases[0].history.size(), 1u);
  EXPECT_TRUE(DivideAt(s, {.second = 13}).cases.empty());
}

}  // namespace
}  // namespace wisp::baselines_test
