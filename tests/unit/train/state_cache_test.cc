// A run that trains only the head or the last blocks computes what stands below once for each record, and this changes
// nothing else.
#include "runtime/train/state_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/train/memory.h"
#include "runtime/train/trainer.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/memory_test_util.h"

namespace wisp::state_cache_test {
namespace {

constexpr uint32_t kRecords = 40;
constexpr int kSteps = 4;

// Texts of all lengths.
struct Texts {
  explicit Texts(const Architecture& a) {
    for (uint32_t i = 0; i < kRecords; ++i) owned.push_back(test::RandomRecord(a.num_items, 1 + i % a.max_length, i));
    for (uint32_t i = 0; i < kRecords; ++i)
      records.push_back(test::Labelled(owned[i].inputs, static_cast<int32_t>(i % a.head.num_classes)));
  }
  std::vector<test::OwnedRecord> owned;
  std::vector<Record> records;
};

std::atomic<int> num_norms{0};

// The best ops, with a count of the rows of norms: each block has them, a head has none.
const kernels::OpTable& CountingOps() {
  static const kernels::OpTable table = [] {
    kernels::OpTable counting = kernels::BestOps();
    counting.layer_norm_forward = [](const kernels::LayerNormForwardArgs<>& args) {
      ++num_norms;
      kernels::BestOps().layer_norm_forward(args);
    };
    return counting;
  }();
  return table;
}

class StateCacheTest : public test::ClassifierTraining {
 protected:
  TrainingOptions Options(Method method) {
    TrainingOptions o{.method = method,
                      .sampling = method == Method::kOrdinary ? Sampling::kShuffled : Sampling::kPoisson,
                      .num_steps = kSteps,
                      .expected_batch = 30,
                      .num_records_public = kRecords,
                      .optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 0.05f},
                      .num_threads = 2};
    if (method != Method::kDpFp) o.trained_part = TrainedPart::kHead;
    if (method != Method::kOrdinary)
      o.privacy = {.noise_multiplier = 0.3, .ledger = &ledger_, .run = "r", .reproducible_seed = 7};
    o.rgp.rank = 2;
    if (method == Method::kDpFp) o.dp_fp = {.micro_batches = 3, .clipping_norm = 0.5, .noise_multiplier = 0.3};
    return o;
  }

