// A model of two towers learns from features, so it knows an item that no record has; and its rows follow from what
// trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/layers/model_view.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/model/catalogue.h"
#include "runtime/train/trainer.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::two_tower_test {
namespace {

using privacy::Ledger;

constexpr uint32_t kKinds = 6, kItemsPerKind = 10, kItems = kKinds * kItemsPerKind, kFeatures = 9;

// Item i is of kind i % kKinds, which its features say, up to some noise. After an item comes one of the next kind. The
// last kUnknown items of the catalogue are in no record.
constexpr uint32_t kUnknown = 12, kKnown = kItems - kUnknown;

constexpr UniformArchitecture kTowers{.num_items = kItems,
                                      .max_length = 8,
                                      .width = 16,
                                      .num_heads = 2,
                                      .num_blocks = 1,
                                      .inner_width = 16,
                                      .embedding_scale = 4.0f,
                                      .item_features = kFeatures};

class TwoTowerTest : public ::testing::Test {
 protected:
  TwoTowerTest() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.0f, 0.1f);
    const ParameterSpec& features = parameters_[RequireParameter(parameters_, ParameterRole::kItemFeatures)];
    for (size_t i = 0; i < kItems; ++i) {
      for (size_t f = 0; f < kFeatures; ++f)
        start_[features.offset + i * kFeatures + f] = normal(random) + (f == i % kKinds ? 1.0f : 0.0f);
    }
    for (size_t user = 0; user < kUsers; ++user) {
      for (size_t t = 0; t <= kLength; ++t) {
        const size_t kind = (user + t) % kKinds, number = random() % (kKnown / kKinds);
        items_.push_back(static_cast<int32_t>(number * kKinds + kind));
      }
    }
    for (size_t user = 0; user < kUsers; ++user) {
      const std::span<const int32_t> all(items_.data() + user * (kLength + 1), kLength + 1);
      records_.push_back({all.first(kLength), all.last(kLength)});
    }
  }

  TrainingOptions Options(Method method, uint64_t steps, Ledger* ledger) const {
    TrainingOptions o{.method = method,
                      .num_steps = steps,
                      .expected_batch = 50,
                      .optimizer = {.learning_rate = 0.02f},
                      .seed = 5,
                      .num_threads = 2};
    if (method == Method::kOrdinary) return o;
    o.sampling = Sampling::kPoisson;
    o.num_records_public = kUsers;
    o.privacy = {
        .noise_multiplier = 1.0, .clipping_norm = 0.5, .ledger = ledger, .run = "test", .reproducible_seed = 3};
    if (method == Method::kRgp) o.rgp.rank = 4;
    return o;
  }
  Ledger OpenLedger(std::string_view name) {
    return *Ledger::Open(folder_ / name, {.dataset = "kinds", .record = privacy::RecordSpec::OfEvents({})});
  }
  std::unique_ptr<Trainer> Train(const TrainingOptions& options) {
    auto trainer = Trainer::Create(kTowers, start_, records_, options);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    for (uint64_t i = 0; i < options.num_steps; ++i) EXPECT_TRUE((*trainer)->Step().ok());
    return *std::move(trainer);
  }

  // The share of the unknown items that are among the best kItemsPerKind items after a history that asks for their
  // kind.
  static double Found(std::span<const float> weights) {
    const auto model = MakeModelView(kTowers, kernels::BestOps(), {.use = GraphUse::kInference});
    const PackedWeights packed(*model, weights.data());
    const Buffers buffers = model->AllocateForInference();
    const KeyValueCache cache = model->AllocateCache(CacheBlocks::kAll);
    RecordContext context{.weights = packed.view(), .buffers = buffers, .cache = &cache};
    std::vector<float> scores(kItems);
    double found = 0;
    for (size_t item = kKnown; item < kItems; ++item) {
      std::vector<int32_t> history;
      for (size_t back = 3; back > 0; --back) history.push_back(static_cast<int32_t>((item + kKinds - back) % kKinds));
      model->Score(context, history, scores.data());
      const auto better = std::count_if(scores.begin(), scores.end(), [&](float s) { return s > scores[item]; });
      found += better < kItemsPerKind ? 1.0 / kUnknown : 0;
    }
    return found;
  }
  // The largest difference between the item rows and those that follow from features and tower.
  static double Stale(std::span<const float> weights) {
    std::vector<float> derived(weights.begin(), weights.end());
    RowsFromFeatures(kTowers, 0, derived);
    double largest = 0;
    for (size_t i = 0; i < derived.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(derived[i]) - static_cast<double>(weights[i])));
    return largest;
  }

  static constexpr size_t kUsers = 400, kLength = 8;
  const std::vector<ParameterSpec> parameters_ = ListParameters(kTowers);
  std::vector<float> start_ = test::StartWeights(kTowers);
  std::vector<int32_t> items_;
  std::vector<Record> records_;
  test::TemporaryFolder folder_;
};

