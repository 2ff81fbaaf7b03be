// Whole runs: the popularity bias is bounded, noised and paid for; the ledger's figure meets the goal; bad goals are
// refused before anything is spent.
#include "runtime/train/run/job.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "runtime/train/popularity.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/run/ring_job.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::job_test {
namespace {

using privacy::Ledger;
using privacy::RandomStream;
using privacy::StreamPurpose;

class JobTest : public ::testing::Test {
 protected:
  TrainingJob PrivateJob() {
    TrainingJob job = test::RingJob(sequences_, *ledger_, OutputBias::kFixed);
    job.spec.epochs = 2;
    job.spec.goal = {.epsilon = 3.0, .noise_multiplier = {}, .delta = 1e-3};
    job.spec.goal.histogram_noise = 5;
    return job;
  }

  test::TemporaryFolder folder_;
  data::Sequences sequences_ = test::RingSequences(80);
  std::optional<Ledger> ledger_ = test::OpenRingLedger(folder_ / "l");
};

TEST_F(JobTest, GoalIsMetByWhatTheLedgerChargedHistogramIncluded) {
  // The budget equals the goal: the last step must still be paid for.
  ASSERT_TRUE(ledger_->SetLimit(*privacy::EpsilonDelta::Create(3.0, 1e-3)).ok());
  const auto result = RunTrainingJob(PrivateJob());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 8u);
  const double spent = *ledger_->Spent(*privacy::Delta::Create(1e-3));
  EXPECT_LE(spent, 3.0);
  EXPECT_GT(spent, 2.98) << "noise is wasted";
  EXPECT_DOUBLE_EQ(*result->epsilon, spent);
  const auto entries = *ledger_->Entries();
  ASSERT_EQ(entries.size(), 9u);
  EXPECT_EQ(entries[0].purpose, "item popularity");
  EXPECT_DOUBLE_EQ(entries[0].mechanism.noise_multiplier(), 5);
  EXPECT_TRUE(result->test.has_value());
}

// Steps are charged five at a time, and progress names the current charge, which grows only with the second one. While
// steps follow it is a coarse bound, at the end the figure itself.
TEST_F(JobTest, ProgressNamesWhatIsChargedSoFar) {
  TrainingJob job = PrivateJob();
  job.spec.training.privacy.steps_per_charge = 5;
  std::vector<double> shown;
  job.progress = [&](const JobProgress& p) { return shown.push_back(p.epsilon.value_or(-1)), true; };
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(shown.size(), 8u);
  EXPECT_GT(shown[0], 0);
  for (size_t i = 1; i < 8; ++i) {
    if (i == 5) {
      EXPECT_GT(shown[i], shown[0]);
    } else if (i < 7) {
      EXPECT_EQ(shown[i], shown[i < 5 ? 0 : 5]) << "step " << i + 1;
    }
  }
  EXPECT_LE(shown[7], shown[6]);
  EXPECT_GT(shown[7], 0.995 * shown[6]);
  EXPECT_DOUBLE_EQ(shown[7], *result->epsilon);
  EXPECT_DOUBLE_EQ(shown[7], *ledger_->Spent(*privacy::Delta::Create(1e-3)));
}

