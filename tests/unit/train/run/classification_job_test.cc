// Whole DP-FP runs: the ledger's charges meet the goal, in one mechanism and in two; a run without a guarantee states
// none; bad goals are refused before anything is spent.
#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "runtime/train/run/job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::classification_job_test {
namespace {

using privacy::Ledger;

class ClassificationJobTest : public test::ClassifierTraining {
 protected:
  ClassificationJobTest() {
    std::mt19937 random(4);
    for (size_t i = 0; i < kRecords; ++i) {
      const int32_t label = static_cast<int32_t>(random() % 2);
      tokens_.push_back(
          {0, static_cast<int32_t>(1 + 4 * label + random() % 4), static_cast<int32_t>(9 + random() % 3)});
      labels_.push_back(label);
    }
    for (size_t i = 0; i < kRecords; ++i) records_.push_back(test::Labelled(tokens_[i], labels_[i]));
  }

  TrainingJob Job(DpFpMode mode) {
    TrainingJob job{.spec = {.architecture = test::kTinyClassifier}, .records = records_, .start_weights = weights_};
    job.spec.training = {.method = Method::kDpFp,
                         .sampling = Sampling::kPoisson,
                         .expected_batch = 200,
                         .num_records_public = kRecords,
                         .optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 1e-3f},
                         .num_threads = 1,
                         .privacy = {.clipping_norm = 0.5, .run = "run", .steps_per_charge = 1},
                         .dp_fp = {.mode = mode, .micro_batches = 2, .noise_multiplier = 1}};
    job.spec.epochs = 1;  // 2 steps
    if (mode == DpFpMode::kPaper) return job;
    job.spec.training.privacy.ledger = &ledger_;
    job.spec.goal = {.epsilon = 2.0, .noise_multiplier = {}, .delta = kDelta};
    return job;
  }
  // Avoids the seconds that calibration takes.
  TrainingJob MakeFixedNoiseJob() {
    TrainingJob job = Job(DpFpMode::kAggregate);
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 2.0, .delta = kDelta};
    return job;
  }
  double Spent() { return *ledger_.Spent(*privacy::Delta::Create(kDelta)); }
  void ExpectRefused(const TrainingJob& job, StatusCode code, const char* sentence) {
    const auto result = RunTrainingJob(job);
    ASSERT_FALSE(result.ok()) << sentence;
    EXPECT_EQ(result.status().code(), code) << result.status().message();
    EXPECT_NE(result.status().message().find(sentence), std::string::npos) << result.status().message();
    EXPECT_TRUE(ledger_.Entries()->empty()) << "a refused run was charged: " << sentence;
  }

  static constexpr size_t kRecords = 400;
  static constexpr double kDelta = 1e-3;
  std::vector<std::vector<int32_t>> tokens_;
  std::vector<int32_t> labels_;
  std::vector<Record> records_;
  const std::vector<float> weights_ = test::StartClassifier(test::kTinyClassifier, {.table_deviation = 0.5f});
  Ledger ledger_ = OpenLedger("l");
};

// The epsilon is at most the goal, so that an equal budget pays for the last step, and almost all of it.
TEST_F(ClassificationJobTest, GoalIsMetByWhatTheLedgerCharged) {
  const auto result = RunTrainingJob(Job(DpFpMode::kAggregate));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 2u);
  EXPECT_EQ(result->norm_bound, 1.0);
  ASSERT_EQ(result->mechanisms.size(), 1u);
  EXPECT_EQ(result->mechanisms[0].steps(), 4u);
  EXPECT_DOUBLE_EQ(result->mechanisms[0].sampling_probability(), 0.25);
  EXPECT_EQ(result->mechanisms[0].noise_multiplier(), result->options.dp_fp.noise_multiplier);
  EXPECT_LE(Spent(), 2.0);
  EXPECT_GT(Spent(), 1.99);
  EXPECT_EQ(result->epsilon, std::optional<double>(Spent()));
}

