// Items that no list has are never sampled: those that were retired, and new ones that were not learned yet.
#include <gtest/gtest.h>

#include <set>

#include "runtime/model/catalogue.h"
#include "runtime/private_sampling/private_recommender.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::unlisted_items_test {
namespace {

constexpr int32_t kItems = 40, kNew = 12;
const UniformArchitecture kArchitecture = {
    .num_items = kItems, .max_length = 6, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};

class UnlistedItems : public ::testing::Test {
 protected:
  void Write(std::vector<int32_t> retired) {
    std::vector<std::string> keys;
    for (int32_t i = 0; i < kItems; ++i) keys.push_back("old " + std::to_string(i));
    const Status status = WriteModel(path_, {.architecture = kArchitecture,
                                             .weights = weights_,
                                             .item_keys = keys,
                                             .retired = std::move(retired),
                                             .provenance = {{.description = "fine-tuned", .dataset = "history"}}});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // Returns all items that 20 requests for all items sample.
  std::set<int32_t> Sample(const std::string& path, std::span<const int32_t> history) {
    const auto session = *Session::Open(path);
    auto ledger =
        *privacy::Ledger::Open(folder_ / "l", {.dataset = "history", .record = privacy::RecordSpec::OfEvents({})});
    auto recommender = PrivateRecommender::Create(*session, {.goal = {.lambda = 1e-3}, .ledger = &ledger});
    EXPECT_TRUE(recommender.ok()) << recommender.status().message();
    std::set<int32_t> sampled;
    for (int i = 0; i < 20; ++i) {
      const auto items = recommender->Recommend(history, {.count = kItems + kNew, .seen = SeenItems::kAllow});
      EXPECT_TRUE(items.ok()) << items.status().message();
      sampled.insert(items->begin(), items->end());
    }
    return sampled;
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.wisp";
  const std::vector<float> weights_ = test::RandomWeights(kArchitecture, 3);
};

TEST_F(UnlistedItems, RetiredItemsAreNeverSampled) {
  const std::vector<int32_t> history = {3, 17, 5}, retired = {0, 5, 17, 30};
  Write(retired);
  const std::set<int32_t> sampled = Sample(path_, history);
  EXPECT_EQ(sampled.size(), 36u);
  for (const int32_t item : retired) EXPECT_FALSE(sampled.contains(item)) << item;
}

TEST_F(UnlistedItems, NewItemsAreNeverSampled) {
  Write({});
  for (const char* neighbour : {"", "old 7"}) {
    std::vector<NewItem> items;
    for (int32_t i = 0; i < kNew; ++i) items.push_back({"new " + std::to_string(i), "", neighbour});
    const auto grown = AddItems(*ModelFile::Open(path_), items);
    ASSERT_TRUE(grown.ok()) << grown.status().message();
    const std::string path = folder_ / "grown.wisp";
    ASSERT_TRUE(WriteModel(path, grown->contents).ok());
    for (const std::vector<int32_t>& history : {std::vector<int32_t>{3, 17, 5}, {3, kItems + 1, 5}, {kItems + 2}}) {
      const std::set<int32_t> sampled = Sample(path, history);
      EXPECT_EQ(sampled.size(), static_cast<size_t>(kItems)) << neighbour;
      for (const int32_t item : sampled) EXPECT_LT(item, kItems) << neighbour;
    }
  }
}

}  // namespace
}  // namespace wisp::unlisted_items_test
