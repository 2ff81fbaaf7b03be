// Training with DP-FEST, DP-AdaFEST and sampled softmax: which rows move, what is charged, what is refused, and that
// all of it learns.
// Needs sparse.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/train/trainer.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::sparse_training_test {
namespace {

class SparseTraining : public test::RingTraining {
 protected:
  SparseTraining() : RingTraining(200) {}

  TrainingOptions Options(Method method, double noise = 0.05) {
    return {.method = method,
            .sampling = Sampling::kPoisson,
            .num_steps = 100,
            .expected_batch = 100,
            .num_records_public = 200,
            .optimizer = {.learning_rate = 0.02f},
            .seed = 5,
            .num_threads = 2,
            .privacy = {.noise_multiplier = noise, .ledger = &ledger_, .run = "sparse", .reproducible_seed = 9},
            .sparse = {.map_threshold = 0.4}};
  }
  std::unique_ptr<Trainer> Make(const TrainingOptions& o) {
    auto trainer = Trainer::Create(kSmall, start_, ring_.records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return *std::move(trainer);
  }
  std::string Refusal(const TrainingOptions& o, const Architecture& a = kSmall) {
    return Trainer::Check(a, std::vector<float>(FlatSize(ListParameters(a))), ring_.records, o).message();
  }
  std::vector<int32_t> ChangedRows(const Trainer& trainer) const {
    std::vector<int32_t> changed;
    for (size_t row = 0; row < kSmall.num_items; ++row) {
      const auto first = static_cast<std::ptrdiff_t>(row * kSmall.width);
      const bool same =
          std::equal(start_.begin() + first, start_.begin() + first + kSmall.width, trainer.weights().begin() + first);
      if (!same) changed.push_back(static_cast<int32_t>(row));
    }
    return changed;
  }
  double LossAfter(const TrainingOptions& o, int steps) {
    auto trainer = Make(o);
    double last = 0;
    for (int i = 0; i < steps; ++i) {
      const auto report = trainer->Step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(report->num_dropped, 0u);
      last = report->mean_loss;
    }
    return last;
  }

  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(SparseTraining, FestTrainsTheChosenRowsOnly) {
  const std::vector<int32_t> rows = {2, 3, 5, 8, 13, 21};
  TrainingOptions o = Options(Method::kFest);
  o.sparse.rows = rows;
  auto trainer = Make(o);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer->Step().ok());
  EXPECT_EQ(ChangedRows(*trainer), rows);
}

TEST_F(SparseTraining, FestOverAllRowsIsPhantomClipping) {
  std::vector<int32_t> rows(kSmall.num_items);
  std::iota(rows.begin(), rows.end(), 0);
  TrainingOptions fest = Options(Method::kFest, 1e-5), phantom = Options(Method::kPhantom, 1e-5);
  fest.sparse.rows = rows;
  fest.optimizer = phantom.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.5f};
  auto a = Make(fest), b = Make(phantom);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a->Step().ok() && b->Step().ok());
  // In another order the noise falls on other coordinates, so there is almost none.
  for (size_t i = 0; i < start_.size(); ++i) ASSERT_NEAR(a->weights()[i], b->weights()[i], 1e-4) << i;
}

// A row that no step touches has no noise; a row that may become a negative has.
TEST_F(SparseTraining, PrintedDeviationsAreOfTheTrainedRowsOnly) {
  Architecture a = kSmall;
  a.re_attention = ReAttention::kOn;
  const auto parameters = ListParameters(a);
  const ParameterSpec& variances = parameters[test::FindIndex(parameters, test::kItemVariance)];
  start_.resize(FlatSize(parameters), 0.0f);
  const std::vector<int32_t> rows = {0, 3, 5, 8, 13, 29};
  const std::vector<float> frequencies(a.num_items, 0.5f);
  for (const auto& [method, negatives, all] : {std::tuple{Method::kFest, 0u, false},
                                               {Method::kAdaFestPlus, 0u, false},
                                               {Method::kAdaFest, 0u, true},
                                               {Method::kPhantom, 0u, true},
                                               {Method::kFest, 8u, true}}) {
    TrainingOptions o = Options(method);
    o.num_negatives = negatives;
    o.sparse.rows = rows;
    o.re_attention = {.source = ReAttentionOptions::Source::kPrinted, .item_frequencies = frequencies};
    auto trainer = Trainer::Create(a, start_, ring_.records, o);
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    ASSERT_TRUE((*trainer)->Step().ok());
    for (size_t i = 0; i < a.num_items; ++i) {
      const bool trained = all || std::binary_search(rows.begin(), rows.end(), static_cast<int32_t>(i));
      EXPECT_EQ((*trainer)->weights()[variances.offset + i] > 0, trained)
          << "row " << i << ", method " << static_cast<int>(method);
    }
  }
}