TEST_F(ClassificationJobTest, BothMechanismsOfClippedComposeToTheGoal) {
  const auto result = RunTrainingJob(Job(DpFpMode::kClipped));
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->mechanisms.size(), 2u);
  EXPECT_LE(Spent(), 2.0);
  EXPECT_GT(Spent(), 1.99);
  // Each alone costs less than both; the head costs about its share.
  const auto delta = *privacy::Delta::Create(kDelta);
  const double head = *privacy::PldEpsilon(std::span(result->mechanisms).first(1), delta);
  EXPECT_NEAR(head, 0.3 * 2.0, 0.01);
  EXPECT_LT(*privacy::PldEpsilon(std::span(result->mechanisms).last(1), delta), 2.0);
  uint64_t charged[2] = {0, 0};
  const auto entries = ledger_.Entries();
  for (const auto& entry : *entries) charged[entry.purpose == "encoder training"] += entry.mechanism.steps();
  EXPECT_EQ(charged[0], 4u);
  EXPECT_EQ(charged[1], 2u);
}

TEST_F(ClassificationJobTest, PaperStatesNothing) {
  const auto result = RunTrainingJob(Job(DpFpMode::kPaper));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->epsilon.has_value());
  EXPECT_TRUE(result->mechanisms.empty());
  EXPECT_EQ(result->norm_bound, 0.0);
  EXPECT_NE(
      DescribeDpFp(test::kTinyClassifier, result->options, result->num_steps).find("no differential privacy guarantee"),
      std::string::npos);
  EXPECT_EQ(DescribeDpFp(test::kTinyClassifier, result->options, result->num_steps).find_first_of("0123456789"),
            std::string::npos)
      << "a figure beside what has no guarantee";
  EXPECT_TRUE(ledger_.Entries()->empty());
}

TEST_F(ClassificationJobTest, PaperRefusesWhatSpeaksOfAGuarantee) {
  TrainingJob job = Job(DpFpMode::kPaper);
  job.spec.goal = {.epsilon = 2.0, .noise_multiplier = {}, .delta = kDelta};
  ExpectRefused(job, StatusCode::kPrivacyRefused, "mode paper has no epsilon");
  job.spec.goal = {};
  job.spec.training.privacy.ledger = &ledger_;
  ExpectRefused(job, StatusCode::kPrivacyRefused, "no charge could cover it");
}

TEST_F(ClassificationJobTest, ReproducibleNoiseStatesNoEpsilon) {
  TrainingJob job = MakeFixedNoiseJob();
  job.spec.training.privacy.reproducible_seed = 5;
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->epsilon.has_value());
  EXPECT_NE(DescribeDpFp(test::kTinyClassifier, result->options, result->num_steps).find("reproducible, no guarantee"),
            std::string::npos);
}

TEST_F(ClassificationJobTest, BadGoalsAreRefusedBeforeAnythingIsSpent) {
  {
    TrainingJob job = Job(DpFpMode::kClipped);
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 2.0, .delta = kDelta};
    ExpectRefused(job, StatusCode::kInvalidArgument, "mode clipped needs the encoder's too");
  }
  for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    TrainingJob job = Job(mode);
    job.spec.goal.epsilon.reset();
    ExpectRefused(job, StatusCode::kInvalidArgument, "either a target epsilon (`epsilon`) or a noise multiplier");
    job = Job(mode);
    job.spec.goal.delta = 0.01;
    ExpectRefused(job, StatusCode::kPrivacyRefused, "not below 1 / 400");
    job.spec.goal.delta =
        1.0 / 400;  // allows publishing one whole record in the mean, so it must be asked for explicitly
    ExpectRefused(job, StatusCode::kPrivacyRefused, "not below 1 / 400");
    job = Job(mode);
    job.spec.goal.delta = 0;
    ExpectRefused(job, StatusCode::kInvalidArgument, "delta is 0");
    job = Job(mode);
    job.spec.training.num_records_public = 0;
    ExpectRefused(job, StatusCode::kPrivacyRefused, "must not be counted from private data");
    job = Job(mode);
    job.spec.training.privacy.ledger = nullptr;
    ExpectRefused(job, StatusCode::kPrivacyRefused, "needs a ledger");
    job = Job(mode);
    job.spec.epochs = 0;
    ExpectRefused(job, StatusCode::kInvalidArgument, "neither epochs nor steps");
    // These epochs would be endless runs.
    for (double epochs : std::initializer_list<double>{-1, 1e300, INFINITY, NAN}) {
      job = Job(mode);
      job.spec.epochs = epochs;
      job.progress = [](const JobProgress&) { return false; };
      ExpectRefused(job, StatusCode::kInvalidArgument, "epochs is");
    }
    job = Job(mode);
    job.spec.training.dp_fp.class_prior = {0.5, 0.6};
    ExpectRefused(job, StatusCode::kInvalidArgument, "class_prior");
  }
  TrainingJob job = Job(DpFpMode::kClipped);
  job.spec.goal.head_share = 1;
  ExpectRefused(job, StatusCode::kInvalidArgument, "head_share");
  job = Job(DpFpMode::kAggregate);
  job.spec.goal.epsilon = 1e-6;
  job.spec.goal.delta = 1e-12;
  ExpectRefused(job, StatusCode::kPrivacyRefused, "cannot be met");
}

