// Items that were added and have not been learned yet do not change any served list, in any path that ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/inference/batch_recommender.h"
#include "runtime/model/catalogue.h"
#include "runtime/personalise/evaluate_candidate.h"
#include "runtime/train/list_scorer.h"
#include "runtime/train/run/evaluate.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::added_items_test {
namespace {

constexpr int32_t kOld = 40, kNew = 12;
const UniformArchitecture kArchitecture = {
    .num_items = kOld, .max_length = 5, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};
constexpr size_t kCount = 8;

class AddedItems : public ::testing::TestWithParam<bool> {
 protected:
  AddedItems() : weights_(test::RandomWeights(kArchitecture, 3)) {
    std::vector<std::string> keys;
    for (int32_t i = 0; i < kOld; ++i) keys.push_back("old " + std::to_string(i));
    const ProvenanceEntry learned{
        .description = "trained", .mechanisms = {"none"}, .epsilon = 1, .noise = NoiseOrigin::kSecure, .dataset = "d"};
    EXPECT_TRUE(
        WriteModel(base_path_,
                   {.architecture = kArchitecture, .weights = weights_, .item_keys = keys, .provenance = {learned}})
            .ok());
    base_ = *Session::Open(base_path_);
    // Each new item is beside the most popular one for a user without history, or without a neighbour.
    const std::string popular = keys[static_cast<size_t>((*base_->Recommend({}, {.count = 1}))[0].item)];
    std::vector<NewItem> items;
    for (int32_t i = 0; i < kNew; ++i) items.push_back({"new " + std::to_string(i), "", GetParam() ? popular : ""});
    const ModelFile base = *ModelFile::Open(base_path_);
    const auto grown = AddItems(base, items);
    EXPECT_TRUE(grown.ok() && WriteModel(grown_path_, grown->contents).ok());
    grown_ = *Session::Open(grown_path_);
  }

  // Makes a model of other weights with the same new items, and with counts if `origin` says so.
  std::unique_ptr<Session> Grown(uint64_t seed, OutputBiasOrigin origin) {
    UniformArchitecture architecture = kArchitecture;
    if (origin != OutputBiasOrigin::kNone) architecture.output_bias = OutputBias::kFixed;
    std::vector<std::string> keys;
    for (int32_t i = 0; i < kOld; ++i) keys.push_back("old " + std::to_string(i));
    const std::string path = folder_ / ("other " + std::to_string(seed) + ".wisp");
    EXPECT_TRUE(WriteModel(path, {.architecture = architecture,
                                  .weights = test::RandomWeights(architecture, seed),
                                  .item_keys = keys,
                                  .output_bias_origin = origin})
                    .ok());
    std::vector<NewItem> items;
    for (int32_t i = 0; i < kNew; ++i) items.push_back({"new " + std::to_string(i), "", GetParam() ? "old 7" : ""});
    const auto grown = AddItems(*ModelFile::Open(path), items);
    EXPECT_TRUE(grown.ok() && WriteModel(path + ".grown", grown->contents).ok());
    return *Session::Open(path + ".grown");
  }

