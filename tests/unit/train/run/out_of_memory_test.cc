// A run that runs out of memory in the middle says what was charged and what was saved.
#include "tests/unit/core/counting_allocator.h"
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::out_of_memory_test {
namespace {

class OutOfMemory : public InterruptedRun {
 protected:
  ~OutOfMemory() override { test::too_large = SIZE_MAX; }

  // From the end of this step on, large allocations fail, among them the accountant's arrays.
  Status RunWithMemoryUntil(uint64_t step, TrainingJob job) {
    job.progress = [=](const JobProgress& p) {
      if (p.step == step) test::too_large = 16384;
      return true;
    };
    const Status status = RunTrainingJob(job).status();
    test::too_large = SIZE_MAX;
    return status;
  }
};

TEST_F(OutOfMemory, SaysWhatWasChargedAndWhereItResumes) {
  const Status status = RunWithMemoryUntil(4, Job());
  EXPECT_EQ(status.code(), StatusCode::kIo) << status.message();
  EXPECT_NE(status.message().find("there is not enough memory to continue after step 7 of 8"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("8 steps were charged"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(checkpoint_ + " resumes from step 6"), std::string::npos) << status.message();
  EXPECT_EQ(Charged(), 8u);
}

TEST_F(OutOfMemory, Run_ResumesFromItsCheckpoint) {
  ASSERT_FALSE(RunWithMemoryUntil(4, Job()).ok());
  const auto result = RunTrainingJob(Job());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 8u);
  EXPECT_EQ(result->resumed_from, 6u);
}

}  // namespace
}  // namespace wisp::out_of_memory_test
