// A run of 8 steps on a ring of 80 users, to be stopped in all ways.
#ifndef WISP_TESTS_UNIT_TRAIN_RUN_INTERRUPTED_RUN_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TRAIN_RUN_INTERRUPTED_RUN_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/train/run/job.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/train/run/ring_job.h"

namespace wisp {

class InterruptedRun : public ::testing::Test {
 protected:
  // Returns a job of 8 steps, charged 3 at a time.
  TrainingJob Job() {
    TrainingJob job = test::RingJob(sequences_, ledger_);
    job.spec.training.num_steps = 8;
    job.spec.training.num_records_public = 80;  // also where there are more
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
    privacy::Ledger other = test::OpenRingLedger(folder_ / ("cost" + std::to_string(steps)));
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
  data::Sequences sequences_ = test::RingSequences(80);
  bool full_ = false;  // the disk, for full_disk_vfs.h
  privacy::Ledger ledger_ = test::OpenRingLedger(folder_ / "l");
};

}  // namespace wisp

#endif  // WISP_TESTS_UNIT_TRAIN_RUN_INTERRUPTED_RUN_TEST_UTIL_H_