// A year's runs are fixed before the first of them: together they cost the goal, by PLD, whatever was seen in between.
TEST_F(JobTest, PlannedRunsShareTheGoal) {
  ASSERT_TRUE(ledger_->SetLimit(*privacy::EpsilonDelta::Create(3.0, 1e-3)).ok());
  const auto at = *privacy::Delta::Create(1e-3);
  TrainingJob job = PrivateJob();
  job.spec.goal.planned_runs = 3;
  std::vector<double> noise;
  for (int run = 0; run < 3; ++run) {
    job.spec.training.privacy.run = "run " + std::to_string(run);
    const auto result = RunTrainingJob(job);
    ASSERT_TRUE(result.ok()) << result.status().message();
    noise.push_back(result->noise_multiplier);
    const auto figures = *ledger_->Figures(at);
    EXPECT_EQ(figures.basis, privacy::LedgerFigures::Basis::kPlan);
    EXPECT_LE(figures.stated.epsilon, 3.0);
    EXPECT_GT(figures.stated.epsilon, 2.98) << "noise is wasted";
    EXPECT_LT(*result->epsilon, 2.5) << "one of three";
  }
  EXPECT_EQ(noise, std::vector<double>(3, noise[0]));
  const size_t entries = ledger_->Entries()->size();
  const Status fourth = RunTrainingJob(job).status();
  EXPECT_EQ(fourth.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(fourth.message().find("has no room for this run in its plan: too few of the planned steps are left"),
            std::string::npos)
      << fourth.message();
  job.spec.training.expected_batch *= 2;
  EXPECT_NE(RunTrainingJob(job).status().message().find("it was made for runs with other options"), std::string::npos);
  EXPECT_EQ(ledger_->Entries()->size(), entries);
  EXPECT_EQ(ledger_->Plans()->size(), 1u);
}

TEST_F(JobTest, PlannedRunsOnALedgerThatWasLookedAtAreRefused) {
  TrainingJob job = PrivateJob();
  ASSERT_TRUE(RunTrainingJob(job).ok());
  const size_t entries = ledger_->Entries()->size();
  job.spec.goal.planned_runs = 2;
  const Status late = RunTrainingJob(job).status();
  EXPECT_EQ(late.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(late.message().find("only its first run was planned"), std::string::npos) << late.message();
  EXPECT_EQ(ledger_->Entries()->size(), entries);
  job.spec.goal.planned_runs = 0;
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(JobTest, RefusedGoalsSpendNothing) {
  const auto refused = [&](auto&& change, StatusCode code, const char* word) {
    TrainingJob job = PrivateJob();
    change(job);
    const auto result = RunTrainingJob(job);
    EXPECT_EQ(result.status().code(), code) << word;
    EXPECT_NE(result.status().message().find(word), std::string::npos) << result.status().message();
    EXPECT_TRUE(ledger_->Entries()->empty()) << word;
  };
  refused([](TrainingJob& j) { j.spec.goal.delta = 0.1; }, StatusCode::kPrivacyRefused, "1 / 80");
  refused([](TrainingJob& j) { j.spec.goal.delta = 1.0 / 80; }, StatusCode::kPrivacyRefused, "1 / 80");
  refused([](TrainingJob& j) { j.spec.goal.delta = 0.0126, j.spec.goal.allow_delta_of_one_record = true; },
          StatusCode::kPrivacyRefused, "1 / 80");
  refused([](TrainingJob& j) { j.spec.goal.delta = 0; }, StatusCode::kInvalidArgument, "delta");
  // This is below 1 / records, but still no real promise.
  refused([](TrainingJob& j) { j.spec.goal.delta = 0.0011; }, StatusCode::kPrivacyRefused, "at most 0.001");
  refused([](TrainingJob& j) { j.spec.goal.delta = 0.1, j.spec.training.num_records_public = 1; },
          StatusCode::kPrivacyRefused, "at most 1e-05");
  refused([](TrainingJob& j) { j.spec.goal.delta = 1.1e-5, j.spec.training.num_records_public = 10; },
          StatusCode::kPrivacyRefused, "at most 1e-05");
  refused(
      [](TrainingJob& j) {
        j.spec.goal.delta = 0.5, j.spec.training.num_records_public = 2, j.spec.goal.allow_delta_of_one_record = true;
      },
      StatusCode::kPrivacyRefused, "at most 1e-05");
  refused(
      [](TrainingJob& j) {
        j.spec.goal.epsilon = 0.3;
        j.spec.goal.delta = 1e-6;
      },
      StatusCode::kPrivacyRefused, "cannot be met");
  for (double epsilon : std::initializer_list<double>{-1, 0, 1e-7, 100.1, 1e4, INFINITY, NAN}) {
    refused([=](TrainingJob& j) { j.spec.goal.epsilon = epsilon; }, StatusCode::kInvalidArgument,
            "allowed is 1e-06 to 100");
  }
  refused([](TrainingJob& j) { j.spec.goal.noise_multiplier = 1; }, StatusCode::kInvalidArgument, "not both");
  refused([](TrainingJob& j) { j.spec.training.privacy.ledger = nullptr; }, StatusCode::kPrivacyRefused, "ledger");
  refused([](TrainingJob& j) { j.spec.training.num_records_public = 0; }, StatusCode::kPrivacyRefused, "public");
  refused([](TrainingJob& j) { j.spec.training.sampling = Sampling::kShuffled; }, StatusCode::kPrivacyRefused,
          "shuffled");
  refused([](TrainingJob& j) { j.spec.epochs = 0; }, StatusCode::kInvalidArgument, "epochs");
}

// These epochs would be endless runs that charge again and again.
TEST_F(JobTest, ShuffledEpochsCountTheRecordsThatThereAre) {
  TrainingJob job = PrivateJob();
  job.spec.training.method = Method::kOrdinary;
  job.spec.training.sampling = Sampling::kShuffled;
  job.spec.training.num_records_public = 8000;
  job.spec.goal = {};
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->num_steps, 8u);
}

TEST_F(JobTest, NonFiniteEpochs_AreRefused) {
  for (double epochs : std::initializer_list<double>{-1, -INFINITY, INFINITY, NAN, 1e300}) {
    TrainingJob job = PrivateJob();
    job.spec.epochs = epochs;
    job.progress = [](const JobProgress&) { return false; };
    EXPECT_NE(RunTrainingJob(job).status().message().find("epochs is"), std::string::npos) << epochs;
  }
  EXPECT_TRUE(ledger_->Entries()->empty());
}

TEST_F(JobTest, ADeltaOfOneRecordHasToBeAllowed) {
  TrainingJob job = PrivateJob();
  job.spec.goal.delta = 1.0 / 80;
  job.spec.goal.allow_delta_of_one_record = true;
  job.spec.goal.epsilon.reset();
  job.spec.goal.noise_multiplier = 2;
  job.spec.epochs = 0.25;
  const auto result = RunTrainingJob(job);
  EXPECT_TRUE(result.ok()) << result.status().message();
}

// Half of the run would fit: none of it is charged.
TEST_F(JobTest, RunThatDoesNotFitTheLimitSpendsNothing) {
  ASSERT_TRUE(ledger_->SetLimit(*privacy::EpsilonDelta::Create(2.5, 1e-3)).ok());
  const auto result = RunTrainingJob(PrivateJob());
  EXPECT_EQ(result.status().code(), StatusCode::kPrivacyRefused);
  for (const char* word : {"this run would bring the data set to epsilon 2.9",
                           "at delta 0.001, the limit is 2.5, spent 0; nothing was charged"}) {
    EXPECT_NE(result.status().message().find(word), std::string::npos) << result.status().message();
  }
  EXPECT_TRUE(ledger_->Entries()->empty());
}

// If the log does not remember its sessions for this ledger, it is not known what they were: two that were used may be
// one now.
TEST_F(JobTest, SessionsThatNobodyRemembers_areRefusedOnceSomethingWasCharged) {
  const std::vector<std::string> keys = {"a"};
  const data::ItemIndex index = *data::ItemIndex::Make("m", keys);
  const data::Units units = {.unit = data::RecordUnit::kSession, .session_gap = 10};
  const auto run_with = [&](const std::string& path) {
    const data::ReadOptions options{.known_items = &index, .units = units, .private_run = true};
    sequences_.sessions = data::ReadLog(path, options)->sequences.sessions;
    return RunTrainingJob(PrivateJob()).status();
  };
  const std::string log = folder_ / "log.db", copy = folder_ / "copy.db", other = folder_ / "export.db";
  ASSERT_TRUE(data::EventLog::Open(log)->Append({"anna", "a", 100}).ok());
  ASSERT_TRUE(data::EventLog::Open(other)->Append({"anna", "a", 100}).ok());
  ASSERT_TRUE(run_with(log).ok());
  const size_t charged = ledger_->Entries()->size();
  for (int times = 0; times < 2; ++times) {
    const Status refused = run_with(other);
    EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused) << "however often it is tried";
    EXPECT_NE(refused.message().find("does not remember the sessions"), std::string::npos) << refused.message();
    ASSERT_TRUE(data::EventLog::Open(other)->Prune({.before = 5, .units = units}).ok());
  }
  EXPECT_EQ(ledger_->Entries()->size(), charged);
  EXPECT_TRUE(run_with(log).ok());
  ASSERT_TRUE(data::EventLog::Open(log)->Backup(copy).ok());
  EXPECT_TRUE(run_with(copy).ok());
}

TEST_F(JobTest, CancelledRunSaysSoAndKeepsItsCharges) {
  TrainingJob job = PrivateJob();
  job.progress = [](const JobProgress& p) { return p.step < 3; };
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ledger_->Entries()->size(), 4u);  // the histogram and three steps
}

