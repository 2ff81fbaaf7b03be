// A run releases successions once, before its first step: paid for, named, saved, and not released again.
#include <algorithm>
#include <bit>

#include "runtime/model/checkpoint.h"
#include "runtime/train/run/initialise.h"
#include "runtime/train/successions.h"
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::succession_release_test {
namespace {

class SuccessionRelease : public InterruptedRun {
 protected:
  SuccessionRelease() {
    job_ = Job();
    start_.resize(FlatSize(ListParameters(job_.spec.architecture)));
    auto random = privacy::RandomStream::Reproducible(5, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(job_.spec.architecture, {}, random, start_);
    job_.start_weights = start_;
    job_.successions = {.releases = 1, .noise_multiplier = 1};
  }
  std::vector<privacy::LedgerEntry> Releases() {
    std::vector<privacy::LedgerEntry> entries = *ledger_.Entries();
    std::erase_if(entries, [](const auto& e) { return e.purpose != kSuccessionsPurpose; });
    return entries;
  }
  static bool Has(const std::vector<Succession>& all, int32_t from, int32_t to) {
    return std::ranges::any_of(all, [&](const Succession& s) { return s.from == from && s.to == to; });
  }

  TrainingJob job_;
  std::vector<float> start_;
};

TEST_F(SuccessionRelease, ComesOnceBeforeTheFirstStep) {
  std::vector<Succession> written;
  job_.write = [&](const JobResult& r) { return written = *r.successions, OkStatus(); };
  const auto run = RunTrainingJob(job_);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(Releases().size(), 1u);
  const privacy::LedgerEntry first = ledger_.Entries()->front();
  EXPECT_EQ(first.purpose, "item successions");
  EXPECT_EQ(first.run, run->run);
  const privacy::Mechanism planned = *privacy::Mechanism::Gaussian({.noise_multiplier = 1, .count = 1});
  EXPECT_EQ(first.mechanism, planned);
  ASSERT_EQ(run->mechanisms.size(), 2u);
  EXPECT_EQ(run->mechanisms.front(), planned) << "in the order of spending";
  EXPECT_EQ(*run->successions, written);
  // 80 records of a ring: most of its pairs are far above the noise.
  int found = 0;
  for (int32_t i = 0; i < 20; ++i) found += Has(written, i, (i + 1) % 20);
  EXPECT_GE(found, 16);
}

TEST_F(SuccessionRelease, IsSavedAndNotPaidForAgain) {
  job_.pause_after = 3;
  const auto first = RunTrainingJob(job_);
  ASSERT_TRUE(first.ok() && first->paused);
  for (int call = 0; call < 2; ++call) {
    const auto next = RunTrainingJob(job_);
    ASSERT_TRUE(next.ok()) << next.status().message();
    EXPECT_EQ(next->successions, first->successions);
    EXPECT_EQ(Releases().size(), 1u);
    EXPECT_EQ(next->mechanisms.front(), first->mechanisms.front());
  }
}

TEST_F(SuccessionRelease, IsSavedBeforeTheFirstStep) {
  for (const bool histogram : {false, true}) {  // the checkpoint of a histogram comes before it
    std::filesystem::remove(checkpoint_);
    job_.spec.training.privacy.run = histogram ? "second" : "first";
    job_.successions.noise_multiplier = histogram ? 2 : 1;
    if (histogram) {
      job_.spec.architecture.head.output_bias = OutputBias::kFixed;
      job_.spec.goal.histogram_noise = 5;
      start_.resize(FlatSize(ListParameters(job_.spec.architecture)));
      job_.start_weights = start_;
    }
    ASSERT_EQ(RunUntil(1, job_).code(), StatusCode::kCancelled);
    const auto checkpoint = ReadCheckpoint(checkpoint_);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    EXPECT_FALSE(checkpoint->successions.empty());
    ASSERT_EQ(checkpoint->successions.size() % 3, 0u);
    const auto resumed = RunTrainingJob(job_);
    ASSERT_TRUE(resumed.ok()) << resumed.status().message();
    ASSERT_EQ(resumed->successions->size(), checkpoint->successions.size() / 3);
    EXPECT_EQ(std::bit_cast<uint32_t>(resumed->successions->front().score), checkpoint->successions[2]);
  }
  EXPECT_EQ(Releases().size(), 2u);
}

// Somebody lowers the limit between the check of the whole run and its first step.
TEST_F(SuccessionRelease, AFirstStepThatIsRefused_SaysThatARelease_StaysCharged) {
  const auto refused = [&](const char* run, const char* purpose) {
    job_.spec.training.privacy.run = run;
    privacy::Ledger ledger = test::OpenRingLedger(folder_ / run);
    job_.spec.training.privacy.ledger = &ledger;
    job_.cancelled = [&] {
      EXPECT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(0.3, kDelta)).ok());
      return false;
    };
    const std::string message = RunTrainingJob(job_).status().message();
    ASSERT_EQ(ledger.Entries()->size(), 1u) << message;
    EXPECT_EQ(ledger.Entries()->front().purpose, purpose);
    EXPECT_EQ(message.find("nothing was charged"), std::string::npos) << message;
    EXPECT_NE(message.find("this was not charged;"), std::string::npos) << message;
    EXPECT_NE(message.find("; before it, what was charged stays charged, and"), std::string::npos) << message;
  };
  job_.successions.noise_multiplier = 100;
  refused("successions", kSuccessionsPurpose);
  job_.successions = {};
  job_.spec.architecture.head.output_bias = OutputBias::kFixed;
  job_.spec.goal.histogram_noise = 100;
  start_.resize(FlatSize(ListParameters(job_.spec.architecture)));
  job_.start_weights = start_;
  std::filesystem::remove(checkpoint_);
  refused("popularity", "item popularity");
}

TEST_F(SuccessionRelease, LostWithItsCheckpoint_IsNotPaidForAgain) {
  ASSERT_EQ(RunUntil(2, job_).code(), StatusCode::kCancelled);
  std::filesystem::remove(checkpoint_);
  job_.spec.training.privacy.run = "again";
  const auto again = RunTrainingJob(job_);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_FALSE(again->successions);
  EXPECT_EQ(Releases().size(), 1u);
}

TEST_F(SuccessionRelease, NeedsAPrivateRunFromAllWeights) {
  const auto expect_refused = [&](const TrainingJob& job) {
    const Status refused = RunTrainingJob(job).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("successions"), std::string::npos) << refused.message();
  };
  TrainingJob job = job_;
  job.start_weights = {};
  expect_refused(job);
  job = job_;
  job.spec.training.method = Method::kOrdinary;
  expect_refused(job);
  EXPECT_TRUE(ledger_.Entries()->empty());
}

}  // namespace
}  // namespace wisp::succession_release_test