TEST_F(SparseTraining, EmptyBatchStillReleases) {
  const std::vector<Record> nobody;
  TrainingOptions o = Options(Method::kAdaFest, 1.0);
  o.sparse.map_threshold = 0.5;
  auto trainer = *Trainer::Create(kSmall, start_, nobody, o);
  ASSERT_TRUE(trainer->Step().ok());
  const size_t changed = ChangedRows(*trainer).size();
  EXPECT_GT(changed, 0u) << "rows that nobody touched survive by the noise alone";
  EXPECT_LT(changed, 30u);
}

TEST_F(SparseTraining, EveryMethodLearnsWithLittleNoise) {
  std::vector<int32_t> rows(kSmall.num_items);
  std::iota(rows.begin(), rows.end(), 0);
  for (Method method : {Method::kFest, Method::kAdaFest, Method::kAdaFestPlus}) {
    TrainingOptions o = Options(method);
    if (method != Method::kAdaFest) o.sparse.rows = rows;
    EXPECT_LT(LossAfter(o, 100), 1.2) << static_cast<int>(method);
  }
  for (Method method : {Method::kOrdinary, Method::kPhantom, Method::kAdaFest}) {
    TrainingOptions o = Options(method);
    o.num_negatives = 10;
    EXPECT_LT(LossAfter(o, 100), 1.2) << static_cast<int>(method);
  }
}

TEST_F(SparseTraining, AdaFestPlusStaysWithinItsRows) {
  const std::vector<int32_t> rows = {1, 4, 9, 16, 25};
  TrainingOptions o = Options(Method::kAdaFestPlus, 1.0);
  o.sparse.rows = rows;
  auto trainer = Make(o);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainer->Step().ok());
  for (int32_t row : ChangedRows(*trainer)) EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), row)) << row;
}

TEST_F(SparseTraining, AStepIsChargedAsOneSubsampledGaussianBeforeItIsTaken) {
  TrainingOptions o = Options(Method::kAdaFest, 1.1);
  auto trainer = Make(o);
  ASSERT_TRUE(trainer->Step().ok());
  const auto entries = *ledger_.Entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_DOUBLE_EQ(entries[0].mechanism.noise_multiplier(), 1.1);
  EXPECT_DOUBLE_EQ(entries[0].mechanism.sampling_probability(), 0.5);
  EXPECT_EQ(entries[0].mechanism.steps(), 1u);
  ASSERT_TRUE(ledger_.SetLimit(*privacy::EpsilonDelta::Create(1e-3, 1e-6)).ok());
  o.privacy.reproducible_seed.reset();
  auto refused = Make(o);
  EXPECT_EQ(refused->Step().status().code(), StatusCode::kPrivacyRefused);
  EXPECT_TRUE(ChangedRows(*refused).empty());
}

TEST_F(SparseTraining, ResumedRunEqualsUninterruptedRunBitForBit) {
  TrainingOptions o = Options(Method::kAdaFest, 0.5);
  o.num_negatives = 8;
  const auto run = [&](bool interrupted) {
    auto trainer = Make(o);
    for (int i = 0; i < 12; ++i) {
      if (interrupted && i == 7) {
        const Checkpoint saved = *trainer->Save();
        trainer = Make(o);
        EXPECT_TRUE(trainer->Restore(saved).ok());
      }
      EXPECT_TRUE(trainer->Step().ok());
    }
    return std::vector<float>(trainer->weights().begin(), trainer->weights().end());
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_F(SparseTraining, NoGuaranteeOrNoMeaning_IsRefused) {
  UniformArchitecture untied = kSmall;
  untied.output_table = OutputTable::kUntied;
  EXPECT_NE(Refusal(Options(Method::kAdaFest), untied).find("untied"), std::string::npos);
  EXPECT_NE(Refusal(Options(Method::kFest)).find("none are given"), std::string::npos);
  EXPECT_NE(Refusal(Options(Method::kAdaFestPlus)).find("none are given"), std::string::npos);
  const std::vector<int32_t> far = {3, 30}, backwards = {3, 2};
  TrainingOptions o = Options(Method::kFest);
  o.sparse.rows = far;
  EXPECT_NE(Refusal(o).find("row 30"), std::string::npos);
  o.sparse.rows = backwards;
  EXPECT_NE(Refusal(o).find("ascending"), std::string::npos);
  o = Options(Method::kAdaFest);
  o.ema_decay = 0.9f;
  EXPECT_NE(Refusal(o).find("ema_decay"), std::string::npos);
  o = Options(Method::kAdaFest);
  o.sparse.map_noise_ratio = 0;
  EXPECT_NE(Refusal(o).find("map_noise_ratio"), std::string::npos);
  o = Options(Method::kAdaFest, 1.0);
  o.sparse.map_threshold = 1000;
  EXPECT_NE(Refusal(o).find("threshold"), std::string::npos);
  o = Options(Method::kPhantom);
  o.num_negatives = 16;
  EXPECT_NE(Refusal(o).find("num_negatives"), std::string::npos);
  o = Options(Method::kRgp);
  o.num_negatives = 4;
  EXPECT_NE(Refusal(o).find("rgp"), std::string::npos);
}

}  // namespace
}  // namespace wisp::sparse_training_test
