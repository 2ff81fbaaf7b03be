// Several histories at once on a device: the results equal those one by one there, bit for bit; memory is as planned; a
// failing device gives no wrong results.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/inference/batch_recommender.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/device/cuda/device_test_util.h"

namespace wisp::device_batch_test {
namespace {

using test::FailingMemory, test::TheDevice;
using Histories = std::vector<std::vector<int32_t>>;

const UniformArchitecture kLarger = {
    .num_items = 700, .max_length = 20, .width = 24, .num_heads = 2, .num_blocks = 2, .inner_width = 40};

std::vector<std::span<const int32_t>> MakeSpans(const Histories& histories) {
  return {histories.begin(), histories.end()};
}

Histories RandomHistories(const Architecture& a, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Histories histories(count);
  for (auto& history : histories) {
    history.resize(1 + random() % (2 * a.max_length));
    for (int32_t& item : history) item = static_cast<int32_t>(random() % a.num_items);
  }
  return histories;
}

class DeviceBatchTest : public ::testing::Test {
 protected:
  void Write(const Architecture& a, uint32_t seed, WeightStorage tables = WeightStorage::kFloat) {
    const std::vector<float> weights = test::RandomWeights(a, seed);
    ASSERT_TRUE(
        WriteModel(path_, {.architecture = a, .weights = weights, .created_by = "test", .storage = tables}).ok());
  }
  std::unique_ptr<Session> Open(const kernels::Device& device = TheDevice()) {
    auto session = Session::Open(path_, SessionOptions{.device = device});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }
  void ExpectOneByOne(const BatchOptions& how, const Histories& histories, const RecommendOptions& options) {
    const auto session = Open(), alone = Open();
    const auto batch = *BatchRecommender::Create(*session, how);
    std::vector<Recommendation> best(histories.size() * options.count, {-7, 0});
    std::vector<size_t> found(histories.size(), 999);
    const Status status = batch->Recommend(MakeSpans(histories), options, best, found);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < histories.size(); ++i) {
      const auto expected = *alone->Recommend(histories[i], options);
      ASSERT_EQ(found[i], expected.size()) << "history " << i;
      for (size_t r = 0; r < expected.size(); ++r) {
        const Recommendation& got = best[i * options.count + r];
        ASSERT_EQ(got.item, expected[r].item) << "history " << i << ", rank " << r;
        ASSERT_EQ(std::memcmp(&got.score, &expected[r].score, sizeof(float)), 0)
            << got.score << " and " << expected[r].score;
      }
    }
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.wisp";
};

TEST_F(DeviceBatchTest, GivesWhatOneByOneGives) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(kLarger);
  uint32_t seed = 200;
  for (const Architecture& a : all) {
    SCOPED_TRACE(++seed);
    Write(a, seed, seed % 2 == 0 ? WeightStorage::kFloat : WeightStorage::kHalf);
    ExpectOneByOne({.rows = 16}, RandomHistories(a, 18, seed), {.count = 4});
    ExpectOneByOne({.num_threads = 3, .rows = 1}, RandomHistories(a, 2, seed), {.count = 3});
  }
}

// Both tile sizes of products, and more records than one launch names.
TEST_F(DeviceBatchTest, ManyHistoriesPassTogether) {
  const UniformArchitecture a = {
      .num_items = 300, .max_length = 3, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};
  Write(a, 3);
  for (const size_t rows : {size_t{20}, size_t{70}, size_t{140}})
    ExpectOneByOne({.rows = rows}, RandomHistories(a, rows, 7), {.count = 5});
}

TEST_F(DeviceBatchTest, OptionsAreThoseOfOneByOne) {
  Write(kLarger, 5);
  const Histories histories = RandomHistories(kLarger, 7, 6);
  const std::vector<int32_t> excluded = {0, 5, 699, 5}, candidates = {7, 3, 699, 64, 63, 7, 128, histories[0][0]};
  for (const SeenItems seen : {SeenItems::kExclude, SeenItems::kAllow}) {
    for (const size_t count : {size_t{0}, size_t{10}, kernels::kMostTopK + 1, size_t{1000}}) {
      ExpectOneByOne({.rows = 4}, histories, {.count = count, .seen = seen});
      ExpectOneByOne({.rows = 4}, histories,
                     {.count = count, .seen = seen, .excluded = excluded, .candidates = candidates});
    }
  }
}

TEST_F(DeviceBatchTest, BadRequestsAssignNothing) {
  Write(kLarger, 13);
  const auto session = Open();
  const auto batch = *BatchRecommender::Create(*session, {});
  std::vector<Recommendation> best(6, {-7, 0});
  std::vector<size_t> found(3, 999);
  const Histories histories = {{1}, {2}, {3, 700}};
  const Status status = batch->Recommend(MakeSpans(histories), {.count = 2}, best, found);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  for (const Recommendation& r : best) EXPECT_EQ(r.item, -7);
}

TEST_F(DeviceBatchTest, MemoryIsWhatWasPlanned) {
  for (const Architecture& a : test::SmallArchitectures()) {
    Write(a, 14);
    const auto session = Open();
    for (const size_t rows : {1, 7}) {
      const InferenceMemory plan = *BatchRecommender::PlanMemory(a, {.rows = rows}, TheDevice());
      const size_t before = kernels::cuda::AllocatedBytes();
      const auto batch = *BatchRecommender::Create(*session, {.rows = rows});
      EXPECT_EQ(kernels::cuda::AllocatedBytes() - before, plan.on_device);
      EXPECT_EQ(batch->memory().total(), plan.total());
    }
  }
}

TEST_F(DeviceBatchTest, ADeviceThatFailsGivesAnError) {
  Write(kLarger, 15);
  const Histories histories = RandomHistories(kLarger, 5, 16);
  bool reached_the_end = false;
  for (int calls = 0; !reached_the_end; ++calls) {
    FailingMemory memory(calls);
    const auto session = Session::Open(path_, SessionOptions{.device = memory.device()});
    if (!session.ok()) continue;
    const auto batch = *BatchRecommender::Create(**session, {.rows = 3});
    std::vector<Recommendation> best(20);
    std::vector<size_t> found(5);
    const Status status = batch->Recommend(MakeSpans(histories), {.count = 4}, best, found);
    reached_the_end = status.ok();
    EXPECT_NE(status.ok(), memory.failed());
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kIo);
    }
  }
}

TEST_F(DeviceBatchTest, TooLittleMemory_IsSaidAndLeavesNothing) {
  Write(kLarger, 17);
  for (int allocations = 4;; ++allocations) {
    FailingMemory memory(allocations, /*of_allocations=*/true);
    const auto session = Session::Open(path_, SessionOptions{.device = memory.device()});
    if (!session.ok()) continue;
    const size_t before = kernels::cuda::AllocatedBytes();
    const auto batch = BatchRecommender::Create(**session, {});
    if (batch.ok()) break;
    EXPECT_EQ(batch.status().code(), StatusCode::kIo);
    EXPECT_NE(batch.status().message().find("for a batch, which takes"), std::string::npos);
    EXPECT_EQ(kernels::cuda::AllocatedBytes(), before);
  }
}

}  // namespace
}  // namespace wisp::device_batch_test
