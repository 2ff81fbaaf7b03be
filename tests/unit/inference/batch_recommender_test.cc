// Recommending for several histories at once: the results equal those one by one, bit for bit; bad requests change
// nothing; memory is as planned.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/inference/batch_recommender.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::batch_recommender_test {
namespace {

using Histories = std::vector<std::vector<int32_t>>;

std::vector<std::span<const int32_t>> MakeSpans(const Histories& histories) {
  return {histories.begin(), histories.end()};
}

// Makes histories of 1 to twice as many items as the model reads.
Histories RandomHistories(const Architecture& a, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Histories histories(count);
  for (auto& history : histories) {
    history.resize(1 + random() % (2 * a.max_length));
    for (int32_t& item : history) item = static_cast<int32_t>(random() % a.num_items);
  }
  return histories;
}

class BatchRecommenderTest : public ::testing::Test {
 protected:
  void Write(const Architecture& a, uint32_t seed, WeightStorage tables = WeightStorage::kFloat) {
    const std::vector<float> weights = test::RandomWeights(a, seed);
    ASSERT_TRUE(
        WriteModel(path_, {.architecture = a, .weights = weights, .created_by = "test", .storage = tables}).ok());
  }

  // Compares a batch of `session` with one by one in a session of its own.
  void ExpectOneByOne(Session& session, Backend backend, const BatchOptions& how, const Histories& histories,
                      const RecommendOptions& options) {
    const auto batch = *BatchRecommender::Create(session, how);
    const auto alone = *Session::Open(path_, backend);
    std::vector<Recommendation> best(histories.size() * options.count, {-7, 0});
    std::vector<size_t> found(histories.size(), 999);
    ASSERT_TRUE(batch->Recommend(MakeSpans(histories), options, best, found).ok());
    for (size_t i = 0; i < histories.size(); ++i) {
      const auto expected = *alone->Recommend(histories[i], options);
      ASSERT_EQ(found[i], expected.size()) << "history " << i;
      for (size_t r = 0; r < expected.size(); ++r) {
        const Recommendation& got = best[i * options.count + r];
        EXPECT_EQ(got.item, expected[r].item) << "history " << i << ", rank " << r;
        EXPECT_EQ(std::memcmp(&got.score, &expected[r].score, sizeof(float)), 0)
            << got.score << " and " << expected[r].score;
      }
    }
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.wisp";
};

TEST_F(BatchRecommenderTest, RefusesMoreThreadsThanAllowed) {
  const Architecture a = test::SmallArchitectures()[0];
  Write(a, 3);
  const auto session = *Session::Open(path_);
  EXPECT_TRUE(BatchRecommender::PlanMemory(a, {.num_threads = kMaxThreads}).ok());
  for (const size_t threads : {kMaxThreads + 1, SIZE_MAX}) {
    EXPECT_EQ(BatchRecommender::PlanMemory(a, {.num_threads = threads}).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(BatchRecommender::Create(*session, {.num_threads = threads}).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(BatchRecommenderTest, GivesWhatOneByOneGives) {
  std::vector<Architecture> all = test::SmallArchitectures();
  for (int of_either_storage = 0; of_either_storage < 2; ++of_either_storage)
    // Several tiles, the last one smaller.
    all.push_back(UniformArchitecture{
        .num_items = 700, .max_length = 20, .width = 24, .num_heads = 2, .num_blocks = 2, .inner_width = 40});
  uint32_t seed = 200;
  for (const Architecture& a : all) {
    ++seed;
    Write(a, seed, seed % 2 == 0 ? WeightStorage::kFloat : WeightStorage::kHalf);
    for (const Backend backend : {Backend::kSimd, Backend::kInt8}) {
      if (backend == Backend::kInt8 && kernels::Int8Ops() == nullptr) continue;
      const auto session = *Session::Open(path_, backend);
      for (const size_t count : {1, 2, 5, 17, 40}) {
        const Histories histories = RandomHistories(a, count, seed + static_cast<uint32_t>(count));
        ExpectOneByOne(*session, backend, {.num_threads = 1, .rows = 16}, histories, {.count = 4});
        ExpectOneByOne(*session, backend, {.num_threads = 3, .rows = 5}, histories, {.count = 3});
      }
    }
  }
}

TEST_F(BatchRecommenderTest, OptionsAreThoseOfOneByOne) {
  const UniformArchitecture a = {
      .num_items = 300, .max_length = 10, .width = 16, .num_heads = 2, .num_blocks = 1, .inner_width = 16};
  Write(a, 5);
  const auto session = *Session::Open(path_);
  const Histories histories = RandomHistories(a, 9, 6);
  const std::vector<int32_t> excluded = {0, 5, 299, 5}, candidates = {7, 3, 299, 64, 63, 7, 128, histories[0][0]};
  for (const BatchOptions& how : {BatchOptions{.rows = 4}, BatchOptions{.num_threads = 2, .rows = 64}}) {
    for (const SeenItems seen : {SeenItems::kExclude, SeenItems::kAllow}) {
      for (const size_t count : {0, 1, 10, 300, 1000}) {
        ExpectOneByOne(*session, Backend::kSimd, how, histories, {.count = count, .seen = seen});
        ExpectOneByOne(*session, Backend::kSimd, how, histories, {.count = count, .seen = seen, .excluded = excluded});
        ExpectOneByOne(*session, Backend::kSimd, how, histories,
                       {.count = count, .seen = seen, .excluded = excluded, .candidates = candidates});
      }
    }
  }
}

// The session's memory of its last history, and a batch's memory of its last call, change nothing.
TEST_F(BatchRecommenderTest, CallsAreIndependent) {
  const UniformArchitecture a = {.num_items = 90, .max_length = 8, .width = 16, .num_blocks = 2, .inner_width = 16};
  Write(a, 8);
  const auto session = *Session::Open(path_);
  const auto batch = *BatchRecommender::Create(*session, {.num_threads = 2, .rows = 3});
  std::vector<Recommendation> first(14 * 5), again(14 * 5);
  std::vector<size_t> found(14);
  const Histories histories = RandomHistories(a, 14, 9), others = RandomHistories(a, 7, 10);
  ASSERT_TRUE(batch->Recommend(MakeSpans(histories), {.count = 5}, first, found).ok());
  ASSERT_TRUE(batch->Recommend(MakeSpans(others), {.count = 5, .candidates = histories[0]}, again, found).ok());
  ASSERT_TRUE(session->Recommend(others[0], {.count = 5}).ok());
  ASSERT_TRUE(batch->Recommend(MakeSpans(histories), {.count = 5}, again, found).ok());
  EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(Recommendation)), 0);
}

// The app's executor does everything late, in reverse and twice.
TEST_F(BatchRecommenderTest, ThreadsOfTheAppDoTheSame) {
  const UniformArchitecture a = {.num_items = 90, .max_length = 8, .width = 16, .num_blocks = 1, .inner_width = 16};
  Write(a, 11);
  const auto session = *Session::Open(path_);
  const Executor executor = [](size_t tasks, const std::function<void(size_t)>& task) {
    for (size_t i = tasks; i-- > 0;) task(i), task(i);
  };
  ExpectOneByOne(*session, Backend::kSimd, {.num_threads = 3, .rows = 4, .executor = executor},
                 RandomHistories(a, 20, 12), {.count = 6});
}

TEST_F(BatchRecommenderTest, BadRequestsAreRefusedAndAssignNothing) {
  const UniformArchitecture a = {.num_items = 20, .max_length = 8, .width = 8, .num_blocks = 1, .inner_width = 8};
  Write(a, 13);
  const auto session = *Session::Open(path_);
  const auto batch = *BatchRecommender::Create(*session, {});
  std::vector<Recommendation> best(6, {-7, 0});
  std::vector<size_t> found(3, 999);
  const auto refused = [&](const Histories& histories, const RecommendOptions& options, const char* words) {
    const Status status = batch->Recommend(MakeSpans(histories), options, best, found);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    for (const Recommendation& r : best) EXPECT_EQ(r.item, -7);
    for (const size_t f : found) EXPECT_EQ(f, 999u);
  };
  const std::vector<int32_t> bad = {20};
  refused({{1}, {}, {2}}, {.count = 2}, "history 1 is empty");
  refused({{1}, {2}, {3, 20}}, {.count = 2}, "history 2 names item 20; the model has items 0 to 19");
  refused({{1}, {-1}}, {.count = 2}, "history 1 names item -1");
  refused({{1}}, {.count = 2, .excluded = bad}, "excluded items names item 20");
  refused({{1}}, {.count = 2, .candidates = bad}, "candidates names item 20");
  refused({{1}, {2}, {3}}, {.count = 3}, "too little for 3 histories");
  refused({{1}, {2}, {3}, {4}}, {.count = 1}, "too little for 4 histories");
  EXPECT_TRUE(batch->Recommend({}, {.count = 2}, best, found).ok());
  for (const size_t rows : {0, 1025}) EXPECT_FALSE(BatchRecommender::Create(*session, {.rows = rows}).ok());
}

TEST_F(BatchRecommenderTest, MemoryIsWhatWasPlanned) {
  for (const Architecture& a : test::SmallArchitectures()) {
    Write(a, 14);
    const auto session = *Session::Open(path_);
    for (const BatchOptions& how : {BatchOptions{}, BatchOptions{.num_threads = 2, .rows = 7}}) {
      const InferenceMemory plan = *BatchRecommender::PlanMemory(a, how),
                            held = (*BatchRecommender::Create(*session, how))->memory();
      EXPECT_EQ(plan.activations, held.activations);
      EXPECT_EQ(plan.scores, held.scores);
      EXPECT_EQ(held.packed_weights, 0u);
      EXPECT_EQ(plan.total(), held.total());
    }
  }
}

}  // namespace
}  // namespace wisp::batch_recommender_test