  // Histories of old items, and the same with new items between them.
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
  static std::vector<int32_t> GetItems(std::span<const Recommendation> list) {
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
  EXPECT_EQ(GetItems(*grown_->Recommend({}, {.count = kCount})), GetItems(*base_->Recommend({}, {.count = kCount})));
  for (int round = 0; round < 200; ++round) {
    const Histories h = MakeHistories();
    for (const size_t count : {kCount, size_t{kOld + kNew}}) {
      ASSERT_EQ(GetItems(*grown_->Recommend(h.mixed, {.count = count})),
                GetItems(*base_->Recommend(h.old, {.count = count})));
    }
  }
  // New items are not listed even if they are asked for.
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
    ASSERT_EQ(GetItems({best.data() + i * kCount, found[i]}),
              GetItems(*base_->Recommend(all[i].old, {.count = kCount})))
        << i;
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
    return EvaluateModel(session.file(), cases, workers);
  };
  EXPECT_GT(quality(*base_, old).ndcg_at_10, 0);
  EXPECT_EQ(quality(*grown_, mixed).ndcg_at_10, quality(*base_, old).ndcg_at_10);
  EXPECT_EQ(quality(*grown_, of_new).ndcg_at_10, 0) << "no list has a new item";
}

// A candidate in which new items have learned is compared with the served model, in which they have not.
TEST_P(AddedItems, EvaluationRanksEachModelAsItIsServed) {
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
  const ModelLists before = grown.lists(), after = {};
  const auto gains = [&](const ModelLists& of_base, const ModelLists& of_candidate) {
    int64_t sum = 0;
    for (const GainOnGrid& gain : Gains(grown.architecture(), weights, weights, records,
                                        {.gain_scale = 1,
                                        .num_targets = 3,
                                        .lists_of_base = of_base,
                                        .lists_of_candidate = of_candidate,
                                        .num_threads = 1}))
      sum += gain.gain;
    return sum;
  };
  EXPECT_EQ(gains(before, before), 0);
  EXPECT_NE(gains(before, after), 0) << "lists that show them are others";
  EXPECT_EQ(gains(before, after), -gains(after, before));
}

// If new items are all of a history, the list is that of a user without history, with and without counts in the model.
TEST_P(AddedItems, EvaluationAndEvaluationAreOfTheListsThatAreServed) {
  Workers workers(1, {});
  for (const OutputBiasOrigin origin : {OutputBiasOrigin::kNone, OutputBiasOrigin::kPublicCounts}) {
    const std::unique_ptr<Session> base = Grown(11, origin), candidate = Grown(12, origin);
    const auto value = [](Session& session, std::span<const int32_t> history, int32_t wanted) {
      const std::vector<int32_t> list = GetItems(*session.Recommend(history, {.count = kListLength}));
      const auto at = std::ranges::find(list, wanted);
      return at == list.end() ? 0 : Ndcg(at - list.begin());
    };
    data::Sequences records;
    records.item_keys.resize(kOld + kNew);
    std::vector<double> mean_gains;
    size_t of_new_alone = 0;
    for (int u = 0; u < 60; ++u) {
      std::vector<int32_t> record = {kOld + u % kNew};
      if (u % 2 == 0) record.push_back(kOld + (u + 1) % kNew);
      if (u % 4 == 3) record.insert(record.begin(), u % kOld);
      const size_t first = record.size();
      const std::vector<int32_t> shown = GetItems(*base->Recommend(record, {.count = kListLength}));
      for (const size_t at : {0, 3}) record.push_back(shown[at]);
      double gain = 0;
      for (size_t t = first; t < record.size(); ++t) {
        const std::span<const int32_t> history(record.data(), t);
        const RankingCase one{history, record[t]};
        for (Session* session : {base.get(), candidate.get()}) {
          EXPECT_EQ(EvaluateModel(session->file(), {&one, 1}, workers).ndcg_at_10, value(*session, history, record[t]));
        }
        gain += value(*candidate, history, record[t]) - value(*base, history, record[t]);
        of_new_alone += std::ranges::all_of(history, [](int32_t id) { return id >= kOld; });
      }
      mean_gains.push_back(gain / 2);
      records.items.insert(records.items.end(), record.begin(), record.end());
      records.offsets.push_back(records.items.size());
      records.user_keys.push_back(std::to_string(u));
    }
    EXPECT_GT(of_new_alone, 40u);
    const auto gains = Gains(base->architecture(), ParameterSource(base->file().tensors()),
                             ParameterSource(candidate->file().tensors()), records,
                             {.gain_scale = 1,
                              .num_targets = 2,
                              .lists_of_base = base->file().lists(),
                              .lists_of_candidate = candidate->file().lists()});
    for (size_t u = 0; u < gains.size(); ++u) EXPECT_EQ(gains[u].gain, OnGrid(mean_gains[u], 1).gain) << u;
  }
}

INSTANTIATE_TEST_SUITE_P(WithANeighbourAndWithout, AddedItems, ::testing::Bool());

}  // namespace
}  // namespace wisp::added_items_test