  struct Run {
    std::vector<float> weights;
    std::vector<StepReport> reports;
    TrainingMemory memory;
  };
  TrainingOptions LastBlocks(Method method, uint32_t last) {
    TrainingOptions o = Options(method);
    o.trained_part = TrainedPart::kBlocks;
    o.last_blocks = last;
    return o;
  }
  Run Train(const Architecture& a, const Texts& texts, const TrainingOptions& o, int steps = kSteps) {
    Run run;
    const auto trainer = Trainer::Create(a, test::RandomClassifierWeights(a, 5), texts.records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return run;
    run.memory = (*trainer)->memory();
    test::ExpectEqual(*PlanTrainingMemory(a, kRecords, o), run.memory);
    for (int step = 0; step < steps; ++step) run.reports.push_back(*(*trainer)->Step());
    test::ExpectEqual(run.memory, (*trainer)->memory());
    run.weights = {(*trainer)->weights().begin(), (*trainer)->weights().end()};
    return run;
  }

  void ExpectSame(const Architecture& a, const Texts& texts, TrainingOptions o) {
    const Run cached = Train(a, texts, o);
    EXPECT_GT(cached.memory.states, size_t{kRecords} * a.width * sizeof(float));
    o.cache_at_most = 0;
    const Run computed = Train(a, texts, o);
    EXPECT_EQ(computed.memory.states, 0u);
    EXPECT_NE(computed.weights, test::RandomClassifierWeights(a, 5)) << "nothing was trained";
    EXPECT_EQ(cached.weights, computed.weights);
    for (size_t i = 0; i < computed.reports.size(); ++i) {
      EXPECT_EQ(cached.reports[i].mean_loss, computed.reports[i].mean_loss);
      EXPECT_EQ(cached.reports[i].mean_norm, computed.reports[i].mean_norm);
      EXPECT_EQ(cached.reports[i].num_head_records, computed.reports[i].num_head_records);
      EXPECT_EQ(cached.reports[i].num_dropped, computed.reports[i].num_dropped);
    }
  }

  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(StateCacheTest, EveryMethodAndClassifierTrainsTheSameBits) {
  for (const Architecture& a : test::SmallClassifiers()) {
    const Texts texts(a);
    for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp, Method::kDpFp}) {
      for (const size_t together : {1, 3}) {
        SCOPED_TRACE(std::string(GetName(method)) + ", " + std::to_string(together) + " at once");
        TrainingOptions o = Options(method);
        o.rows_at_once = together * a.max_length;
        if (CheckBuilt(a, o).ok()) ExpectSame(a, texts, o);
      }
    }
  }
}

// Space for all rows, for some, for fewer than the first text has, and for none.
TEST_F(StateCacheTest, LastBlocks_trainTheSameBitsWhateverIsKept) {
  for (Architecture a : test::SmallClassifiers()) {
    for (const bool adapted : {false, true}) {
      if (adapted) a.adapter = AdapterSpec{.rank = 2, .alpha = 2, .has_head = true};
      const Texts texts(a);
      for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp}) {
        for (uint32_t last = 1; last <= a.blocks.size(); ++last) {
          SCOPED_TRACE(std::string(GetName(method)) + ", " + std::to_string(last) + (adapted ? ", adapter" : ""));
          TrainingOptions o = LastBlocks(method, last);
          o.rows_at_once = 3 * a.max_length;
          o.dropout.residual = 0.1f;  // above what is kept
          if (!CheckBuilt(a, o).ok() || (adapted && method == Method::kRgp)) continue;
          const Run all = Train(a, texts, o);
          const std::vector<ParameterSpec> parameters = ListParameters(a);
          const TrainedSet trained = TrainedBy(parameters, o);
          const std::vector<float> start = test::RandomClassifierWeights(a, 5);
          for (size_t i = 0; i < parameters.size(); ++i) {
            const ParameterSpec& p = parameters[i];
            const bool below = !IsBlockRole(p.role) || p.block + last < a.blocks.size();
            const bool top = p.role >= ParameterRole::kPoolerWeight || p.role == ParameterRole::kFinalNormGain ||
                             p.role == ParameterRole::kFinalNormBias;
            EXPECT_FALSE(below && !top && trained.contains(i)) << p.name;
            const bool moved = !std::equal(start.begin() + static_cast<ptrdiff_t>(p.offset),
                                           start.begin() + static_cast<ptrdiff_t>(p.offset + p.size()),
                                           all.weights.begin() + static_cast<ptrdiff_t>(p.offset));
            EXPECT_EQ(moved, trained.contains(i)) << p.name;
          }
          for (const size_t rows : {size_t{40}, size_t{2}, size_t{0}}) {
            o.cache_at_most = rows * a.width * 2;
            const Run some = Train(a, texts, o);
            EXPECT_LT(some.memory.states, all.memory.states);
            EXPECT_EQ(some.weights, all.weights) << rows;
            EXPECT_EQ(some.reports.back().mean_loss, all.reports.back().mean_loss);
          }
        }
      }
    }
  }
}

