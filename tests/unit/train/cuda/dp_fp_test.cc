// DP-FP's steps in memory that the host cannot touch give the host's head and the host's weights, noise included.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/cuda/cuda.h"
#include "runtime/train/trainer.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/train/memory_test_util.h"

namespace wisp::dp_fp_test {
namespace {

constexpr UniformArchitecture kSmall{.num_items = 20,
                                     .max_length = 8,
                                     .width = 16,
                                     .num_heads = 2,
                                     .num_blocks = 1,
                                     .inner_width = 16,
                                     .attend = Attend::kAll,
                                     .num_classes = 3};

class CudaDpFp : public test::ClassifierTraining {
 protected:
  CudaDpFp() {
    std::mt19937 random(1);
    for (size_t i = 0; i < 24; ++i) {
      tokens_.emplace_back(1 + random() % kSmall.max_length);
      for (int32_t& token : tokens_.back()) token = static_cast<int32_t>(random() % kSmall.num_items);
      labels_.push_back(static_cast<int32_t>(random() % 3));
    }
    for (size_t i = 0; i < tokens_.size(); ++i) records_.push_back(test::Labelled(tokens_[i], labels_[i]));
  }

  TrainingOptions Of(DpFpMode mode) {
    TrainingOptions o{.method = Method::kDpFp,
                      .num_steps = 3,
                      .expected_batch = 12,
                      .num_records_public = 24,
                      .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1f},
                      .num_threads = 1,
                      .privacy = {.noise_multiplier = 0.3, .ledger = &ledger_, .run = "run", .reproducible_seed = 7},
                      .dp_fp = {.mode = mode, .micro_batches = 3, .clipping_norm = 1, .noise_multiplier = 0.3}};
    if (mode == DpFpMode::kPaper) o.privacy = {.reproducible_seed = 7};
    return o;
  }
  static TrainingOptions OnDevice(TrainingOptions o) {
    o.device = kernels::Device(kernels::cuda::Ops(), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr));
    return o;
  }
  std::unique_ptr<Trainer> Make(const TrainingOptions& o) {
    auto trainer = Trainer::Create(kSmall, start_, records_, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }
  std::vector<float> Run(const TrainingOptions& o) {
    auto trainer = Make(o);
    while (trainer->step() < trainer->end()) {
      const auto report = trainer->Step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      if (!report.ok()) break;
      EXPECT_EQ(report->num_dropped, 0u);
    }
    return {trainer->weights().begin(), trainer->weights().end()};
  }

  privacy::Ledger ledger_ = OpenLedger("ledger");
  std::vector<std::vector<int32_t>> tokens_;
  std::vector<int32_t> labels_;
  std::vector<Record> records_;
  std::vector<float> start_ = test::StartClassifier(kSmall, {.table_deviation = 0.5f, .position_deviation = 0.05f});
};

constexpr DpFpMode kModes[] = {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper};

TEST_F(CudaDpFp, StepsAreTheHostsNoiseIncluded) {
  for (const DpFpMode mode : kModes) {
    SCOPED_TRACE(static_cast<int>(mode));
    const std::vector<float> host = Run(Of(mode)), device = Run(OnDevice(Of(mode)));
    float moved = 0;
    for (size_t i = 0; i < host.size(); ++i) moved = std::max(moved, std::abs(host[i] - start_[i]));
    EXPECT_GT(moved, 1e-3f);
    for (size_t i = 0; i < host.size(); ++i) ASSERT_NEAR(device[i], host[i], 2e-4f * moved) << i;
    for (const ParameterSpec& p : ListParameters(kSmall)) {
      if (p.role != ParameterRole::kClassWeight && p.role != ParameterRole::kClassBias) continue;
      for (size_t i = p.offset; i < p.offset + p.size(); ++i) EXPECT_NE(device[i], start_[i]) << p.name;
    }
  }
}

// One of several threads takes the records, and all draw noise, which is divided as on the host.
TEST_F(CudaDpFp, ThreadsDrawTheNoiseOfTheHost) {
  for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    TrainingOptions o = Of(mode);
    o.num_threads = 3;
    const std::vector<float> host = Run(o), device = Run(OnDevice(o));
    float moved = 0;
    for (size_t i = 0; i < host.size(); ++i) moved = std::max(moved, std::abs(host[i] - start_[i]));
    for (size_t i = 0; i < host.size(); ++i) ASSERT_NEAR(device[i], host[i], 2e-4f * moved) << i;
  }
}

TEST_F(CudaDpFp, CompanyOfARecordChangesNoBit) {
  for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    TrainingOptions o = OnDevice(Of(mode));
    const std::vector<float> together = Run(o);
    o.rows_at_once = 1;
    EXPECT_EQ(Run(o), together);
  }
}

TEST_F(CudaDpFp, Run_ResumesFromItsCheckpoint) {
  const TrainingOptions o = OnDevice(Of(DpFpMode::kClipped));
  const std::vector<float> whole = Run(o);
  auto first = Make(o);
  ASSERT_TRUE(first->Step().ok());
  auto second = Make(o);
  const Status restored = second->Restore(*first->Save());
  ASSERT_TRUE(restored.ok()) << restored.message();
  while (second->step() < 3) ASSERT_TRUE(second->Step().ok());
  EXPECT_EQ(std::vector<float>(second->weights().begin(), second->weights().end()), whole);
}

TEST_F(CudaDpFp, HoldsWhatWasPlanned) {
  for (const DpFpMode mode : kModes) {
    SCOPED_TRACE(static_cast<int>(mode));
    const TrainingOptions o = OnDevice(Of(mode));
    const auto plan = PlanTrainingMemory(kSmall, records_.size(), o);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const size_t before = kernels::cuda::AllocatedBytes();
    auto trainer = Make(o);
    test::ExpectEqual(*plan, trainer->memory());
    const size_t held = kernels::cuda::AllocatedBytes() - before;
    EXPECT_LE(held, plan->total());
    ASSERT_TRUE(trainer->Step().ok());
    EXPECT_EQ(kernels::cuda::AllocatedBytes() - before, held) << "a step allocates nothing there";
  }
}

}  // namespace
}  // namespace wisp::dp_fp_test
