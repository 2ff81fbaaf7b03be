// Runs that are cancelled, killed, out of budget or out of disk: paid results are kept, charges are stated, and a run
// can resume.
#include <gtest/gtest.h>
#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include <chrono>
#include <filesystem>
#include <thread>

#include "runtime/data/event_log.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "runtime/privacy/statement.h"
#include "runtime/train/run/saved_run.h"
#include "tests/unit/core/file_size_limit.h"
#include "tests/unit/privacy/ledger/full_disk_vfs.h"
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::interrupted_run_test {
namespace {

using privacy::Ledger;

TEST_F(InterruptedRun, CancelSavesTheStepReachedAndSaysWhatWasCharged) {
  const Status status = RunUntil(4, Job());
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_NE(status.message().find("6 steps were charged"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("resumes from step 4"), std::string::npos) << status.message();
  EXPECT_EQ(ReadCheckpoint(checkpoint_)->step, 4u);
  EXPECT_EQ(Charged(), 6u);
  EXPECT_EQ(Temporaries(), 0u);
}

// If a process is killed in a step, only the files on the disk remain.
TEST_F(InterruptedRun, CheckpointIsNeverOlderThanOneCharge) {
  TrainingJob job = Job();
  job.spec.goal.histogram_noise = 5;
  job.spec.architecture.head.output_bias = OutputBias::kFixed;
  std::vector<uint64_t> on_disk;
  job.progress = [&](const JobProgress& p) {
    on_disk.push_back(ReadCheckpoint(checkpoint_)->step);
    EXPECT_EQ(p.saved, on_disk.back());
    return true;
  };
  ASSERT_TRUE(RunTrainingJob(job).ok());
  EXPECT_EQ(on_disk, (std::vector<uint64_t>{0, 0, 3, 3, 3, 6, 6, 6}));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_));
}

TEST_F(InterruptedRun, HistogramOfAnotherNoiseIsRefused) {
  TrainingJob job = Job();
  job.spec.goal.histogram_noise = 5;
  job.spec.architecture.head.output_bias = OutputBias::kFixed;
  ASSERT_EQ(RunUntil(4, job).code(), StatusCode::kCancelled);
  const uint64_t charged = Charged();
  job.spec.goal.histogram_noise = 50;
  const auto result = RunTrainingJob(job);
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(result.status().message().find("its run released an item histogram"), std::string::npos)
      << result.status().message();
  EXPECT_EQ(Charged(), charged);
  job.spec.goal.histogram_noise = 5;
  EXPECT_TRUE(RunTrainingJob(job).ok());
}

TEST_F(InterruptedRun, IntervalIsWhatIsAskedFor) {
  TrainingJob job = Job();
  job.checkpoint_every = 2;
  std::vector<std::optional<uint64_t>> saved;
  job.progress = [&](const JobProgress& p) { return saved.push_back(p.saved), true; };
  ASSERT_TRUE(RunTrainingJob(job).ok());
  EXPECT_EQ(saved, (std::vector<std::optional<uint64_t>>{std::nullopt, 2, 2, 4, 4, 6, 6, 6}));
}

// A charge pays for one draw of noise. Steps 5 and 6 were charged and not taken. Nobody knows how often a checkpoint is
// resumed, so whoever takes them pays.
TEST_F(InterruptedRun, StepsChargedAndNotTakenAreChargedAgain) {
  ASSERT_EQ(RunUntil(4, Job()).code(), StatusCode::kCancelled);
  std::filesystem::copy_file(checkpoint_, folder_ / "copy");
  TrainingJob again = Job();
  again.spec.training.privacy.run = "again";
  const auto first = RunTrainingJob(again);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->resumed_from, 4u);
  EXPECT_EQ(first->num_steps, 8u);
  EXPECT_EQ(Charged(), 10u);
  // All charges have the run's first name, so the statement on the run has every charge.
  EXPECT_EQ(first->run, Job().spec.training.privacy.run);
  const auto entries = *ledger_.Entries();
  EXPECT_TRUE(std::all_of(entries.begin(), entries.end(), [&](const auto& e) { return e.run == first->run; }));
  // Whoever decided to stop had seen six steps, so the PLD figure of ten steps fixed beforehand does not hold.
  const auto at = *privacy::Delta::Create(kDelta);
  EXPECT_GT(*first->epsilon, ledger_.SpentByRun(first->run, at)->epsilon);
  EXPECT_EQ(*first->epsilon, *ledger_.Spent(at));
  EXPECT_EQ(first->accountant, "Renyi filter");
  std::filesystem::copy_file(folder_ / "copy", checkpoint_);
  ASSERT_TRUE(RunTrainingJob(Job()).ok());
  EXPECT_EQ(Charged(), 14u);
}

