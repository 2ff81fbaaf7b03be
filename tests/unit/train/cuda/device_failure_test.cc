// A device that fails in the middle of a private run, at each of its copies and waits in turn: no weights without noise
// get out, the last checkpoint stays, nothing is done twice for one charge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/cuda/cuda.h"
#include "runtime/train/run/job.h"
#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::device_failure_test {
namespace {

// The device's memory in which a chosen copy or wait fails, and all later ones too.
class FailingMemory {
 public:
  explicit FailingMemory(int calls) : left_(calls) {
    table_ = kernels::cuda::DeviceMemory();
    table_.copy_in = [](void* self, void* to, const void* from, size_t bytes) {
      if (Of(self).Works()) kernels::cuda::DeviceMemory().copy_in(nullptr, to, from, bytes);
    };
    table_.copy_out = [](void* self, void* to, const void* from, size_t bytes) {
      std::memset(to, 0, bytes);
      if (Of(self).Works()) kernels::cuda::DeviceMemory().copy_out(nullptr, to, from, bytes);
    };
    table_.wait = [](void* self) { return Of(self).Works(); };
    table_.failure = [](void* self) { return Of(self).left_ < 0 ? "it fell off the bus" : ""; };
  }
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  kernels::Device device() { return {kernels::cuda::Ops(), kernels::Memory(table_, this)}; }
  bool failed() const { return left_ < 0; }
  void Heal() { left_ = 1 << 30; }
  void Fail() { left_ = 0; }

 private:
  static FailingMemory& Of(void* self) { return *static_cast<FailingMemory*>(self); }
  bool Works() { return left_ >= 0 && --left_ >= 0; }

  int left_;
  kernels::MemoryTable table_;
};

class DeviceFailure : public test::RingTraining {
 protected:
  DeviceFailure() : RingTraining(8) {}

  TrainingOptions Options(const kernels::Device& device, privacy::Ledger& ledger, Method method = Method::kPhantom) {
    TrainingOptions o{.method = method,
                      .sampling = Sampling::kPoisson,
                      .num_steps = kSteps,
                      .expected_batch = 4,
                      .num_records_public = 8,
                      .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1f},
                      .seed = 5,
                      .num_threads = 2,
                      .device = device};
    o.privacy = {.noise_multiplier = 2, .ledger = &ledger, .run = "run", .reproducible_seed = 7};
    o.rgp.rank = 2;
    o.sparse = {.map_threshold = 2};
    if (NamesRows(method)) o.sparse.rows = rows_;
    if (method == Method::kFest) o.num_negatives = 3;
    return o;
  }
  // Returns the weights after each step of a working device.
  std::vector<std::vector<float>> GoodWeights(Method method = Method::kPhantom) {
    privacy::Ledger ledger = OpenLedger(std::string("good ") + GetName(method));
    FailingMemory memory(1 << 30);
    auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(memory.device(), ledger, method));
    std::vector<std::vector<float>> weights = {start_};
    for (uint64_t i = 0; i < kSteps; ++i) {
      EXPECT_TRUE(trainer->Step().ok());
      weights.emplace_back(trainer->weights().begin(), trainer->weights().end());
    }
    return weights;
  }

  static constexpr uint64_t kSteps = 2;
  std::vector<int32_t> rows_{1, 2, 4, 7, 11, 20};
};

class DeviceFailureByMethod : public DeviceFailure, public ::testing::WithParamInterface<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, DeviceFailureByMethod,
                         ::testing::Values(Method::kPhantom, Method::kRgp, Method::kFest, Method::kAdaFest),
                         [](const auto& method) { return GetName(method.param); });

TEST_P(DeviceFailureByMethod, ATrainerGivesNothingOutAfterIt) {
  const std::vector<std::vector<float>> good = GoodWeights(GetParam());
  bool reached_the_end = false;
  for (int calls = 0; !reached_the_end; ++calls) {
    privacy::Ledger ledger = OpenLedger("l" + std::to_string(calls));
    FailingMemory memory(calls);
    auto trainer = Trainer::Create(kSmall, start_, ring_.records, Options(memory.device(), ledger, GetParam()));
    if (!trainer.ok()) {
      EXPECT_NE(trainer.status().message().find("it fell off the bus"), std::string::npos)
          << trainer.status().message();
      EXPECT_TRUE(ledger.Entries()->empty()) << "nothing is charged before the device has worked";
      continue;
    }
    Status status;
    while ((*trainer)->step() < kSteps && status.ok()) status = (*trainer)->Step().status();
    reached_the_end = status.ok();
    if (reached_the_end) break;
    EXPECT_TRUE(memory.failed());
    EXPECT_EQ(status.code(), StatusCode::kIo);
    const size_t charged = ledger.Entries()->size();
    EXPECT_FALSE((*trainer)->Save().ok()) << calls;
    EXPECT_FALSE((*trainer)->Step().ok());
    EXPECT_EQ(ledger.Entries()->size(), charged) << "a step that cannot be taken is charged";
    for (float w : (*trainer)->weights()) EXPECT_EQ(w, 0) << "what could not be copied is shown";
    EXPECT_FALSE((*trainer)->CheckDevice().ok());
    // The weights are those that were released, whenever it failed; a device that works again takes no step.
    memory.Heal();
    EXPECT_FALSE((*trainer)->Step().ok());
    const std::vector<float> left((*trainer)->weights().begin(), (*trainer)->weights().end());
    EXPECT_NE(std::find(good.begin(), good.end(), left), good.end()) << calls;
  }
}

// Between two steps the next one is not charged yet.
TEST_F(DeviceFailure, AFailureBetweenStepsIsNotPaidFor) {
  privacy::Ledger ledger = OpenLedger("l");
  FailingMemory memory(1 << 30);
  auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(memory.device(), ledger));
  ASSERT_TRUE(trainer->Step().ok());
  memory.Fail();
  for (float w : trainer->weights()) EXPECT_EQ(w, 0);
  EXPECT_FALSE(trainer->CheckDevice().ok());
  EXPECT_FALSE(trainer->Step().ok());
  EXPECT_EQ(ledger.Entries()->size(), 1u);
}

TEST_F(DeviceFailure, ARunKeepsItsLastCheckpointAndWritesNoModel) {
  const std::vector<std::vector<float>> good = GoodWeights();
  bool done = false;
  int checkpoints = 0;
  for (int calls = 0; !done; ++calls) {
    privacy::Ledger ledger = OpenLedger("r" + std::to_string(calls));
    FailingMemory memory(calls);
    TrainingJob job{.spec = {.architecture = kSmall}, .records = ring_.records, .start_weights = start_};
    job.spec.training = Options(memory.device(), ledger);
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 2, .delta = 1e-6};
    job.checkpoint_path = folder_ / ("c" + std::to_string(calls));
    job.checkpoint_every = 1;
    bool written = false;
    job.write = [&](const JobResult& result) {
      written = true;
      EXPECT_EQ(result.weights, good.back());
      return OkStatus();
    };
    const auto result = RunTrainingJob(job);
    done = result.ok();
    EXPECT_EQ(written, done);
    if (done) break;
    ASSERT_TRUE(memory.failed()) << result.status().message();
    const auto checkpoint = ReadCheckpoint(job.checkpoint_path);
    if (!checkpoint.ok()) continue;
    ++checkpoints;
    ASSERT_LE(checkpoint->step, kSteps);
    EXPECT_EQ(checkpoint->weights, good[checkpoint->step]) << calls;
  }
  EXPECT_GT(checkpoints, 3);
}

}  // namespace
}  // namespace wisp::device_failure_test