TEST_F(TwoTowerTest, OrdinaryTraining_FindsItemsOfNoRecord) {
  EXPECT_LT(Found(start_), 0.5);
  const auto trainer = Train(Options(Method::kOrdinary, 60, nullptr));
  EXPECT_EQ(Found(trainer->weights()), 1);
}

TEST_F(TwoTowerTest, PrivateTraining_FindsItemsOfNoRecord) {
  Ledger ledger = OpenLedger("l");
  const auto trainer = Train(Options(Method::kPhantom, 60, &ledger));
  EXPECT_GT(Found(trainer->weights()), 0.8);
}

TEST_F(TwoTowerTest, RowsFollowFromFeaturesAfterEachRun) {
  EXPECT_GT(Stale(start_), 0.1) << "the start's rows follow from nothing";
  for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp}) {
    Ledger ledger = OpenLedger("l" + std::to_string(static_cast<int>(method)));
    TrainingOptions o = Options(method, 3, &ledger);
    if (!CheckBuilt(kTowers, o).ok()) continue;
    if (method == Method::kOrdinary) o.ema_decay = 0.9f;
    const auto trainer = Train(o);
    EXPECT_LT(Stale(trainer->weights()), 1e-5);
    EXPECT_LT(Stale(trainer->final_weights()), 1e-5);
    const ParameterSpec& features = parameters_[RequireParameter(parameters_, ParameterRole::kItemFeatures)];
    const ParameterSpec& tower = parameters_[RequireParameter(parameters_, ParameterRole::kItemTower)];
    const auto same = [&](const ParameterSpec& p) {
      const float* weights = trainer->weights().data() + p.offset;
      return std::equal(weights, weights + p.size(), start_.data() + p.offset);
    };
    EXPECT_TRUE(same(features)) << "features are not trained";
    EXPECT_FALSE(same(tower));
  }
}

// Both forms of the norm, with one thread and with several, release the same sum up to rounding.
TEST_F(TwoTowerTest, FormsOfTheNormAgree) {
  std::vector<std::vector<float>> runs;
  for (const NormForm form : {NormForm::kFormed, NormForm::kGram}) {
    Ledger ledger = OpenLedger("l" + std::to_string(runs.size()));
    TrainingOptions o = Options(Method::kPhantom, 2, &ledger);
    o.privacy.norm_form = form;
    o.num_threads = 1;
    const auto trainer = Train(o);
    runs.emplace_back(trainer->weights().begin(), trainer->weights().end());
  }
  for (size_t i = 0; i < runs[0].size(); ++i) ASSERT_NEAR(runs[0][i], runs[1][i], 1e-3) << i;
}

TEST_F(TwoTowerTest, MethodsOfRowsAreRefused) {
  WISP_NEEDS(kHasSparse);
  Ledger ledger = OpenLedger("l");
  TrainingOptions sparse = Options(Method::kAdaFest, 1, &ledger), sampled = Options(Method::kOrdinary, 1, nullptr);
  sampled.num_negatives = 8;
  for (const TrainingOptions& o : {sparse, sampled}) {
    const Status status = Trainer::Check(kTowers, start_, records_, o);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
    EXPECT_NE(status.message().find("item features"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace wisp::two_tower_test