// The only difference from a run that trains all blocks, and of which the lower ones get no change, is the rounding of
// rows to float16.
TEST_F(StateCacheTest, LastBlocks_takeTheStepOfARunOfAllBlocks) {
  const Architecture a = test::SmallClassifiers()[4];
  const Texts texts(a);
  TrainingOptions o = LastBlocks(Method::kOrdinary, 1);
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1f};
  const Run last = Train(a, texts, o, /*steps=*/1);
  o.last_blocks = 0;
  const Run all = Train(a, texts, o, /*steps=*/1);
  const std::vector<float> start = test::RandomClassifierWeights(a, 5);
  o.last_blocks = 1;
  const TrainedSet trained = TrainedBy(ListParameters(a), o);
  double change = 0, difference = 0;
  for (const uint32_t i : trained.parameters()) {
    const ParameterSpec p = ListParameters(a)[i];
    for (size_t j = p.offset; j < p.offset + p.size(); ++j) {
      change += std::pow(all.weights[j] - start[j], 2);
      difference += std::pow(all.weights[j] - last.weights[j], 2);
    }
  }
  EXPECT_GT(change, 0);
  EXPECT_GT(difference, 0) << "rows are rounded";
  EXPECT_LT(std::sqrt(difference), 2e-3 * std::sqrt(change));
}

TEST_F(StateCacheTest, LastBlocks_areRefusedWhereNothingIsKept) {
  const Architecture a = test::SmallClassifiers()[0];
  const auto refused = [&](const Architecture& of, const TrainingOptions& o) {
    return std::string(PlanTrainingMemory(of, kRecords, o).status().message());
  };
  TrainingOptions o = LastBlocks(Method::kPhantom, 2);
  EXPECT_EQ(refused(a, o), "");
  o.last_blocks = 3;
  EXPECT_NE(refused(a, o).find("allowed are 0 (all) to 2"), std::string::npos) << refused(a, o);
  o.last_blocks = 1;
  for (const TrainedPart part : {TrainedPart::kAll, TrainedPart::kHead}) {
    o.trained_part = part;
    EXPECT_NE(refused(a, o).find("trains must be blocks"), std::string::npos) << refused(a, o);
  }
  o.trained_part = TrainedPart::kBlocks;
  EXPECT_NE(refused(test::SmallArchitectures()[0], o).find("classifiers"), std::string::npos);
}

TEST_F(StateCacheTest, EachRecordPassesTheLowerBlocksOnce) {
  const Architecture a = test::SmallClassifiers()[1];
  const Texts texts(a);
  TrainingOptions o = LastBlocks(Method::kOrdinary, 1);
  o.num_threads = 1;
  o.rows_at_once = 1;
  o.device = kernels::Device(CountingOps());
  o.expected_batch = kRecords;
  const auto trainer = *Trainer::Create(a, test::RandomClassifierWeights(a, 5), texts.records, o);
  num_norms = 0;
  constexpr int kPasses = 5;
  for (int step = 0; step < kPasses; ++step) ASSERT_TRUE(trainer->Step().ok());
  // Two norms in each block: the first of two blocks once for each record, the last in each step.
  EXPECT_EQ(num_norms, 2 * (1 + kPasses) * static_cast<int>(kRecords));
}

TEST_F(StateCacheTest, EachRecordPassesTheBlocksOnce) {
  const Architecture a = test::SmallClassifiers()[1];
  const Texts texts(a);
  for (const Method method : {Method::kOrdinary, Method::kDpFp}) {
    TrainingOptions o = Options(method);
    if (!CheckBuilt(a, o).ok()) continue;
    o.num_threads = 1;
    o.rows_at_once = 1;
    o.device = kernels::Device(CountingOps());
    // One record: two norms in each block.
    const int of_one = 2 * static_cast<int>(a.blocks.size());
    o.expected_batch = kRecords;  // all records of a shuffled step
    const auto trainer = *Trainer::Create(a, test::RandomClassifierWeights(a, 5), texts.records, o);
    num_norms = 0;
    for (int step = 0; step < 30; ++step) ASSERT_TRUE(trainer->Step().ok());
    EXPECT_EQ(num_norms, of_one * static_cast<int>(kRecords)) << GetName(method);
  }
}

