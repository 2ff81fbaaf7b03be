// A run that pauses: each call pays for its own steps, and all calls together are the run.
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::paused_run_test {
namespace {

using PausedRun = InterruptedRun;

TEST_F(PausedRun, PaysForTheStepsOfEachCallAlone) {
  TrainingJob job = Job();
  job.pause_after = 2;
  for (uint64_t steps = 2; steps <= 8; steps += 2) {
    std::vector<float> written;
    job.write = [&](const JobResult& r) {
      written = r.weights;
      return OkStatus();
    };
    const auto result = RunTrainingJob(job);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->num_steps, steps);
    EXPECT_EQ(result->paused, steps < 8);
    EXPECT_EQ(result->length(), privacy::RunLength::kChosen);
    EXPECT_EQ(Charged(), steps) << "a charge of 3 steps ends with the call";
    EXPECT_EQ(std::filesystem::exists(checkpoint_), steps < 8);
    EXPECT_FALSE(written.empty());
  }
}

// This includes the learning rate: no call ends a schedule.
TEST_F(PausedRun, IsTheRunThatDoesNotPause) {
  TrainingJob job = Job();
  job.spec.training.optimizer.decay = Decay::kLinear;
  job.spec.training.privacy.reproducible_seed = 7;
  const auto whole = RunTrainingJob(job);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  job.pause_after = 3;
  for (int call = 0; call < 2; ++call) ASSERT_TRUE(RunTrainingJob(job)->paused);
  EXPECT_EQ(RunTrainingJob(job)->weights, whole->weights);
}

TEST_F(PausedRun, IsHeldToWhatItsCallTakes) {
  SetLimit(Cost(4) + 0.001);  // and the cost of the grid
  TrainingJob job = Job();
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kPrivacyRefused);
  job.pause_after = 4;
  EXPECT_TRUE(RunTrainingJob(job)->paused);
  const auto more = RunTrainingJob(job);
  ASSERT_TRUE(more.ok()) << more.status().message();
  EXPECT_FALSE(more->ended_early.empty()) << "the limit has no room for one more";
  EXPECT_EQ(Charged(), 4u);
}

TEST_F(PausedRun, NeedsACheckpointAndMayChangeItsThreads) {
  TrainingJob job = Job();
  job.pause_after = 3;
  job.checkpoint_path.clear();
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kInvalidArgument);
  job.checkpoint_path = checkpoint_;
  ASSERT_TRUE(RunTrainingJob(job)->paused);
  job.spec.training.num_threads = 2;
  EXPECT_EQ(RunTrainingJob(job)->num_steps, 6u);
}

}  // namespace
}  // namespace wisp::paused_run_test
