// Items that were added and have not learned yet change nothing that people are served, in any path that ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/decoding/private_recommender.h"
#include "runtime/inference/batch_recommender.h"
#include "runtime/model/catalogue.h"
#include "runtime/personalise/judge.h"
#include "runtime/train/run/evaluate.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp {
namespace {

constexpr int32_t kOld = 40, kNew = 12;
const UniformArchitecture kArchitecture = {
    .num_items = kOld, .max_length = 5, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};
constexpr size_t kCount = 8;

class AddedItems : public ::testing::TestWithParam<bool> {
 protected:
  AddedItems() : weights_(testing::RandomWeights(kArchitecture, 3)) {
    std::vector<std::string> keys;
    for (int32_t i = 0; i < kOld; ++i) keys.push_back("old " + std::to_string(i));
    const ProvenanceEntry learned{
        .description = "trained", .mechanisms = {"none"}, .epsilon = 1, .noise = NoiseOrigin::kSecure, .dataset = "d"};
    EXPECT_TRUE(
        WriteModel(base_path_,
                   {.architecture = kArchitecture, .weights = weights_, .item_keys = keys, .provenance = {learned}})
            .ok());
    base_ = *Session::Open(base_path_);
    // Each beside what a person without a history would be shown first; or without a neighbour.
    const std::string popular = keys[static_cast<size_t>((*base_->Recommend({}, {.count = 1}))[0].item)];
    std::vector<NewItem> items;
    for (int32_t i = 0; i < kNew; ++i) items.push_back({"new " + std::to_string(i), "", GetParam() ? popular : ""});
    const ModelFile base = *ModelFile::Open(base_path_);
    const auto grown = AddItems(base, items);
    EXPECT_TRUE(grown.ok() && WriteModel(grown_path_, grown->contents).ok());
    grown_ = *Session::Open(grown_path_);
  }

  // Of old items, and the same with new ones between them.
  struct Histories {
    std::vector<int32_t> old, mixed;
  };
  Histories MakeHistories() {
    Histories h;
    for (size_t length = random_() % 12; h.mixed.size() < length;) {
      const bool is_new = random_() % 3 == 0;
      h.mixed.push_back(static_cast<int32_t>(is_new ? kOld + random_() % kNew : random_() % kOld));
      if (!is_new) h.old.push_back(h.mixed.back());
    }
    return h;
  }
  static std::vector<int32_t> ItemsOf(std::span<const Recommendation> list) {
    std::vector<int32_t> items;
    for (const Recommendation& r : list) items.push_back(r.item);
    return items;
  }

  test::TemporaryFolder folder_;
  const std::string base_path_ = folder_ / "base.wisp", grown_path_ = folder_ / "grown.wisp";
  std::vector<float> weights_;
  std::unique_ptr<Session> base_, grown_;
  std::mt19937 random_{5};
};

TEST_P(AddedItems, ListsAreThoseOfTheBase) {
  EXPECT_EQ(ItemsOf(*grown_->Recommend({}, {.count = kCount})), ItemsOf(*base_->Recommend({}, {.count = kCount})));
  for (int round = 0; round < 200; ++round) {
    const Histories h = MakeHistories();
    for (const size_t count : {kCount, size_t{kOld + kNew}}) {
      ASSERT_EQ(ItemsOf(*grown_->Recommend(h.mixed, {.count = count})),
                ItemsOf(*base_->Recommend(h.old, {.count = count})));
    }
  }
  // Not where they are asked for either.
  const std::vector<int32_t> candidates = {3, kOld, kOld + 1, 4};
  const auto list = *grown_->Recommend({}, {.count = 4, .candidates = candidates});
  EXPECT_EQ(list.size(), 2u);
}

TEST_P(AddedItems, ListsOfManyAreThoseOfOne) {
  std::vector<Histories> all;
  for (int i = 0; i < 100; ++i) all.push_back(MakeHistories());
  std::erase_if(all, [](const Histories& h) { return h.mixed.empty(); });
  ASSERT_TRUE(std::ranges::any_of(all, [](const Histories& h) { return h.old.empty(); })) << "of new items alone";
  const std::vector<std::span<const int32_t>> histories = [&] {
    std::vector<std::span<const int32_t>> mixed;
    for (const Histories& h : all) mixed.emplace_back(h.mixed);
    return mixed;
  }();
  const auto batch = *BatchRecommender::Create(*grown_, {.num_threads = 2, .rows = 3});
  std::vector<Recommendation> best(all.size() * kCount);
  std::vector<size_t> found(all.size());
  ASSERT_TRUE(batch->Recommend(histories, {.count = kCount}, best, found).ok());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(ItemsOf({best.data() + i * kCount, found[i]}), ItemsOf(*base_->Recommend(all[i].old, {.count = kCount})))
        << i;
  }
}