// One record more or less moves the histogram by at most 1 in L2: with the same reproducible noise the difference of
// the shares is the record's own contribution.
TEST_F(JobTest, HistogramMovesByAtMostOneRecord) {
  const RecordSet set = MakeRecords(sequences_, 8, HoldOut::kNothing);
  std::vector<float> bias[2];
  for (size_t with = 0; with < 2; ++with) {
    RandomStream noise = RandomStream::Reproducible(5, StreamPurpose::kNoise);
    const std::span<const Record> records(set.records.data(), 79 + with);
    bias[with] =
        PrivatePopularity(records, 20, {.noise_multiplier = 0.01, .ledger = &*ledger_, .run = "h"}, noise)->bias;
  }
  // Shares have a common factor, which an item outside of the last record reveals.
  std::vector<bool> touched(20, false);
  for (auto ids : {set.records[79].inputs, set.records[79].targets}) {
    for (int32_t id : ids) touched[static_cast<size_t>(id)] = true;
  }
  const auto untouched = static_cast<size_t>(std::find(touched.begin(), touched.end(), false) - touched.begin());
  const double shift = static_cast<double>(bias[1][untouched]) - bias[0][untouched];
  // Without noise an item's share is the sum of 1/sqrt(8) over the records that have it.
  double share = 0;
  for (size_t r = 0; r < 79; ++r) {
    bool has = false;
    for (auto ids : {set.records[r].inputs, set.records[r].targets}) {
      has = has || std::count(ids.begin(), ids.end(), static_cast<int32_t>(untouched)) > 0;
    }
    share += has ? 1 / std::sqrt(8.0) : 0;
  }
  double squares = 0;
  for (size_t i = 0; i < 20; ++i) {
    const double before = share * std::exp(static_cast<double>(bias[0][i]) - bias[0][untouched]);
    const double after = before * std::exp(static_cast<double>(bias[1][i]) - bias[0][i] - shift);
    squares += (after - before) * (after - before);
    EXPECT_EQ(std::abs(after - before) > 0.05, touched[i]) << i;
  }
  EXPECT_NEAR(std::sqrt(squares), 1.0, 0.02);
}