TEST_F(StateCacheTest, OneIsMadeWhereItChangesNothingAndFits) {
  const Architecture a = test::SmallClassifiers()[0];
  const TrainingOptions head = Options(Method::kPhantom);
  EXPECT_TRUE(StateCache::IsUsedFor(a, kRecords, head));
  TrainingOptions o = head;
  o.cache_at_most = kRecords * a.width * sizeof(float);
  EXPECT_TRUE(StateCache::IsUsedFor(a, kRecords, o));
  o.cache_at_most -= 1;
  EXPECT_FALSE(StateCache::IsUsedFor(a, kRecords, o)) << "no room for the last record's vector";
  o = head;
  o.dropout.residual = 0.1f;
  EXPECT_FALSE(StateCache::IsUsedFor(a, kRecords, o)) << "what is pooled differs in every step";
  for (const TrainedPart part : {TrainedPart::kAll, TrainedPart::kBlocks}) {
    o = head;
    o.trained_part = part;
    EXPECT_FALSE(StateCache::IsUsedFor(a, kRecords, o)) << "blocks train";
  }
  o = Options(Method::kDpFp);
  EXPECT_TRUE(StateCache::IsUsedFor(a, kRecords, o));
  o.dp_fp.mode = DpFpMode::kClipped;
  EXPECT_FALSE(StateCache::IsUsedFor(a, kRecords, o)) << "what lies below the head trains";
  EXPECT_FALSE(StateCache::IsUsedFor(test::SmallArchitectures()[0], kRecords, Options(Method::kOrdinary)));
  Architecture adapted = a;
  adapted.adapter = AdapterSpec{.rank = 2, .alpha = 2};
  EXPECT_FALSE(StateCache::IsUsedFor(adapted, kRecords, head));
}

// After a checkpoint, nothing is reused that was packed or pooled with the weights before it.
TEST_F(StateCacheTest, ResumedRun_HasTheSameBits) {
  const Architecture a = test::SmallClassifiers()[4];
  const Texts texts(a);
  const TrainingOptions o = Options(Method::kOrdinary);
  const std::vector<float> start = test::RandomClassifierWeights(a, 5);
  auto whole = *Trainer::Create(a, start, texts.records, o);
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(whole->Step().ok());
  const Checkpoint saved = *whole->Save();
  for (int step = 2; step < kSteps; ++step) ASSERT_TRUE(whole->Step().ok());
  auto second = *Trainer::Create(a, test::RandomClassifierWeights(a, 6), texts.records, o);
  ASSERT_TRUE(second->Step().ok());
  ASSERT_TRUE(second->Restore(saved).ok());
  while (second->step() < kSteps) ASSERT_TRUE(second->Step().ok());
  EXPECT_EQ(std::vector<float>(whole->weights().begin(), whole->weights().end()),
            std::vector<float>(second->weights().begin(), second->weights().end()));
}

// A new trainer packs everything. A trainer that packs only changes must not miss the head that was fitted.
TEST_F(StateCacheTest, OneProcessTrainsWhatAProcessForEachStepDoes) {
  WISP_NEEDS(kHasDpFp);
  const Architecture a = test::SmallClassifiers()[1];
  const Texts texts(a);
  for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    TrainingOptions o = Options(Method::kDpFp);
    o.dp_fp.mode = mode;
    const std::vector<float> start = test::RandomClassifierWeights(a, 5);
    auto one = *Trainer::Create(a, start, texts.records, o);
    while (one->step() < kSteps) ASSERT_TRUE(one->Step().ok());
    auto each = *Trainer::Create(a, start, texts.records, o);
    while (each->step() < kSteps) {
      ASSERT_TRUE(each->Step().ok());
      const Checkpoint saved = *each->Save();
      each = *Trainer::Create(a, start, texts.records, o);
      ASSERT_TRUE(each->Restore(saved).ok());
    }
    EXPECT_EQ(std::vector<float>(one->weights().begin(), one->weights().end()),
              std::vector<float>(each->weights().begin(), each->weights().end()));
  }
}

}  // namespace
}  // namespace wisp::state_cache_test