TEST_P(AddedItems, AreNotDrawn) {
  auto recommender = PrivateRecommender::Create(*grown_, {.goal = {.lambda = 1e-3}});
  ASSERT_TRUE(recommender.ok()) << recommender.status().message();
  for (int round = 0; round < 20; ++round) {
    const auto items = recommender->Recommend(MakeHistories().mixed, {.count = kOld + kNew});
    ASSERT_TRUE(items.ok()) << items.status().message();
    for (const int32_t item : *items) ASSERT_LT(item, kOld);
  }
}

TEST_P(AddedItems, EvaluationIsThatOfTheBase) {
  std::vector<Histories> all;
  for (int i = 0; i < 200; ++i) all.push_back(MakeHistories());
  std::erase_if(all, [](const Histories& h) { return h.old.empty(); });
  std::vector<RankingCase> old, mixed, of_new;
  for (const Histories& h : all) {
    const auto target = static_cast<int32_t>(random_() % kOld);
    old.push_back({h.old, target});
    mixed.push_back({h.mixed, target});
    of_new.push_back({h.mixed, kOld + target % kNew});
  }
  Workers workers(1, {});
  const auto quality = [&](const Session& session, const std::vector<RankingCase>& cases) {
    return EvaluateModel(session.file(), cases, workers, SeenItems::kExclude);
  };
  EXPECT_GT(quality(*base_, old).ndcg_at_10, 0);
  EXPECT_EQ(quality(*grown_, mixed).ndcg_at_10, quality(*base_, old).ndcg_at_10);
  EXPECT_EQ(quality(*grown_, of_new).ndcg_at_10, 0) << "no list has a new item";
}

// A candidate in which they have learned is judged against what is served, where they have not.
TEST_P(AddedItems, JudgingRanksEachModelAsItIsServed) {
  data::Sequences records;
  records.item_keys.resize(kOld + kNew);
  for (int u = 0; u < 50; ++u) {
    Histories h = MakeHistories();
    h.mixed.insert(h.mixed.begin(), 1);
    for (int i = 0; i < 3; ++i) h.mixed.push_back(static_cast<int32_t>(random_() % kOld));
    records.items.insert(records.items.end(), h.mixed.begin(), h.mixed.end());
    records.offsets.push_back(records.items.size());
    records.user_keys.push_back(std::to_string(u));
  }
  const ModelFile& grown = grown_->file();
  const ParameterSource weights(grown.tensors());
  const auto gains = [&](std::span<const int32_t> of_base, std::span<const int32_t> of_candidate) {
    int64_t sum = 0;
    for (const GainOnGrid& gain : Gains(grown.architecture(), weights, weights, records,
                                        {.gain_scale = 1,
                                        .num_targets = 3,
                                        .untrained_of_base = of_base,
                                        .untrained_of_candidate = of_candidate,
                                        .num_threads = 1}))
      sum += gain.gain;
    return sum;
  };
  EXPECT_EQ(gains(grown.untrained(), grown.untrained()), 0);
  EXPECT_NE(gains(grown.untrained(), {}), 0) << "lists that show them are others";
  EXPECT_EQ(gains(grown.untrained(), {}), -gains({}, grown.untrained()));
}

INSTANTIATE_TEST_SUITE_P(WithANeighbourAndWithout, AddedItems, ::testing::Bool());

}  // namespace
}  // namespace wisp
