// The session: scores equal the naive recommender's, recommendations respect exclusions, bad requests are refused.
#include <gtest/gtest.h>
#include <pthread.h>

#include <random>

#include "runtime/core/served_list.h"
#include "runtime/inference/batch_recommender.h"
#include "runtime/inference/session.h"
#include "runtime/train/list_scorer.h"
#include "runtime/train/run/evaluate.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/parameter_names.h"

namespace wisp::inference_test {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> Open(const Architecture& a, uint32_t seed) {
    weights_ = test::RandomWeights(a, seed);
    EXPECT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights_, .created_by = "test"}).ok());
    auto session = Session::Open(path_);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }

  // Expects that scores after a history that changes from step to step equal those of a session that sees it for the
  // first time.
  void ExpectNothingRemembered(const Architecture& a, uint32_t seed, Backend backend) {
    const auto session = *Session::Open(path_, backend);
    std::vector<int32_t> history;
    std::vector<float> scores(a.num_items), fresh(a.num_items);
    std::mt19937 random(seed);
    for (int i = 0; i < 60; ++i) {
      const auto item = static_cast<int32_t>(random() % a.num_items);
      if (i % 11 == 10) history.resize(1 + random() % history.size());
      if (i % 17 == 16) history[random() % history.size()] = item;
      if (i % 7 != 6) history.push_back(item);
      if (i % 5 == 4) history.insert(history.end(), {item, 0, 1});
      if (history.size() > 2 * a.max_length) history.clear(), history.push_back(item);
      ASSERT_TRUE(session->Score(history, scores).ok());
      ASSERT_TRUE((*Session::Open(path_, backend))->Score(history, fresh).ok());
      ASSERT_EQ(scores, fresh) << "after " << history.size() << " items, step " << i << ", seed " << seed;
    }
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.wisp";
  std::vector<float> weights_;
};

TEST_F(SessionTest, ScoresEqualTheNaiveRecommender) {
  uint32_t seed = 30;
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(UniformArchitecture{.num_items = 9, .max_length = 6, .width = 8, .num_blocks = 0, .inner_width = 8});
  for (const Architecture& a : all) {
    const auto session = Open(a, ++seed);
    const std::vector<double> exact(weights_.begin(), weights_.end());
    const test::NaiveRecommender<double> naive(a, exact);
    for (size_t length : {1, 2, 6, 9}) {
      const std::vector<int32_t> history = test::RandomRecord(a.num_items, length, seed).inputs;
      const size_t read = std::min<size_t>(length, a.max_length);  // the newest
      const auto expected = naive.Logits(naive.Encode(std::span(history).last(read)).back());
      std::vector<float> scores(a.num_items);
      ASSERT_TRUE(session->Score(history, scores).ok());
      for (size_t j = 0; j < scores.size(); ++j)
        EXPECT_NEAR(scores[j], expected[j], 2e-5 * (1 + std::abs(expected[j])));
    }
  }
}

// The key/value cache of the last history changes no bit: the test appends events one by one or several at a time, and
// has histories that diverge, shrink, repeat, and slide out of the window.
TEST_F(SessionTest, ScoresDoNotDependOnTheHistoriesBefore) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(UniformArchitecture{
      .num_items = 50, .max_length = 30, .width = 32, .num_heads = 2, .num_blocks = 3, .inner_width = 40});
  all.push_back(UniformArchitecture{.num_items = 9, .max_length = 5, .width = 8, .num_blocks = 0, .inner_width = 8});
  all.push_back(all.back());
  all.back().final_norm_epsilon = {};
  uint32_t seed = 90;
  for (const Architecture& a : all) {
    Open(a, ++seed);
    ExpectNothingRemembered(a, seed, Backend::kSimd);
    if (kernels::Int8Ops() != nullptr) ExpectNothingRemembered(a, seed, Backend::kInt8);
  }
}