// A run that the budget covers only in part is not begun.
TEST_F(ClassificationJobTest, BudgetThatIsTooSmallIsLeftAlone) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    TrainingJob job = MakeFixedNoiseJob();
    job.spec.training.dp_fp.mode = mode;
    job.spec.training.privacy.noise_multiplier = 2;
    Ledger other = OpenLedger(ToText(mode));
    job.spec.training.privacy.ledger = &other;
    const double whole = *RunTrainingJob(job)->epsilon;
    job.spec.training.privacy.ledger = &ledger_;
    ASSERT_TRUE(ledger_.SetLimit(*privacy::EpsilonDelta::Create(0.95 * whole, kDelta)).ok());
    ExpectRefused(job, StatusCode::kPrivacyRefused, "spent 0; nothing was charged");
  }
}

// A run that does not fit leaves nothing, neither a charge nor the limit.
TEST_F(ClassificationJobTest, NewLimitIsSetByARunThatFitsIt) {
  TrainingJob job = MakeFixedNoiseJob();
  job.spec.goal.new_limit = *privacy::EpsilonDelta::Create(0.01, kDelta);
  ExpectRefused(job, StatusCode::kPrivacyRefused, "nothing was charged");
  EXPECT_FALSE(ledger_.Limit()->has_value());
  job.spec.goal.new_limit = *privacy::EpsilonDelta::Create(100, kDelta);
  ASSERT_TRUE(RunTrainingJob(job).ok());
  ASSERT_TRUE(ledger_.Limit()->has_value());
  EXPECT_EQ((*ledger_.Limit())->epsilon(), 100);
}

// The checkpoint has all that the next step reads: the head's releases, the encoder's moments, every stream.
TEST_F(ClassificationJobTest, ResumedRunEqualsUninterruptedRunBitForBit) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper}) {
    Ledger other = OpenLedger(std::string("bits ") + ToText(mode));
    TrainingJob job = Job(mode);
    job.spec.goal =
        mode == DpFpMode::kPaper ? PrivacyGoal{} : PrivacyGoal{.epsilon = {}, .noise_multiplier = 2.0, .delta = kDelta};
    job.spec.training.privacy.ledger = mode == DpFpMode::kPaper ? nullptr : &other;
    job.spec.training.privacy.noise_multiplier = 2;
    job.spec.training.dp_fp.release_decay = 0.9;
    job.spec.training.num_steps = 5;
    job.spec.training.privacy.reproducible_seed = 7;
    const auto whole = RunTrainingJob(job);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    job.checkpoint_path = folder_ / "c";
    job.progress = [](const JobProgress& p) { return p.step < 2; };
    EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kCancelled);
    job.progress = nullptr;
    const auto rest = RunTrainingJob(job);
    ASSERT_TRUE(rest.ok()) << rest.status().message();
    EXPECT_EQ(rest->resumed_from, 2u);
    EXPECT_EQ(rest->weights, whole->weights) << ToText(mode);
    EXPECT_FALSE(std::filesystem::exists(job.checkpoint_path));
  }
}

