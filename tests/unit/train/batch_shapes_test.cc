// However many records pass at once, a step does the same, bit for bit: every private method, every kind of head.
// Ordinary training, and DP-FP in its paper's mode, multiply the records that pass together in one product: equal up to
// rounding. Recomputed blocks change no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/trainer.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/memory_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::batch_shapes_test {
namespace {

constexpr uint32_t kRecords = 40;
// Rounding of plain sums, in weights after three steps of SGD. Adam would magnify the rounding of gradients that are
// nearly 0.
constexpr float kRounding = 1e-6f;

class BatchShapes : public ::testing::Test {
 protected:
  // Returns the weights after three steps, with this many rows at once.
  std::vector<float> Train(const Architecture& a, std::span<const Record> records, TrainingOptions o, size_t rows) {
    o.rows_at_once = rows;
    const auto trainer = Trainer::Create(a, test::StartWeights(a), records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return {};
    test::ExpectEqual(*PlanTrainingMemory(a, records.size(), o), (*trainer)->memory());
    for (int step = 0; step < 3; ++step) {
      const auto report = (*trainer)->Step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      reports_.push_back(*report);
    }
    return {(*trainer)->weights().begin(), (*trainer)->weights().end()};
  }

  // If this build has the method: compares one record at a time, two or three, and many, and checks these numbers.
  // Weights may be `tolerance` apart.
  void ExpectSame(const std::string& what, const Architecture& a, std::span<const Record> records,
                  const TrainingOptions& o, float tolerance = 0) {
    SCOPED_TRACE(what);
    if (!CheckBuilt(a, o).ok()) return;
    const auto alone = Train(a, records, o, 1);
    const std::vector<StepReport> expected = std::exchange(reports_, {});
    ASSERT_FALSE(alone.empty());
    EXPECT_NE(alone, test::StartWeights(a)) << "nothing was trained";
    for (const size_t together : {3, 64}) {
      TrainingOptions several = o;
      several.rows_at_once = together * a.max_length;
      ASSERT_EQ(GraphFor(a, several).max_records, together);
      EXPECT_LE(Distance(Train(a, records, o, together * a.max_length), alone), tolerance)
          << together << " records at once";
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(reports_[i].mean_loss, expected[i].mean_loss, tolerance);
        EXPECT_EQ(reports_[i].mean_norm, expected[i].mean_norm);
        EXPECT_EQ(reports_[i].num_dropped, expected[i].num_dropped);
      }
      reports_.clear();
    }
    ExpectSameAgain(a, records, o, alone);
    reports_.clear();
  }

  // Compares with recomputed blocks; a method that does not offer them must refuse.
  void ExpectSameAgain(const Architecture& a, std::span<const Record> records, TrainingOptions o,
                       const std::vector<float>& alone) {
    o.recompute_blocks = true;
    const bool keeps = o.privacy.norm_form == NormForm::kGram || o.privacy.norm_form == NormForm::kIntegers;
    if (a.re_attention == ReAttention::kOn || (IsPrivate(o) && keeps)) {
      const auto refused = Trainer::Create(a, test::StartWeights(a), records, o);
      ASSERT_EQ(refused.status().code(), StatusCode::kUnsupported);
      EXPECT_NE(refused.status().message().find("recompute_blocks"), std::string::npos) << refused.status().message();
      EXPECT_EQ(PlanTrainingMemory(a, records.size(), o).status().code(), StatusCode::kUnsupported);
      return;
    }
    EXPECT_EQ(Train(a, records, o, 0), alone) << "computed again";
  }

  // Returns the largest difference of all coordinates; infinite if one is not a number, or numbers are missing.
  static float Distance(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
    float largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(a[i] - b[i])) return std::numeric_limits<float>::infinity();
      largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
  }

  TrainingOptions Private(Method method) {
    TrainingOptions o{.method = method,
                      .sampling = Sampling::kPoisson,
                      .num_steps = 3,
                      .expected_batch = 30,
                      .num_records_public = kRecords,
                      .num_threads = 2};
    o.optimizer.learning_rate = 0.01f;
    o.dropout = {.embedding = 0.2f, .attention = 0.1f, .residual = 0.2f};
    o.privacy = {.noise_multiplier = 0.3, .ledger = &ledger_, .run = "r", .reproducible_seed = 7};
    o.rgp.rank = 2;
    o.sparse.map_threshold = 0.5;
    return o;
  }

  const test::TemporaryFolder folder_;
  privacy::Ledger ledger_ =
      *privacy::Ledger::Open(folder_ / "l", {.dataset = "d", .record = privacy::RecordSpec::OfEvents({})});
  std::vector<StepReport> reports_;
};

// Histories of all lengths, some with padding before them, some without a target.
struct Histories {
  explicit Histories(const Architecture& a) {
    for (uint32_t i = 0; i < kRecords; ++i) {
      const size_t length = 1 + i % a.max_length;
      owned.push_back(test::RandomRecord(a.num_items, length, i, i % 3 == 0 ? length / 2 : 0));
    }
    for (const auto& record : owned) records.push_back(record.view());
  }
  std::vector<test::OwnedRecord> owned;
  std::vector<Record> records;
};

