// Whole training steps in memory that the host cannot touch, so that any access other than an op or a copy ends the
// process. Weights equal those of the same run on the host, noise included.
#include "runtime/train/trainer.h"

#include <gtest/gtest.h>

#include "tests/unit/train/cuda/cuda_train_test_util.h"
#include "tests/unit/train/memory_test_util.h"

namespace wisp::trainer_test {
namespace {

using test::TheDevice;

class CudaTrainer : public test::CudaTraining {};

TEST_F(CudaTrainer, OrdinaryStepsAreTheHosts) {
  TrainingOptions o = Ordinary();
  o.dropout = {.embedding = 0.1f, .attention = 0.1f, .residual = 0.1f};
  ExpectSameRun(o);
  o.loss = LossWeighting::kPositionMean;
  o.ema_decay = 0.5f;
  ExpectSameRun(o);
}

TEST_F(CudaTrainer, PrivateStepsAreTheHostsNoiseIncluded) {
  TrainingOptions o = Private();
  o.dropout = {.embedding = 0.1f, .attention = 0.1f, .residual = 0.1f};
  ExpectSameRun(o);
  o.privacy.clipping = ClipKind::kFlat;
  o.ema_decay = 0.5f;
  o.num_threads = 3;
  ExpectSameRun(o);
}

TEST_F(CudaTrainer, ReAttentionKeepsTheVariancesOfTheHost) {
  Architecture a = kSmall;
  a.re_attention = ReAttention::kOn;
  TrainingOptions o = Private();
  o.ema_decay = 0.5f;
  ExpectSameRun(o, a);
  o.optimizer = {.learning_rate = 0.01f};  // Adam
  const std::vector<float> host = Run(o, a), device = Run(OnDevice(o), a);
  for (const ParameterSpec& p : ListParameters(a)) {
    if (p.role != ParameterRole::kItemVariance && p.role != ParameterRole::kParameterVariance) continue;
    for (size_t i = p.offset; i < p.offset + p.size(); ++i)
      EXPECT_NEAR(device[i], host[i], 1e-3f * host[i]) << p.name << " " << i - p.offset;
  }
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1f};
  std::vector<float> frequencies(a.num_items, 0.25f);
  o.re_attention = {.source = ReAttentionOptions::Source::kPrinted, .item_frequencies = frequencies};
  ExpectSameRun(o, a);
}

TEST_F(CudaTrainer, CosineHeadsAndAdaptersTrain) {
  Architecture cosine = kSmall;
  cosine.head.temperature = 0.2f;
  ExpectSameRun(Ordinary(), cosine);
  ExpectSameRun(Private(), cosine);
  Architecture adapter = kSmall;
  adapter.adapter = AdapterSpec{.rank = 2, .alpha = 4};
  ExpectSameRun(Private(), adapter);
}

// A record's integers depend on the record alone: whatever passes with it, the sum is the same.
TEST_F(CudaTrainer, CompanyOfARecordChangesNoBitOfAPrivateRun) {
  TrainingOptions o = OnDevice(Private());
  o.optimizer = {.learning_rate = 0.01f};
  const std::vector<float> together = Run(o);
  o.rows_at_once = 1;
  EXPECT_EQ(Run(o), together);
  o.rows_at_once = 3 * kSmall.max_length;
  EXPECT_EQ(Run(o), together);
}

kernels::Device ChooseDevice(kernels::Arithmetic arithmetic) {
  return {kernels::cuda::Ops(arithmetic), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr)};
}

// The noise is the host's; gradients differ by the rounding of their factors.
TEST_F(CudaTrainer, RunsInTf32AreNearTheHosts) {
  for (const TrainingOptions& o : {Private(), Ordinary()}) {
    const std::vector<float> host = Run(o), start = test::StartWeights(kSmall);
    const std::vector<float> device = Run(OnDevice(o, ChooseDevice(kernels::Arithmetic::kTf32)));
    float moved = 0, off = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      moved = std::max(moved, std::abs(host[i] - start[i]));
      off = std::max(off, std::abs(device[i] - host[i]));
    }
    EXPECT_LT(off, 5e-3f * moved);
    EXPECT_GT(off, 1e-5f * moved) << "products in floats of 32 bits";
  }
}

TEST_F(CudaTrainer, CompanyOfARecordChangesNoBitInTf32) {
  TrainingOptions o = OnDevice(Private(), ChooseDevice(kernels::Arithmetic::kTf32));
  o.optimizer = {.learning_rate = 0.01f};
  const std::vector<float> together = Run(o);
  o.rows_at_once = 1;
  EXPECT_EQ(Run(o), together);
  o.rows_at_once = 3 * kSmall.max_length;
  EXPECT_EQ(Run(o), together);
}