// The run keeps its name in the ledger, and with it the declarations from its beginning.
TEST_F(InterruptedRun, ADeclarationThatComesLateIsRefused) {
  TrainingJob job = Job();
  job.spec.training.privacy.run = privacy::WithTuning("run", "the rate");
  ASSERT_EQ(RunUntil(4, job).code(), StatusCode::kCancelled);
  for (const char* tuning : {"", "the batch"}) {
    job.spec.training.privacy.run = privacy::WithTuning("again", tuning);
    const Status refused = RunTrainingJob(job).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << tuning;
    EXPECT_NE(refused.message().find("its run declared 'the rate'"), std::string::npos) << refused.message();
  }
  EXPECT_EQ(Charged(), 6u);
  job.spec.training.privacy.run = privacy::WithTuning("again", "the rate");
  EXPECT_TRUE(RunTrainingJob(job).ok());
}

// The limit covers the whole run: what the interruption wasted is missing at the end, and the result says so.
TEST_F(InterruptedRun, ResumesWithinItsBudgetWithTheStepsThatFit) {
  const double limit = 1.001 * Cost(8);
  SetLimit(limit);
  ASSERT_EQ(RunUntil(4, Job()).code(), StatusCode::kCancelled);
  std::vector<uint64_t> ends;
  TrainingJob job = Job();
  job.progress = [&](const JobProgress& p) { return ends.push_back(p.num_steps), true; };
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 6u);
  EXPECT_EQ(result->planned_steps, 8u);
  EXPECT_EQ(ends, (std::vector<uint64_t>{6, 6}));
  EXPECT_NE(result->ended_early.find("ends after step 6 of 8"), std::string::npos) << result->ended_early;
  EXPECT_EQ(result->mechanisms.back().steps(), 6u);
  EXPECT_EQ(Charged(), 8u);
  EXPECT_LE(*result->epsilon, limit);
  EXPECT_DOUBLE_EQ(*result->epsilon, *ledger_.Spent(*privacy::Delta::Create(kDelta)));
}

// Not one more step fits: the model is that of the paid steps.
TEST_F(InterruptedRun, EndsWithWhatItHasWhereNothingMoreFits) {
  SetLimit(1.001 * Cost(6));
  TrainingJob job = Job();
  job.spec.training.num_steps = 6;
  ASSERT_EQ(RunUntil(4, job).code(), StatusCode::kCancelled);
  const std::vector<float> paid = ReadCheckpoint(checkpoint_)->weights;
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 4u);
  EXPECT_EQ(result->weights, paid);
  EXPECT_TRUE(result->epsilon.has_value());
  EXPECT_EQ(Charged(), 6u);
}

// Somebody else spends from the same ledger while the run continues.
TEST_F(InterruptedRun, EndsWhereTheLimitIsReachedOnTheWay) {
  SetLimit(1.001 * Cost(8));
  TrainingJob job = Job();
  job.checkpoint_path.clear();
  job.progress = [&](const JobProgress& p) {
    if (p.step == 4) SetLimit(1.001 * Cost(6));
    return true;
  };
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 6u);
  EXPECT_NE(result->ended_early, "");
}

// An anchor in memory, which a test puts ahead of the ledger.
class CachedValue final : public privacy::LedgerAnchor {
 public:
  Result<std::optional<privacy::AnchorValue>> Read() override { return value; }
  Status Write(const privacy::AnchorValue& next) override { return value = next, OkStatus(); }
  std::optional<privacy::AnchorValue> value;
};

// The limit covers all steps, but the anchor refuses the next charge: a ledger that was replaced on the way must not
// lead to a model.
TEST_F(InterruptedRun, ARefusalThatIsNotTheLimitsIsAnError) {
  const auto anchor = std::make_shared<CachedValue>();
  Ledger ledger = *Ledger::Open(folder_ / "anchored",
                                {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({}), .anchor = anchor});
  ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(1.001 * Cost(8), kDelta)).ok());
  TrainingJob job = Job();
  job.spec.training.privacy.ledger = &ledger;
  job.progress = [&](const JobProgress& p) {
    if (p.step == 3) anchor->value->seq += 5;  // a copy of the ledger was charged elsewhere
    return true;
  };
  const auto result = RunTrainingJob(job);
  EXPECT_EQ(result.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(result.status().message().find("resumes from step 3"), std::string::npos) << result.status().message();
}