TEST_F(ClassificationJobTest, ResumesWithinItsBudgetWithTheStepsThatFit) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    TrainingJob job = MakeFixedNoiseJob();
    job.spec.training.dp_fp.mode = mode;
    job.spec.training.privacy.noise_multiplier = 2;
    job.spec.training.num_steps = 8;
    job.spec.training.privacy.steps_per_charge = 3;
    Ledger whole = OpenLedger(std::string("whole ") + ToText(mode)),
           own = OpenLedger(std::string("own ") + ToText(mode));
    job.spec.training.privacy.ledger = &whole;
    const double limit = 1.001 * *RunTrainingJob(job)->epsilon;
    job.spec.training.privacy.ledger = &own;
    ASSERT_TRUE(own.SetLimit(*privacy::EpsilonDelta::Create(limit, kDelta)).ok());
    job.checkpoint_path = folder_ / "c";
    job.progress = [](const JobProgress& p) { return p.step < 4; };
    EXPECT_NE(RunTrainingJob(job).status().message().find("6 steps were charged"), std::string::npos);
    job.progress = nullptr;
    const auto result = RunTrainingJob(job);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->num_steps, 6u);
    EXPECT_EQ(result->planned_steps, 8u);
    EXPECT_NE(result->ended_early, "");
    EXPECT_LE(*result->epsilon, limit);
    job.spec.training.num_steps = 9;
    job.spec.training.privacy.run = "another";
    EXPECT_NE(RunTrainingJob(job).status().message().find("not one of its steps would fit"), std::string::npos);
  }
}

// Steps charged elsewhere would be forgotten; so would those of the encoder alone.
TEST_F(ClassificationJobTest, Checkpoint_ResumesOnlyWithTheLedgerThatPaid) {
  TrainingJob job = MakeFixedNoiseJob();
  job.spec.training.dp_fp.mode = DpFpMode::kClipped;
  job.spec.training.privacy.noise_multiplier = 2;
  job.spec.training.num_steps = 4;
  job.checkpoint_path = folder_ / "c";
  job.progress = [](const JobProgress& p) { return p.step < 2; };
  ASSERT_EQ(RunTrainingJob(job).status().code(), StatusCode::kCancelled);
  Ledger other = OpenLedger("other");
  job.spec.training.privacy.ledger = &other;
  EXPECT_NE(RunTrainingJob(job).status().message().find("did not pay for what it holds"), std::string::npos);
  Checkpoint older = *ReadCheckpoint(job.checkpoint_path);
  older.receipt.clear();
  ASSERT_TRUE(WriteCheckpoint(job.checkpoint_path, older).ok());
  EXPECT_NE(RunTrainingJob(job).status().message().find("charged for 0 of the 4 steps"), std::string::npos);
  const auto head =
      *privacy::Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 2, .sampling_probability = 0.25, .steps = 4});
  ASSERT_TRUE(other.Charge({.mechanism = head, .run = "run", .purpose = kHeadPurpose}).ok());
  EXPECT_NE(RunTrainingJob(job).status().message().find("charged for 0 of the 2 steps"), std::string::npos);
}

// A refusal would reveal whether there is such a text.
TEST_F(ClassificationJobTest, InvalidRecords_AreSkippedAndNoValidRecordIsNotAnError) {
  tokens_.push_back({0, 12});
  records_.push_back(test::Labelled(tokens_.back(), 0));
  records_.push_back(test::Labelled(tokens_.front(), 2));
  TrainingJob job = MakeFixedNoiseJob();
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_dropped, 2u);
  job.records = {};
  EXPECT_TRUE(RunTrainingJob(job).ok());
  EXPECT_EQ(ledger_.Entries()->size(), 4u);
  job = Job(DpFpMode::kPaper);
  EXPECT_NE(RunTrainingJob(job).status().message().find("names token 12"), std::string::npos);
}

TEST_F(ClassificationJobTest, CancelledRunKeepsItsCharges) {
  TrainingJob job = MakeFixedNoiseJob();
  job.progress = [](const JobProgress& p) { return p.step < 1; };
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kCancelled);
  EXPECT_GT(Spent(), 0);
}

}  // namespace
}  // namespace wisp::classification_job_test