TEST_F(CudaTrainer, Run_ResumesFromItsCheckpointAndFromTheHosts) {
  TrainingOptions o = OnDevice(Private());
  o.ema_decay = 0.5f;
  o.optimizer = {.learning_rate = 0.01f};
  const std::vector<float> whole = Run(o);
  auto first = Make(o);
  ASSERT_TRUE(first->Step().ok());
  const Checkpoint checkpoint = *first->Save();
  auto second = Make(o);
  const Status restored = second->Restore(checkpoint);
  ASSERT_TRUE(restored.ok()) << restored.message();
  while (second->step() < 3) ASSERT_TRUE(second->Step().ok());
  const auto weights = second->final_weights();
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()), whole);

  o.device = kernels::BestOps();
  auto on_host = Make(o);
  ASSERT_TRUE(on_host->Restore(checkpoint).ok());
  EXPECT_TRUE(std::equal(on_host->weights().begin(), on_host->weights().end(), checkpoint.weights.begin()));
}

TEST_F(CudaTrainer, HoldsWhatWasPlanned) {
  for (const bool is_private : {false, true}) {
    const TrainingOptions o = OnDevice(is_private ? Private() : Ordinary());
    const auto plan = PlanTrainingMemory(kSmall, ring_.records.size(), o);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const size_t before = kernels::cuda::AllocatedBytes();
    auto trainer = Make(o);
    test::ExpectEqual(*plan, trainer->memory());
    const size_t held = kernels::cuda::AllocatedBytes() - before;
    EXPECT_LE(held, plan->total());
    EXPECT_GT(held, plan->total() - plan->total() / 4) << "most of it lies on the device";
    ASSERT_TRUE(trainer->Step().ok());
    EXPECT_EQ(kernels::cuda::AllocatedBytes() - before, held) << "a step allocates nothing";
  }
}

TEST_F(CudaTrainer, RefusesWhatADeviceDoesNotDo) {
  const auto refusal = [&](const TrainingOptions& o) {
    const Status status = Trainer::Create(kSmall, start_, ring_.records, o).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("cuda"), std::string::npos);
    return status.message();
  };
  TrainingOptions o = OnDevice(Private());
  o.privacy.norm_form = NormForm::kGram;
  EXPECT_NE(refusal(o).find("norm_form"), std::string::npos);
  for (const auto arithmetic :
       {kernels::Arithmetic::kFloat16, kernels::Arithmetic::kBfloat16, kernels::Arithmetic::kInt8}) {
    for (const TrainingOptions& refused : {Private(), Ordinary()})
      EXPECT_NE(refusal(OnDevice(refused, ChooseDevice(arithmetic))).find("inference only"), std::string::npos);
  }
}

// The device's memory in which a chosen allocation fails.
struct FewAllocations {
  explicit FewAllocations(int allowed) : left(allowed) {
    table = kernels::cuda::DeviceMemory();
    table.allocate = [](void* self, size_t bytes) {
      if (static_cast<FewAllocations*>(self)->left-- <= 0) throw std::bad_alloc();
      return kernels::cuda::DeviceMemory().allocate(nullptr, bytes);
    };
  }
  kernels::Device device() { return {kernels::cuda::Ops(), kernels::Memory(table, this)}; }

  int left;
  kernels::MemoryTable table;
};

TEST_F(CudaTrainer, WhicheverAllocationFailsTheRunIsRefusedAndNothingStays) {
  const size_t before = kernels::cuda::AllocatedBytes();
  int failed = 0;
  for (int allowed = 0;; ++allowed) {
    FewAllocations few(allowed);
    const auto trainer = Trainer::Create(kSmall, start_, ring_.records, OnDevice(Private(), few.device()));
    if (trainer.ok()) break;
    EXPECT_EQ(trainer.status().code(), StatusCode::kIo);
    EXPECT_NE(trainer.status().message().find("for the run, which takes"), std::string::npos);
    EXPECT_EQ(kernels::cuda::AllocatedBytes(), before) << allowed;
    ++failed;
  }
  EXPECT_GE(failed, 8);
  EXPECT_EQ(ledger_.Entries()->size(), 0u) << "nothing is charged";
  Run(OnDevice(Private()));
}

}  // namespace
}  // namespace wisp::trainer_test