TEST_F(InterruptedRun, ARunThatDoesNotFitIsToldWhatWould) {
  SetLimit(1.001 * Cost(5));
  const Status refused = RunTrainingJob(Job()).status();
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("with this noise 5 of its 8 steps would fit, all of them with "), std::string::npos)
      << refused.message();
  TrainingJob job = Job();
  job.spec.training.num_steps = 6;
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(Charged(), 0u);
  SetLimit(0.5 * Cost(1));
  const std::string message = RunTrainingJob(Job()).status().message();
  const size_t at = message.find("not one of its steps would fit, all of them with ");
  ASSERT_NE(at, std::string::npos) << message;
  // The named value can be asked for.
  const std::string named = " times the noise, a noise multiplier of ";
  ASSERT_NE(message.find(named), std::string::npos) << message;
  job = Job();
  job.spec.goal.noise_multiplier = std::stod(message.substr(message.find(named) + named.size()));
  EXPECT_NEAR(*job.spec.goal.noise_multiplier, 2 * std::stod(message.substr(at + 49)),
              1e-3 * *job.spec.goal.noise_multiplier);
  EXPECT_TRUE(RunTrainingJob(job).ok());
}

// A linear decay reaches its end with the last step that is taken, and makes no jump where the run resumes.
TEST(ShortenedSchedule, GoesThroughTheRestOfTheScheduleInFewerSteps) {
  const OptimizerOptions o{.learning_rate = 1, .warmup_steps = 2, .decay = Decay::kLinear};
  const Schedule whole{.planned = 12, .from = 4, .end = 12}, half{.planned = 12, .from = 4, .end = 8};
  const auto rate = [&](const Schedule& s, uint64_t step) { return LearningRate(o, s.Position(step), s.planned); };
  EXPECT_EQ(rate(half, 4), rate(whole, 4));
  EXPECT_EQ(rate(half, 5), rate(whole, 6));
  EXPECT_EQ(rate(half, 7), rate(whole, 10));
  EXPECT_EQ(rate(half, 8), 0);
  EXPECT_EQ(rate(half, 1), rate(whole, 1));
}

TEST_F(InterruptedRun, TheLearningRateOfAShortenedRunComesToItsEnd) {
  const RecordSet set = MakeRecords(sequences_, 8, HoldOut::kNothing);
  TrainingOptions o = Job().spec.training;
  o.privacy.noise_multiplier = 2;
  o.optimizer.decay = Decay::kLinear;
  const std::vector<float> start(FlatSize(ListParameters(Job().spec.architecture)), 0.1f);
  const auto trainer = *Trainer::Create(Job().spec.architecture, start, set.records, o);
  trainer->EndAt(4);
  EXPECT_FLOAT_EQ(trainer->Step()->learning_rate, o.optimizer.learning_rate);
  EXPECT_FLOAT_EQ(trainer->Step()->learning_rate, 0.75f * o.optimizer.learning_rate);
  EXPECT_EQ(Charged(), 3u);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(trainer->Step().ok());
  EXPECT_EQ(Charged(), 4u) << "steps beyond the end were charged";
}

// The number of users is private, and a log that has grown is no reason to refuse.
TEST_F(InterruptedRun, PrivateCheckpointDoesNotKnowHowManyRecordsThereAre) {
  ASSERT_EQ(RunUntil(4, Job()).code(), StatusCode::kCancelled);
  const Checkpoint saved = *ReadCheckpoint(checkpoint_);
  EXPECT_EQ(saved.config.find("records"), std::string::npos) << saved.config;
  test::AddRingUser(sequences_, 80);
  const auto result = RunTrainingJob(Job());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->resumed_from, 4u);
}

