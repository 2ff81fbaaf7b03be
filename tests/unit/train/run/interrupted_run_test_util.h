// A run of 8 steps on a ring of 80 users, to be stopped in all ways.
#ifndef WISP_TESTS_UNIT_TRAIN_RUN_INTERRUPTED_RUN_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TRAIN_RUN_INTERRUPTED_RUN_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/train/run/job.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp {

class InterruptedRun : public ::testing::Test {
 protected:
  InterruptedRun() {
    for (size_t u = 0; u < 80; ++u) AddUser(u);
    for (int i = 0; i < 20; ++i) sequences_.item_keys.push_back(std::to_string(i));
  }
  void AddUser(size_t u) {
    for (size_t t = 0; t < 8; ++t) sequences_.items.push_back(static_cast<int32_t>((u * 7 + t) % 20));
    sequences_.offsets.push_back(sequences_.items.size());
    sequences_.user_keys.push_back(std::to_string(u));
  }

  // Returns a job of 8 steps, charged 3 at a time.
  TrainingJob Job() {
    TrainingJob job{.sequences = &sequences_};
    job.spec.architecture = UniformArchitecture{
        .num_items = 20, .max_length = 8, .width = 8, .num_heads = 1, .num_blocks = 1, .inner_width = 8};
    job.spec.training = {.method = Method::kPhantom,
                         .sampling = Sampling::kPoisson,
                         .num_steps = 8,
                         .expected_batch = 20,
                         .num_records_public = 80,
                         .num_threads = 1};
    job.spec.training.privacy.ledger = &ledger_;
    job.spec.training.privacy.run = "run";
    job.spec.training.privacy.steps_per_charge = 3;
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 2, .delta = kDelta};
    job.checkpoint_path = checkpoint_;
    return job;
  }
  Status RunUntil(uint64_t step, TrainingJob job) {
    job.progress = [=](const JobProgress& p) { return p.step < step; };
    return RunTrainingJob(job).status();
  }
  uint64_t Charged() {
    uint64_t steps = 0;
    for (const auto& entry : *ledger_.Entries()) steps += entry.purpose == "training" ? entry.mechanism.steps() : 0;
    return steps;
  }
  double Cost(uint64_t steps) {
    const auto mechanism = *privacy::Mechanism::PoissonSubsampledGaussian(
        {.noise_multiplier = 2, .sampling_probability = 0.25, .steps = steps});
    privacy::Ledger other = *privacy::Ledger::Open(folder_ / ("cost" + std::to_string(steps)),
                                                   {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
    EXPECT_TRUE(other.Charge({.mechanism = mechanism, .run = "r", .purpose = "training"}).ok());
    return *other.Spent(*privacy::Delta::Create(kDelta));
  }
  void SetLimit(double epsilon) { ASSERT_TRUE(ledger_.SetLimit(*privacy::EpsilonDelta::Create(epsilon, kDelta)).ok()); }
  size_t Temporaries() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / ""))
      count += entry.path().string().find(".tmp-") != std::string::npos;
    return count;
  }

  static constexpr double kDelta = 1e-3;
  test::TemporaryFolder folder_;
  const std::string checkpoint_ = folder_ / "c";
  data::Sequences sequences_;
  bool full_ = false;  // the disk, for full_disk_vfs.h
  privacy::Ledger ledger_ =
      *privacy::Ledger::Open(folder_ / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
};

}  // namespace wisp

#endif  // WISP_TESTS_UNIT_TRAIN_RUN_INTERRUPTED_RUN_TEST_UTIL_H_