// A record's n items share a norm of 1: each gets 1/sqrt(n). Items that nobody has lie at the floor, which is the noise
// level; it gives the share an absolute scale.
TEST_F(JobTest, HistogramShareOfOneRecordIsNormalised) {
  std::vector<int32_t> items;
  for (int32_t i = 0; i < 17; ++i) items.push_back(i % 16);
  const Record record[] = {{std::span<const int32_t>(items).first(16), std::span<const int32_t>(items).last(16)}};
  RandomStream noise = RandomStream::Reproducible(6, StreamPurpose::kNoise);
  const auto bias =
      PrivatePopularity(record, 20, {.noise_multiplier = 1e-3, .ledger = &*ledger_, .run = "h"}, noise)->bias;
  const float floor = *std::min_element(bias.begin() + 16, bias.end());
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(std::exp(bias[i] - floor) * 1e-3, 0.25, 0.01) << i;
}

TEST_F(JobTest, HistogramIsChargedBeforeItIsTaken) {
  ASSERT_TRUE(ledger_->SetLimit(*privacy::EpsilonDelta::Create(0.01, 1e-3)).ok());
  const RecordSet set = MakeRecords(sequences_, 8, HoldOut::kNothing);
  auto noise = *RandomStream::Secure();
  const auto result =
      PrivatePopularity(set.records, 20, {.noise_multiplier = 5, .ledger = &*ledger_, .run = "h"}, noise);
  EXPECT_EQ(result.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_TRUE(ledger_->Entries()->empty());
}

// Frequencies are post-processing of the same release: with almost no noise they are the shares of records.
TEST_F(JobTest, FrequenciesEstimateHowManyRecordsContainAnItem) {
  const std::vector<int32_t> items = {0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 5, 6};
  const std::span<const int32_t> all(items);
  std::vector<Record> records;  // four items each: sqrt(n) is 2 for all, the estimate is exact
  for (size_t i = 0; i < 3; ++i) records.push_back({all.subspan(4 * i, 3), all.subspan(4 * i + 1, 3)});
  auto noise = privacy::RandomStream::Reproducible(4, privacy::StreamPurpose::kNoise);
  const auto p = PrivatePopularity(
      records, 8, {.noise_multiplier = 1e-4, .ledger = &*ledger_, .run = "h", .num_records_public = 3}, noise);
  ASSERT_TRUE(p.ok());
  const std::vector<double> expected = {1, 1, 2. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(p->frequencies[i], expected[i], 2e-3) << i;
  EXPECT_GT(p->frequencies[7], 0);  // floored at the noise
  EXPECT_LT(p->frequencies[7], 1e-3);
}

TEST_F(JobTest, ReAttention_LearnsItsVariancesFromTheNoiseAndResumes) {
  WISP_NEEDS(kHasReAttention);
  for (auto source : {ReAttentionOptions::Source::kOptimizer, ReAttentionOptions::Source::kPrinted}) {
    TrainingJob job = PrivateJob();
    job.spec.architecture.re_attention = ReAttention::kOn;
    job.spec.training.re_attention.source = source;
    job.spec.training.privacy.run = "re-attention " + std::to_string(static_cast<int>(source));
    const auto result = RunTrainingJob(job);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const auto parameters = ListParameters(job.spec.architecture);
    for (const ParameterSpec& p : parameters) {
      if (p.name != test::kItemVariance) continue;
      for (size_t i = 0; i < p.size(); ++i) EXPECT_GT(result->weights[p.offset + i], 0) << i;
    }
  }
  TrainingJob job = PrivateJob();
  job.spec.architecture.re_attention = ReAttention::kOn;
  job.spec.training.re_attention.source = ReAttentionOptions::Source::kPrinted;
  job.spec.goal.histogram_noise = 0;
  EXPECT_NE(RunTrainingJob(job).status().message().find("frequencies"), std::string::npos);
}

// Returns the rows that a run changed, compared with initial weights of the same seed.
std::vector<int32_t> ChangedRows(const TrainingJob& job, const std::vector<float>& weights) {
  std::vector<float> start(weights.size());
  auto random = privacy::RandomStream::Reproducible(job.spec.training.seed, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(job.spec.architecture, job.spec.initialisation, random, start);
  std::vector<int32_t> changed;
  for (uint32_t row = 0; row < job.spec.architecture.num_items; ++row) {
    const auto first = static_cast<std::ptrdiff_t>(row) * job.spec.architecture.width;
    const bool same =
        std::equal(start.begin() + first, start.begin() + first + job.spec.architecture.width, weights.begin() + first);
    if (!same) changed.push_back(static_cast<int32_t>(row));
  }
  return changed;
}

TEST_F(JobTest, FestPaysForAPrivateSelectionOnceAndTrainsItsRowsOnly) {
  WISP_NEEDS(kHasSparse);
  TrainingJob job = PrivateJob();
  job.spec.training.method = Method::kFest;
  job.spec.goal = {.epsilon = {}, .noise_multiplier = 1.0, .delta = 1e-3, .histogram_noise = 5};
  job.spec.rows = {.source = RowSelection::Source::kPrivate, .count = 6};
  job.checkpoint_path = folder_ / "fest.ckpt";
  job.checkpoint_every = 3;
  job.progress = [](const JobProgress& p) { return p.step < 4; };  // interrupted after the checkpoint of step 3
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kCancelled);
  job.progress = nullptr;
  job.spec.training.privacy.run = "another name";
  const auto result = RunTrainingJob(job);  // resumes with the rows of the checkpoint
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(ChangedRows(job, result->weights).size(), 6u);
  size_t histograms = 0;
  for (const auto& entry : *ledger_->Entries()) histograms += entry.purpose == "item popularity";
  EXPECT_EQ(histograms, 1u) << "a run that resumes does not choose again";
  EXPECT_EQ(result->run, "run");
}

TEST_F(JobTest, FestTakesAPublicSelectionForNothing) {
  WISP_NEEDS(kHasSparse);
  TrainingJob job = PrivateJob();
  job.spec.training.method = Method::kFest;
  job.spec.goal = {.epsilon = {}, .noise_multiplier = 1.0, .delta = 1e-3};
  std::vector<float> scores(20, 0.0f);
  scores[3] = scores[11] = scores[17] = 1;
  job.spec.rows = {.source = RowSelection::Source::kPublic, .count = 3, .public_scores = scores};
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(ChangedRows(job, result->weights), (std::vector<int32_t>{3, 11, 17}));
  for (const auto& entry : *ledger_->Entries()) EXPECT_EQ(entry.purpose, "training");
}

TEST_F(JobTest, FestWithoutAMeansToChooseSpendsNothing) {
  WISP_NEEDS(kHasSparse);
  TrainingJob job = PrivateJob();
  job.spec.training.method = Method::kFest;
  job.spec.rows = {.source = RowSelection::Source::kPublic, .count = 3};
  EXPECT_NE(RunTrainingJob(job).status().message().find("public score"), std::string::npos);
  job.spec.rows = {.source = RowSelection::Source::kPrivate, .count = 0};
  EXPECT_NE(RunTrainingJob(job).status().message().find("1 to 20"), std::string::npos);
  job.spec.rows.count = 3;
  job.spec.goal.histogram_noise = 0;
  EXPECT_NE(RunTrainingJob(job).status().message().find("histogram"), std::string::npos);
  EXPECT_TRUE(ledger_->Entries()->empty());
}

TEST_F(JobTest, AdaFestMeetsItsGoal) {
  WISP_NEEDS(kHasSparse);
  TrainingJob job = PrivateJob();
  job.spec.training.method = Method::kAdaFest;
  job.spec.training.num_negatives = 8;
  const auto result = RunTrainingJob(job);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LE(*result->epsilon, 3.0);
  EXPECT_GT(*result->epsilon, 2.97);
  EXPECT_TRUE(result->test.has_value());
}

}  // namespace
}  // namespace wisp::job_test