// The histogram was charged to another ledger: this one would not know of it.
TEST_F(InterruptedRun, CheckpointBeforeTheFirstStepNeedsTheLedgerThatPaidForItsHistogram) {
  TrainingJob job = Job();
  job.spec.goal.histogram_noise = 5;
  job.spec.architecture.head.output_bias = OutputBias::kFixed;
  job.progress = [&](const JobProgress&) { return std::filesystem::copy_file(checkpoint_, folder_ / "killed"), false; };
  ASSERT_EQ(RunTrainingJob(job).status().code(), StatusCode::kCancelled);
  job.progress = nullptr;
  job.checkpoint_path = folder_ / "killed";
  Ledger other = *Ledger::Open(folder_ / "other", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  job.spec.training.privacy.ledger = &other;
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_TRUE(other.Entries()->empty());
  job.spec.training.privacy.ledger = &ledger_;
  ASSERT_TRUE(RunTrainingJob(job).ok());
  size_t histograms = 0;
  for (const auto& entry : *ledger_.Entries()) histograms += entry.purpose == "item popularity";
  EXPECT_EQ(histograms, 1u);
}

// The model could not be written: nothing is paid twice.
TEST_F(InterruptedRun, CheckpointStaysUntilTheModelIsWritten) {
  TrainingJob job = Job();
  job.write = [](const JobResult&) { return IoError("no room"); };
  EXPECT_EQ(RunTrainingJob(job).status().message(),
            "no room; before it, 8 steps were charged and what was charged stays charged, and " + checkpoint_ +
                " resumes from step 8");
  EXPECT_EQ(ReadCheckpoint(checkpoint_)->step, 8u);
  std::vector<float> written;
  job.write = [&](const JobResult& r) { return written = r.weights, OkStatus(); };
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(written, result->weights);
  EXPECT_TRUE(result->epsilon.has_value());
  EXPECT_EQ(Charged(), 8u);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_));
}

// With this catalogue a checkpoint is larger than the ledger will be.
void MakeLarge(TrainingJob& job) { job.spec.architecture.num_items = 12000; }
constexpr rlim_t kLessThanACheckpoint = 700 << 10;

TEST_F(InterruptedRun, DiskTooFullForTheCheckpointRefusesBeforeTheFirstCharge) {
  TrainingJob job = Job();
  MakeLarge(job);
  {
    const test::FileSizeLimit full(kLessThanACheckpoint);
    const Status status = RunTrainingJob(job).status();
    EXPECT_EQ(status.code(), StatusCode::kIo);
    EXPECT_NE(status.message().find("the disk has no room for its"), std::string::npos) << status.message();
  }
  EXPECT_EQ(Charged(), 0u);
  EXPECT_EQ(Temporaries(), 0u);
}

TEST_F(InterruptedRun, CheckpointThatCannotBeWrittenIsSaidAndTriedAgain) {
  TrainingJob job = Job();
  MakeLarge(job);
  job.checkpoint_every = 2;
  std::optional<test::FileSizeLimit> full;
  std::vector<bool> failed;
  std::vector<std::optional<uint64_t>> saved;
  job.progress = [&](const JobProgress& p) {
    failed.push_back(!p.save_failure.empty());
    saved.push_back(p.saved);
    if (p.step == 3) full.emplace(kLessThanACheckpoint);
    if (p.step == 5) full.reset();
    return true;
  };
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(failed, (std::vector<bool>{false, false, false, true, true, false, false, false}));
  EXPECT_EQ(saved, (std::vector<std::optional<uint64_t>>{std::nullopt, 2, 2, 2, 2, 6, 6, 6}));
  EXPECT_EQ(result->save_failure, "");
  EXPECT_EQ(Temporaries(), 0u);
}