TEST_F(BatchShapes, RecommendersOfEveryKindTrainTheSame) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(test::MixedArchitecture());
  for (size_t i = 0; i < all.size(); ++i) {
    const Histories histories(all[i]);
    TrainingOptions ordinary = Private(Method::kOrdinary);
    ordinary.sampling = Sampling::kShuffled;
    ordinary.optimizer.kind = OptimizerKind::kSgd;
    ExpectSame("ordinary " + std::to_string(i), all[i], histories.records, ordinary, kRounding);
    const bool cosine = all[i].head.temperature > 0;  // neither Gram matrices nor projections are offered with one
    for (const NormForm form : {NormForm::kFormed, NormForm::kGram}) {
      if (cosine && form == NormForm::kGram) continue;
      TrainingOptions phantom = Private(Method::kPhantom);
      phantom.privacy.norm_form = form;
      phantom.privacy.clipping = form == NormForm::kFormed ? ClipKind::kFlat : ClipKind::kAutomatic;
      ExpectSame("phantom " + std::to_string(i), all[i], histories.records, phantom);
    }
    if (!cosine) ExpectSame("rgp " + std::to_string(i), all[i], histories.records, Private(Method::kRgp));
  }
}

// The memory of a record grows with blocks only by their inputs.
TEST(RecomputedBlocks, TakeLessMemory) {
  UniformArchitecture shape{.num_items = 40, .max_length = 64, .width = 32, .num_heads = 2, .inner_width = 128};
  const auto activations = [&](uint32_t blocks, bool again) {
    shape.num_blocks = blocks;
    const TrainingOptions o{.num_steps = 1, .expected_batch = 4, .num_threads = 1, .recompute_blocks = again};
    return PlanTrainingMemory(shape, 10, o)->activations;
  };
  const size_t of_input = 64 * 32 * sizeof(float), of_norms = 2 * 2 * 64 * sizeof(float);
  const size_t more = activations(8, true) - activations(4, true);
  EXPECT_EQ(more, 4 * (of_input + of_norms));
  EXPECT_GT(activations(8, false) - activations(4, false), 20 * more);
}

TEST_F(BatchShapes, ReAttentionTrainsTheSame) {
  for (Architecture a : test::SmallArchitectures()) {
    a.re_attention = ReAttention::kOn;
    if (!Validate(a).ok()) continue;
    const Histories histories(a);
    ExpectSame("re-attention", a, histories.records, Private(Method::kPhantom));
  }
}

TEST_F(BatchShapes, SparseMethodsTrainTheSame) {
  Architecture a = UniformArchitecture{.num_items = 40,
                                       .max_length = 6,
                                       .width = 8,
                                       .num_heads = 2,
                                       .num_blocks = 2,
                                       .inner_width = 8,
                                       .output_bias = OutputBias::kTrained};
  const Histories histories(a);
  std::vector<int32_t> rows;
  for (int32_t row = 0; row < 40; row += 2) rows.push_back(row);
  for (const Method method : {Method::kFest, Method::kAdaFest, Method::kAdaFestPlus}) {
    for (const uint32_t negatives : {0u, 10u}) {
      TrainingOptions o = Private(method);
      o.num_negatives = negatives;
      a.head.output_bias = negatives > 0 ? OutputBias::kFixed : OutputBias::kTrained;
      if (method != Method::kAdaFest) o.sparse.rows = rows;
      ExpectSame("method " + std::to_string(static_cast<int>(method)), a, histories.records, o);
    }
  }
}

TEST_F(BatchShapes, AdaptersTrainTheSame) {
  Architecture a = test::SmallArchitectures()[1];
  a.adapter = AdapterSpec{.rank = 2, .alpha = 2};
  const Histories histories(a);
  ExpectSame("adapter", a, histories.records, Private(Method::kPhantom));
}

// Blocks alone, as integers, for every kind of block.
TEST_F(BatchShapes, BlocksTrainTheSameAsIntegers) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(test::MixedArchitecture());
  size_t tried = 0;
  for (const Architecture& a : all) {
    const Histories histories(a);
    TrainingOptions o = Private(Method::kPhantom);
    o.trained_part = TrainedPart::kBlocks;
    o.privacy.norm_form = NormForm::kIntegers;
    if (!CanMultiplyIntegers(a, o)) continue;
    ++tried;
    ExpectSame("integers " + std::to_string(tried), a, histories.records, o);
  }
  EXPECT_GT(tried, 2u);
}

TEST_F(BatchShapes, ClassifiersTrainTheSame) {
  for (const Architecture& a : test::SmallClassifiers()) {
    std::vector<test::OwnedRecord> owned;
    std::vector<Record> records;
    std::vector<int32_t> labels;
    for (uint32_t i = 0; i < kRecords; ++i) {
      owned.push_back(test::RandomRecord(a.num_items, 1 + i % a.max_length, i));
      labels.push_back(static_cast<int32_t>(i % a.head.num_classes));
    }
    for (uint32_t i = 0; i < kRecords; ++i) records.push_back({owned[i].inputs, {&labels[i], 1}});
    for (const ClipKind clipping : {ClipKind::kFlat, ClipKind::kAutomatic}) {
      TrainingOptions o = Private(Method::kPhantom);
      o.privacy.norm_form = NormForm::kIntegers;
      o.privacy.clipping = clipping;
      o.privacy.clipping_norm = 0.3;
      ExpectSame("integers", a, records, o);
    }
    for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper}) {
      TrainingOptions o = Private(Method::kDpFp);
      const bool paper = mode == DpFpMode::kPaper;
      if (paper) o.privacy.ledger = nullptr;
      if (paper) o.optimizer.kind = OptimizerKind::kSgd;
      o.dp_fp = {.mode = mode, .micro_batches = 2, .clipping_norm = 0.5, .noise_multiplier = 0.3};
      ExpectSame("dp-fp", a, records, o, paper ? kRounding : 0);
    }
  }
}

}  // namespace
}  // namespace wisp::batch_shapes_test