// Inference computes from the file what training's graph computes with the variances that noise left.
TEST_F(SessionTest, StoredVariancesCorrectScores) {
  for (const Architecture& a : test::SmallArchitectures()) {
    if (a.re_attention != ReAttention::kOn) continue;
    const std::vector<int32_t> history = test::RandomRecord(a.num_items, a.max_length, 3).inputs;
    std::vector<float> scores(a.num_items), without(a.num_items);
    ASSERT_TRUE(Open(a, 21)->Score(history, scores).ok());
    // The loss of the training graph at the newest position, from the file's scores.
    for (int32_t target = 0; target < static_cast<int32_t>(a.num_items); ++target) {
      std::vector<int32_t> targets(history.size(), -1);
      targets.back() = target;
      test::Harness training(a, weights_, kernels::BestOps());
      double sum = 0;
      for (float s : scores) sum += std::exp(static_cast<double>(s));
      const double loss = training.Loss({history, targets});
      EXPECT_NEAR(loss, std::log(sum) - scores[static_cast<size_t>(target)], 1e-4 * (1 + loss));
    }
    std::vector<float> zeroed = weights_;
    for (const ParameterSpec& p : ListParameters(a)) {
      if (p.name != test::kItemVariance && p.name != test::kParameterVariance) continue;
      std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(p.offset), p.size(), 0.0f);
    }
    ASSERT_TRUE(WriteModel(path_, {.architecture = a, .weights = zeroed, .created_by = "test"}).ok());
    ASSERT_TRUE((*Session::Open(path_))->Score(history, without).ok());
    double moved = 0;
    for (size_t j = 0; j < scores.size(); ++j)
      moved = std::max(moved, static_cast<double>(std::abs(scores[j] - without[j])));
    EXPECT_GT(moved, 1e-2);
  }
}

// Threads of other C libraries have 128 KB of stack; the products' copies must fit.
TEST_F(SessionTest, ASmallStackIsEnough) {
  const UniformArchitecture a = {
      .num_items = 900, .max_length = 40, .width = 48, .num_heads = 2, .num_blocks = 1, .inner_width = 700};
  Open(a, 70);
  for (Backend backend : {Backend::kSimd, Backend::kInt8}) {
    if (backend == Backend::kInt8 && kernels::Int8Ops() == nullptr) continue;
    const auto session = *Session::Open(path_, backend);
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
    pthread_t thread;
    const auto score = [](void* s) -> void* {
      std::vector<float> scores(900);
      const Status status = static_cast<Session*>(s)->Score(std::vector<int32_t>(40, 7), scores);
      return status.ok() ? s : nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, score, session.get()), 0);
    void* result = nullptr;
    pthread_join(thread, &result);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(result, session.get());
  }
}

TEST_F(SessionTest, XnnpackScoresEqualSimdScores) {
  const UniformArchitecture a = {
      .num_items = 700, .max_length = 40, .width = 32, .num_heads = 2, .num_blocks = 2, .inner_width = 48};
  const auto simd = Open(a, 50);
  if (kernels::XnnpackOps() == nullptr) {
    EXPECT_EQ(Session::Open(path_, Backend::kXnnpack).status().code(), StatusCode::kUnsupported);
    GTEST_SKIP() << "this build has no XNNPACK";
  }
  for (int again = 0; again < 20; ++again) {  // made and released, so that a leak checker sees leaks
    const auto session = *Session::Open(path_, Backend::kXnnpack);
    for (size_t length : {1, 7, 40}) {
      const std::vector<int32_t> history = test::RandomRecord(a.num_items, length, 60).inputs;
      std::vector<float> expected(a.num_items), scores(a.num_items);
      ASSERT_TRUE(simd->Score(history, expected).ok());
      ASSERT_TRUE(session->Score(history, scores).ok());
      for (size_t j = 0; j < scores.size(); ++j)
        ASSERT_NEAR(scores[j], expected[j], 1e-4 * (1 + std::abs(expected[j])));
    }
  }
}

// Quantised scores order items nearly like the exact ones: their error is a few percent of the spread of scores.
TEST_F(SessionTest, Int8ScoresAreNearSimdScores) {
  if (kernels::Int8Ops() == nullptr) GTEST_SKIP() << "this processor has no 8-bit kernels";
  const UniformArchitecture a = {
      .num_items = 700, .max_length = 40, .width = 64, .num_heads = 2, .num_blocks = 2, .inner_width = 96};
  const auto simd = Open(a, 51);
  const auto session = *Session::Open(path_, Backend::kInt8);
  EXPECT_LT(session->planned_bytes(), simd->planned_bytes());
  for (size_t length : {1, 7, 40}) {
    const std::vector<int32_t> history = test::RandomRecord(a.num_items, length, 61).inputs;
    std::vector<float> exact(a.num_items), scores(a.num_items);
    ASSERT_TRUE(simd->Score(history, exact).ok());
    ASSERT_TRUE(session->Score(history, scores).ok());
    double error = 0, spread = 0, mean = 0;
    for (float s : exact) mean += s / static_cast<double>(a.num_items);
    for (size_t j = 0; j < scores.size(); ++j) {
      error += (scores[j] - exact[j]) * (scores[j] - exact[j]);
      spread += (exact[j] - mean) * (exact[j] - mean);
    }
    EXPECT_LT(std::sqrt(error / spread), 0.05) << "length " << length;
    EXPECT_GT(error, 0) << "nothing was quantised";
  }
}

