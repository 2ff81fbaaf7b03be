// Rows of items move along public features besides their own steps: by what the formula says, from released moments
// alone, and so that an item of few records learns from those that share its features.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::item_features_test {
namespace {

using privacy::Ledger;

constexpr uint32_t kFeatures = 3;

class ItemFeaturesTest : public test::RingTraining {
 protected:
  ItemFeaturesTest() : RingTraining(60) {
    for (size_t i = 0; i < kSmall.num_items; ++i)
      for (size_t f = 0; f < kFeatures; ++f)
        values_.push_back(i % kFeatures == f ? 0.5f + 0.1f * static_cast<float>(i % 4) : 0.0f);
  }

  TrainingOptions Options(Ledger* ledger) const {
    TrainingOptions o{.num_steps = 4,
                      .expected_batch = 20,
                      .num_records_public = 60,
                      .optimizer = {.learning_rate = 0.02f},
                      .item_features = {.values = values_, .count = kFeatures, .rate = 0.5f},
                      .num_threads = 2};
    if (ledger == nullptr) return o;
    o.method = Method::kPhantom;
    o.sampling = Sampling::kPoisson;
    o.privacy = {.noise_multiplier = 1, .ledger = ledger, .run = "r", .reproducible_seed = 3};
    return o;
  }
  std::unique_ptr<Trainer> Train(const TrainingOptions& o, uint64_t steps) {
    auto trainer = Trainer::Create(kSmall, start_, ring_.records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    for (uint64_t i = 0; i < steps; ++i) EXPECT_TRUE((*trainer)->Step().ok());
    return *std::move(trainer);
  }

  const std::vector<ParameterSpec> parameters_ = ListParameters(kSmall);
  const ParameterSpec& table_ = parameters_[RequireParameter(parameters_, ParameterRole::kItemTable)];
  std::vector<float> values_;
};

// The first step with features is the one without them, and X V of what its moments say.
TEST_F(ItemFeaturesTest, RowsMoveByTheFormula) {
  for (const bool is_private : {false, true}) {
    Ledger first = OpenLedger("a" + std::to_string(is_private)), second = OpenLedger("b" + std::to_string(is_private));
    const TrainingOptions with = Options(is_private ? &first : nullptr);
    TrainingOptions without = Options(is_private ? &second : nullptr);
    without.item_features = {};
    const auto along = Train(with, 1), alone = Train(without, 1);
    const Checkpoint moments = *alone->Save();
    EXPECT_EQ(moments.first_moment, along->Save()->first_moment) << "the moments are those of the released gradient";
    size_t num_longest = 0;
    for (size_t k = 0; k < table_.cols; ++k) {
      double step_F[kFeatures];
      for (size_t f = 0; f < kFeatures; ++f) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < table_.rows; ++i) {
          const double x = values_[i * kFeatures + f];
          // After one step the bias-corrected moments are the gradient and its square.
          const double g = moments.first_moment[table_.offset + i * table_.cols + k] / 0.1;
          sum += x * g;
          squares += x * x * g * g;
        }
        const double ratio = sum / std::sqrt(squares);
        num_longest += std::abs(ratio) > 2 ? 1 : 0;
        step_F[f] = 0.02 * 0.5 * std::clamp(ratio, -2.0, 2.0);
      }
      for (size_t i = 0; i < table_.rows; ++i) {
        const size_t at = table_.offset + i * table_.cols + k;
        double expected = alone->weights()[at];
        for (size_t f = 0; f < kFeatures; ++f) expected -= static_cast<double>(values_[i * kFeatures + f]) * step_F[f];
        ASSERT_NEAR(along->weights()[at], expected, 1e-5) << i << " " << k;
      }
    }
    EXPECT_GT(num_longest, 0u) << "no step was too long: the bound is not tested";
    for (const ParameterSpec& p : parameters_) {
      if (p.role == ParameterRole::kItemTable) continue;
      EXPECT_TRUE(std::equal(along->weights().begin() + static_cast<ptrdiff_t>(p.offset),
                             along->weights().begin() + static_cast<ptrdiff_t>(p.offset + p.size()),
                             alone->weights().begin() + static_cast<ptrdiff_t>(p.offset)))
          << p.name;
    }
  }
}

TEST_F(ItemFeaturesTest, ResumesWithTheSameFeaturesOnly) {
  Ledger ledger = OpenLedger("l"), again = OpenLedger("m");
  const auto whole = Train(Options(&ledger), 4);
  TrainingOptions o = Options(&again);
  const auto half = Train(o, 2);
  const Checkpoint checkpoint = *half->Save();
  auto rest = *Trainer::Create(kSmall, start_, ring_.records, o);
  ASSERT_TRUE(rest->Restore(checkpoint).ok());
  ASSERT_TRUE(rest->Step().ok() && rest->Step().ok());
  EXPECT_TRUE(std::equal(whole->weights().begin(), whole->weights().end(), rest->weights().begin()));
  std::vector<float> others = values_;
  others[0] += 1;
  o.item_features.values = others;
  EXPECT_FALSE((*Trainer::Create(kSmall, start_, ring_.records, o))->Restore(checkpoint).ok());
}

TEST_F(ItemFeaturesTest, OtherRunsAreRefused) {
  Ledger ledger = OpenLedger("l");
  const TrainingOptions good = Options(&ledger);
  ASSERT_TRUE(Trainer::Check(kSmall, start_, ring_.records, good).ok());
  std::vector<TrainingOptions> all(6, good);
  all[0].optimizer = {.kind = OptimizerKind::kSgd};
  all[1].ema_decay = 0.9f;
  all[2].trained_part = TrainedPart::kBlocks;
  all[3].item_features.count = kFeatures + 1;
  all[4].item_features.rate = -1;
  std::vector<float> infinite = values_;
  infinite[5] = INFINITY;
  all[5].item_features.values = infinite;
  if (kHasSparse) {
    all.push_back(good);
    all.back().num_negatives = 8;
  }
  for (const TrainingOptions& o : all) {
    const Status status = Trainer::Check(kSmall, start_, ring_.records, o);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("feature"), std::string::npos) << status.message();
  }
}

TEST_F(ItemFeaturesTest, TrainerHoldsWhatIsPlanned) {
  const TrainingOptions o = Options(nullptr);
  TrainingOptions without = o;
  without.item_features = {};
  const size_t more = AlignedArray<float>::AllocatedBytes(2 * kFeatures * kSmall.width);
  EXPECT_EQ(PlanTrainingMemory(kSmall, 60, o)->total(), PlanTrainingMemory(kSmall, 60, without)->total() + more);
  EXPECT_EQ(Train(o, 1)->planned_bytes(), PlanTrainingMemory(kSmall, 60, o)->total());
}

}  // namespace
}  // namespace wisp::item_features_test