// The disk fills up on the way. Space for the ledger was reserved before the first charge, so the run reaches its end.
TEST_F(InterruptedRun, SpaceReservedForTheLedger_IsGivenToIt) {
  test::FullDiskVfs disk([this] { return full_ && Temporaries() > 0; });
  Ledger ledger = *Ledger::Open(folder_ / "full", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  TrainingJob job = Job();
  job.checkpoint_path.clear();
  job.spec.training.privacy.ledger = &ledger;
  job.progress = [&](const JobProgress& p) { return full_ = p.step >= 3, true; };
  const auto result = RunTrainingJob(job);
  EXPECT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(disk.refused(), 0);
}

TEST_F(InterruptedRun, FullDiskSaysWhatWasCharged) {
  test::FullDiskVfs disk([this] { return full_; });
  Ledger ledger = *Ledger::Open(folder_ / "full", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  TrainingJob job = Job();
  job.spec.training.privacy.ledger = &ledger;
  job.progress = [&](const JobProgress& p) { return full_ = p.step >= 3, true; };
  const Status status = RunTrainingJob(job).status();
  EXPECT_EQ(status.code(), StatusCode::kIo) << status.message();
  EXPECT_EQ(status.message().find("nothing was charged"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("before it, 3 steps were charged"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("resumes from step 3"), std::string::npos) << status.message();
}

// A refusal, or a number of steps, would reveal whether there is a user at all.
TEST_F(InterruptedRun, PrivateRunTrainsOnNobody) {
  sequences_ = {.item_keys = sequences_.item_keys};
  TrainingJob job = Job();
  job.spec.hold_out = HoldOut::kValidationAndTest;
  job.evaluate_every = 4;
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 8u);
  EXPECT_EQ(Charged(), 8u);
  job.spec.training.method = Method::kOrdinary;
  EXPECT_NE(RunTrainingJob(job).status().message().find("no user has two events"), std::string::npos);
}

TEST_F(InterruptedRun, InvalidRecords_AreSkippedAndCounted) {
  for (size_t u : {3, 7}) sequences_.items[sequences_.offsets[u] + 2] = 20;  // items that do not exist
  sequences_.items[sequences_.offsets[9] + 7] = -1;                          // held out for the test
  TrainingJob job = Job();
  job.spec.goal.histogram_noise = 5;
  job.spec.architecture.head.output_bias = OutputBias::kFixed;
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_dropped, 2u);
  EXPECT_EQ(result->test->num_users, 77u);
  EXPECT_EQ(Charged(), 8u);
  job.spec.training.method = Method::kOrdinary;
  EXPECT_NE(RunTrainingJob(job).status().message().find("names item 20"), std::string::npos);
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
TEST_F(InterruptedRun, LogOfEventsIsTheOwnersAlone) {
  const mode_t before = umask(0);
  {
    auto log = data::EventLog::Open(folder_ / "events.db");
    ASSERT_TRUE(log.ok() && log->Append({.user = "anna", .item = "espresso", .time = 1}).ok());
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "")) {
      if (!entry.path().filename().string().starts_with("events")) continue;
      EXPECT_EQ(static_cast<int>(entry.status().permissions()), 0600) << entry.path();
    }
  }
  umask(before);
}
#endif

TEST_F(InterruptedRun, CancelledBeforeItsFirstStepItChargesNothing) {
  TrainingJob job = Job();
  size_t asked = 0;
  for (size_t late = 0; late < 2; ++late) {  // while it is prepared, and once all is ready
    asked = 0;
    job.cancelled = [&] { return asked++ == late; };
    const Status status = RunTrainingJob(job).status();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.message();
    EXPECT_NE(status.message().find("nothing was charged"), std::string::npos) << status.message();
    EXPECT_EQ(asked, late + 1);
    EXPECT_EQ(Charged(), 0u);
  }
  ASSERT_EQ(RunUntil(3, Job()).code(), StatusCode::kCancelled);
  EXPECT_EQ(Charged(), 3u);
  job.cancelled = [] { return true; };
  const Status status = RunTrainingJob(job).status();
  EXPECT_NE(status.message().find("resumes from step 3"), std::string::npos) << status.message();
  EXPECT_EQ(Charged(), 3u);
}

TEST_F(InterruptedRun, AStopInTheLastStep_DoesNotThrowThePaidModelAway) {
  TrainingJob job = Job();
  uint64_t done = 0;
  job.progress = [&](const JobProgress& p) {
    done = p.step;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return true;
  };
  bool was_asked = false;
  job.cancelled = [&] {
    was_asked |= done == 7;
    return done == 7;
  };
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(was_asked);
  EXPECT_EQ(result->num_steps, 8u);
}

// The callbacks sleep, so that a step lasts longer than a stop is waited for.
TEST_F(InterruptedRun, AStepThatEndsSoon_IsTaken_AndALongOneIsGivenUp) {
  for (const bool is_long : {false, true}) {
    std::filesystem::remove(checkpoint_);
    const uint64_t before = Charged();
    TrainingJob job = Job();
    uint64_t done = 0;
    job.progress = [&](const JobProgress& p) {
      done = p.step;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      return true;
    };
    job.cancelled = [&] {
      if (done == 2 && is_long) std::this_thread::sleep_for(std::chrono::milliseconds(600));
      return done == 2;
    };
    const Status status = RunTrainingJob(job).status();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.message();
    const char* const said = is_long ? "in step 3 of 8, which took long and is lost; 3 steps were charged"
                                     : "after step 3 of 8; 3 steps were charged";
    EXPECT_NE(status.message().find(said), std::string::npos) << status.message();
    EXPECT_EQ(ReadCheckpoint(checkpoint_)->step, is_long ? 2u : 3u);
    EXPECT_EQ(Charged() - before, 3u);
    const auto resumed = RunTrainingJob(Job());
    ASSERT_TRUE(resumed.ok()) << resumed.status().message();
    EXPECT_EQ(Charged() - before, is_long ? 9u : 8u) << "what was given up is charged again";
  }
}

}  // namespace
}  // namespace wisp::interrupted_run_test