TEST_F(SessionTest, RecommendationsAreTheBestThatAreAllowed) {
  const Architecture a = test::SmallArchitectures()[0];
  const auto session = Open(a, 40);
  const std::vector<int32_t> history = {1, 4};
  std::vector<float> scores(a.num_items);
  ASSERT_TRUE(session->Score(history, scores).ok());
  const auto expect = [&](const RecommendOptions& options, auto&& allowed) {
    std::vector<int32_t> order;
    for (int32_t i = 0; i < static_cast<int32_t>(a.num_items); ++i) {
      if (allowed(i)) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](int32_t x, int32_t y) { return scores[x] > scores[y]; });
    order.resize(std::min(order.size(), options.count));
    const auto top = *session->Recommend(history, options);
    ASSERT_EQ(top.size(), order.size());
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].item, order[i]);
      EXPECT_EQ(top[i].score, scores[static_cast<size_t>(order[i])]);
    }
  };
  const std::vector<int32_t> excluded = {0, 7}, candidates = {2, 4, 5, 5, 7};
  expect({.count = 3}, [](int32_t i) { return i != 1 && i != 4; });
  expect({.count = 100}, [](int32_t i) { return i != 1 && i != 4; });
  expect({.count = 0}, [](int32_t) { return true; });
  expect({.count = 9, .seen = SeenItems::kAllow}, [](int32_t) { return true; });
  expect({.count = 9, .excluded = excluded}, [](int32_t i) { return i != 1 && i != 4 && i != 0 && i != 7; });
  expect({.count = 9, .candidates = candidates}, [](int32_t i) { return i == 2 || i == 5 || i == 7; });
}

TEST_F(SessionTest, BadRequestsAreNamed) {
  const auto session = Open(test::SmallArchitectures()[0], 41);
  const auto message = [&](std::vector<int32_t> history, const RecommendOptions& options) {
    const auto result = session->Recommend(history, options);
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    return result.status().message();
  };
  EXPECT_NE(message({9}, {}).find("item 9"), std::string::npos);
  EXPECT_NE(message({-1}, {}).find("item -1"), std::string::npos);
  const std::vector<int32_t> far = {99};
  EXPECT_NE(message({1}, {.excluded = far}).find("99"), std::string::npos);
  EXPECT_NE(message({1}, {.candidates = far}).find("99"), std::string::npos);
}

// Items without a finite score are left out, and the result says so: nobody takes the rest for all there is.
TEST(TopK, ScoresThatAreNotFiniteAreSaid) {
  const auto all_finite = [](std::vector<float> scores, size_t room) {
    std::vector<Recommendation> best(room);
    TopK top(best);
    top.OfferAll(0, scores, [](size_t) { return false; });
    best.resize(top.Finish());
    for (const Recommendation& r : best) EXPECT_TRUE(std::isfinite(r.score));
    return top.all_finite();
  };
  for (const size_t room : {1, 2, 9}) {
    EXPECT_TRUE(all_finite({1, 3, 2}, room));
    EXPECT_FALSE(all_finite({1, 3, NAN}, room));
    EXPECT_FALSE(all_finite({NAN, 3, 1}, room));
    EXPECT_FALSE(all_finite({1, 3, INFINITY}, room));
    EXPECT_FALSE(all_finite({-INFINITY, 3, 1}, room));
  }
  EXPECT_FALSE(all_finite({1, 3, -INFINITY}, 9)) << "there is room for it";
}

// The position that evaluation counts by is the place in the list of Session::Recommend. The test compares every item
// of every case: with copied rows (equal scores), repeats, retired items, and lists that end early. Both take only from
// the model if items of the history may come again.
TEST_F(SessionTest, PositionsAreThoseOfTheServedList) {
  const Architecture a = UniformArchitecture{
      .num_items = 60, .max_length = 8, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 16};
  const auto parameters = ListParameters(a);
  std::vector<float> weights = test::RandomWeights(a, 11);
  // Every third item is a copy of the one before it, like a new item beside its neighbour.
  for (const ParameterSpec& p : parameters) {
    const bool is_bias = p.role == ParameterRole::kOutputBias;
    const bool of_items = is_bias || p.role == ParameterRole::kItemTable || p.role == ParameterRole::kOutputTable;
    const size_t width = is_bias ? 1 : p.cols;
    for (size_t i = 2; of_items && i < a.num_items; i += 3)
      std::copy_n(&weights[p.offset + (i - 1) * width], width, &weights[p.offset + i * width]);
  }
  const std::vector<int32_t> retired = {4, 5, 30};
  Workers workers(2);
  std::mt19937 random(3);
  size_t ties = 0, repeats = 0;
  for (const bool allow_seen : {false, true}) {
    ASSERT_TRUE(
        WriteModel(
            path_,
            {.architecture = a, .weights = weights, .retired = retired, .allow_seen = allow_seen, .created_by = "test"})
            .ok());
    const auto session = *Session::Open(path_);
    ServedList list(a.num_items, session->file().lists());
    std::vector<float> scores(a.num_items);
    for (size_t length = 1; length < 30; ++length) {
      std::vector<int32_t> history;
      for (size_t t = 0; t < length; ++t) history.push_back(static_cast<int32_t>(random() % 60));
      ASSERT_TRUE(session->Score(history, scores).ok());
      const auto served = *session->Recommend(history, {}), all = *session->Recommend(history, {.count = 60});
      for (size_t i = 1; i < all.size(); ++i) ties += all[i].score == all[i - 1].score;
      for (int32_t target = 0; target < 60; ++target) {
        const auto place = [&](const std::vector<Recommendation>& best) -> std::optional<size_t> {
          const auto at = std::find_if(best.begin(), best.end(), [&](auto& r) { return r.item == target; });
          if (at == best.end()) return std::nullopt;
          return static_cast<size_t>(at - best.begin());
        };
        const RankingCase one{history, target};
        const RankingQuality q = EvaluateModel(session->file(), {&one, 1}, workers);
        EXPECT_EQ(q.hit_at_10, place(served) ? 1 : 0) << length << ", item " << target;
        EXPECT_DOUBLE_EQ(q.ndcg_at_10, Ndcg(place(served))) << length << ", item " << target;
        EXPECT_EQ(list.FindPosition(target, scores, history, {.count = 60}), place(all)) << length << ", " << target;
        const bool repeat = std::find(history.begin(), history.end(), target) != history.end();
        repeats += repeat && place(served);
        EXPECT_FALSE(repeat && place(all) && !allow_seen) << target << " is credited, and never shown";
      }
    }
  }
  EXPECT_GT(ties, 500u);
  EXPECT_GT(repeats, 30u);
}

// A call's options override the model's; options that it leaves open come from the model.
TEST_F(SessionTest, ACallMayDifferFromTheModel) {
  const Architecture a = UniformArchitecture{
      .num_items = 12, .max_length = 8, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 16};
  const std::vector<float> weights = test::RandomWeights(a, 5);
  const std::vector<int32_t> history = {3, 7, 3};
  for (const bool allow_seen : {false, true}) {
    ASSERT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights, .allow_seen = allow_seen}).ok());
    const auto session = *Session::Open(path_);
    const auto batch = *BatchRecommender::Create(*session, {.num_threads = 1});
    const std::vector<std::span<const int32_t>> histories = {history};
    const auto length = [&](SeenItems seen) {
      std::vector<Recommendation> best(12);
      std::vector<size_t> found(1);
      EXPECT_TRUE(batch->Recommend(histories, {.count = 12, .seen = seen}, best, found).ok());
      EXPECT_EQ(session->Recommend(history, {.count = 12, .seen = seen})->size(), found[0]);
      return found[0];
    };
    EXPECT_EQ(length(SeenItems::kAsModel), allow_seen ? 12u : 10u);
    EXPECT_EQ(length(SeenItems::kAllow), 12u);
    EXPECT_EQ(length(SeenItems::kExclude), 10u);
  }
}

TEST(Evaluate, HiddenItems_CountNothing) {
  EXPECT_DOUBLE_EQ(Ndcg(0), 1.0);
  EXPECT_NEAR(Ndcg(2), 0.5, 1e-12);
  EXPECT_EQ(Ndcg(std::nullopt), 0);
  ServedList list(5, {});
  const std::vector<float> scores = {0.5f, 0.9f, 0.5f, -1.0f, 0.1f}, damaged = {0.5f, 0.9f, NAN, -1.0f, 0.1f};
  const std::vector<int32_t> history = {1};
  EXPECT_EQ(list.FindPosition(0, scores, history, {}), 0u) << "before the tie 2, which is younger";
  EXPECT_EQ(list.FindPosition(2, scores, history, {}), 1u);
  EXPECT_EQ(list.FindPosition(1, scores, history, {}), std::nullopt) << "it is not offered again";
  EXPECT_EQ(list.FindPosition(1, scores, history, {.seen = SeenItems::kAllow}), 0u);
  EXPECT_EQ(list.FindPosition(3, scores, history, {.count = 3}), std::nullopt) << "the list is shorter";
  EXPECT_EQ(list.FindPosition(0, damaged, history, {}), std::nullopt) << "such a list is not served";
}

}  // namespace
}  // namespace wisp::inference_test
