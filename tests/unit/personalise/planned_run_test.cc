// A deployment of training sessions: a candidate is served once it was found better than the base, however often
// sessions are interrupted, and the cost is the planned one.
#include "runtime/personalise/planned_run.h"

#include <fstream>

#include "runtime/core/file_lock.h"
#include "runtime/core/platform.h"
#include "runtime/model/catalogue.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/run_figures.h"
#include "runtime/personalise/plan_change.h"
#include "runtime/privacy/ledger_statement.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::planned_run_test {
namespace {

using privacy::Ledger;
using Serves = PlannedRunResult::Serves;

TEST_F(PlannedRunTest, ServesTheBaseUntilACandidateIsFoundBetter) {
  Plan(Settings());
  const double base = Knows(base_path_);
  const auto planned = static_cast<double>(*CountRunMemory(ModelFile::Open(base_path_)->architecture(), Settings(), 1));
  bool better = false;
  Serves serves = Serves::kBase;
  for (int planned_run = 1; planned_run <= 6; ++planned_run) {
    const PlannedRunResult result = MustRun();
    ASSERT_TRUE(result.training) << planned_run;
    EXPECT_EQ(result.steps, 6u) << planned_run;
    EXPECT_NEAR(static_cast<double>(result.training->planned_bytes), planned, 0.03 * planned) << "as the plan said";
    EXPECT_EQ(result.steps_of_model, 6u * static_cast<uint64_t>(planned_run));
    EXPECT_EQ(result.left.runs, 6u - static_cast<uint64_t>(planned_run));
    EXPECT_EQ(result.evaluated, planned_run % 2 == 0) << planned_run;
    better = better || result.verdict.kind == Verdict::Kind::kBetter;
    serves = result.serves;
    EXPECT_EQ(serves != Serves::kBase, better)
        << planned_run << ": evidence " << result.verdict.evidence << ", threshold " << result.verdict.threshold;
    if (!better) {
      EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
    }
  }
  // The last verdict is 9 standard deviations from its threshold (in 50 runs), and fails with a chance below 1e-9. In
  // one run of 200 the noise makes the newest candidate look clearly worse than an earlier one, which then is served.
  EXPECT_TRUE(better);
  EXPECT_EQ(ComputeHash(output_) == ComputeHash(files_.candidate), serves == Serves::kNewestCandidate);
  EXPECT_GT(Knows(output_), base + 0.2);
  EXPECT_EQ(Charged("training"), 36u);
  EXPECT_EQ(Charged("evaluation"), 3u);
  // The plan is used up: nothing is read, charged or changed.
  const int read = times_read_;
  const PlannedRunResult after = MustRun();
  EXPECT_EQ(after.steps, 0u);
  EXPECT_FALSE(after.changed);
  EXPECT_FALSE(after.evaluated);
  EXPECT_EQ(times_read_, read);
  EXPECT_EQ(Charged("training"), 36u);
  PlannedRunOptions other = Options();
  other.dataset = "other.db";
  EXPECT_EQ(RunPlanned(other).status().code(), StatusCode::kPrivacyRefused) << "a plan of another data set";
  const ModelFile mine = *ModelFile::Open(output_);
  ASSERT_EQ(mine.provenance().size(), 2u) << "runs are one run";
  EXPECT_LE(*mine.provenance().back().epsilon, 8);
}

// The candidate learned what people did until then; later they do what the base knows. An evaluation on the time of
// training would find the candidate better.
TEST_F(PlannedRunTest, ATrendOfTheTimeItLearnedFromIsNoGain) {
  std::filesystem::remove(log_path_);
  // among the newest events, those of other users date from the time of training
  WriteLog(log_path_, kDeviceStride, 1, 1);
  Plan(Settings());
  const double base = Knows(base_path_);
  for (int planned_run = 1; planned_run <= 6; ++planned_run) {
    const PlannedRunResult result = MustRun();
    EXPECT_NE(result.verdict.kind, Verdict::Kind::kBetter) << planned_run;
  }
  EXPECT_GT(Knows(files_.candidate), base + 0.2) << "it learned the trend";
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
}

TEST_F(PlannedRunTest, WhatComesLaterDoesNotTrain) {
  std::filesystem::remove(log_path_);
  WriteLog(log_path_, 1, kDeviceStride);
  Plan(Settings());
  for (int planned_run = 1; planned_run <= 6; ++planned_run) MustRun();
  EXPECT_LT(Knows(files_.candidate), Knows(base_path_) + 0.1);
}

TEST_F(PlannedRunTest, StoppedAnywhere_ItResumesAndCostsNoMoreThanThePlan) {
  Plan(Settings());
  uint64_t steps = 0;
  for (int planned_run = 0; planned_run < 30; ++planned_run) {
    PlannedRunOptions o = Options();
    const bool stopped = planned_run % 3 != 2;
    o.num_threads = 1 + static_cast<uint32_t>(planned_run % 2);
    uint64_t first = 0;
    o.progress = [&, stop = 1 + planned_run % 4](const JobProgress& p) {
      if (first == 0) first = p.step - 1;
      return !stopped || p.step - first < static_cast<uint64_t>(stop);
    };
    const auto result = RunPlanned(o);
    if (result.ok()) {
      steps = std::max(steps, result->steps_of_model);
      if (result->left.steps == 0) break;
    } else {
      EXPECT_EQ(result.status().code(), StatusCode::kCancelled) << result.status().message();
    }
  }
  EXPECT_EQ(Charged("training"), 36u);
  EXPECT_GT(steps, 20u);
  EXPECT_LE(steps, 36u);
  EXPECT_LE(*OpenLedger().Spent(*privacy::Delta::Create(1e-4)), 8);
}

TEST_F(PlannedRunTest, AVerdictThatWasNotActedUponIsNotLost) {
  Plan(Settings());
  while (MustRun().serves == Serves::kBase) ASSERT_LT(runs_, 7);
  // Simulates a power cut before the candidate was copied.
  ASSERT_TRUE(CopyFile(base_path_, output_).ok());
  const uint64_t evaluated = Charged("evaluation"), candidate = ComputeHash(files_.candidate);
  PlannedRunOptions o = Options();
  o.progress = [&](const JobProgress&) {
    EXPECT_EQ(ComputeHash(output_), candidate) << "before it trains";
    return false;
  };
  EXPECT_EQ(RunPlanned(o).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ComputeHash(output_), candidate);
  EXPECT_EQ(Charged("evaluation"), evaluated);
}

TEST_F(PlannedRunTest, AWorseCandidateIsNotServedAndTrainsOn) {
  Plan(Settings());
  while (MustRun().serves == Serves::kBase) ASSERT_LT(runs_, 5);
  ASSERT_NE(ComputeHash(output_), ComputeHash(base_path_));
  {
    // Writes the entries of an evaluation that found people's tastes changed.
    privacy::Ledger ledger = OpenLedger();
    const DeploymentSettings settings = **ReadSettings(ledger);
    const auto charge = EvaluationCharge({.run = "evaluation", .noise_multiplier = settings.evaluation_noise});
    const auto id = ledger.Charge(*charge);
    ASSERT_TRUE(id.ok()) << id.status().message();
    const Evaluation worse{.gains = -1000,
                           .squares = 90,
                           .noise_multiplier = settings.evaluation_noise,
                           .base = ComputeHash(base_path_),
                           .candidate = ComputeHash(files_.candidate)};
    ASSERT_TRUE(ledger.AddResult(*id, ToText(worse)).ok());
  }
  const uint64_t steps = ModelFile::Open(files_.candidate)->provenance().back().steps;
  const PlannedRunResult planned_run = MustRun();
  EXPECT_EQ(planned_run.verdict.kind, Verdict::Kind::kWorse);
  EXPECT_EQ(planned_run.serves, Serves::kBase);
  EXPECT_TRUE(planned_run.changed);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
  EXPECT_EQ(planned_run.steps_of_model, steps + 6) << "it trains on";
}

TEST_F(PlannedRunTest, EvaluatedLocallyItPaysForTrainingAloneAndSaysSo) {
  DeploymentSettings settings = Settings();
  settings.evaluates_locally = 1;
  Plan(settings);
  for (int planned_run = 0; planned_run < 6; ++planned_run) EXPECT_TRUE(MustRun().evaluated) << planned_run;
  EXPECT_EQ(ComputeHash(output_), ComputeHash(files_.candidate));
  EXPECT_EQ(Charged("evaluation"), 0u);
  EXPECT_TRUE(OpenLedger().Results()->empty()) << "what is not private has no place in a ledger";
  const auto statement = privacy::MakeStatement(OpenLedger(), ledger_path_, *privacy::Delta::Create(1e-4));
  ASSERT_EQ(statement->uncharged_tuning.size(), 1u);
  EXPECT_EQ(statement->uncharged_tuning[0], "which model is served and trains on");
}

// All but one of a person's evaluation events are of items that the person had: another list rule gives another result.
TEST_F(PlannedRunTest, EvaluatesByTheListsThatTheModelsSay) {
  std::filesystem::remove(log_path_);
  WriteLog(log_path_, kDeviceStride, kItems - kDeviceStride);
  std::vector<double> evidence;
  for (const bool allow_seen : {false, true}) {
    for (const std::string& path : {ledger_path_, output_, files_.candidate, files_.checkpoint})
      std::filesystem::remove(path);
    MakeBase(base_path_, 1, allow_seen);
    DeploymentSettings settings = Settings();
    settings.evaluates_locally = 1;
    settings.allow_seen = allow_seen ? 1 : 0;
    Plan(settings);
    const PlannedRunResult planned_run = MustRun();
    ASSERT_TRUE(planned_run.evaluated);
    const ModelFile base = *ModelFile::Open(base_path_), candidate = *ModelFile::Open(files_.candidate);
    EXPECT_EQ(candidate.lists().allow_seen, allow_seen) << "it is served by the same rule";
    const auto index = *data::ItemIndex::Make(base_path_, GetItemKeys(base));
    const auto read = *data::ReadSequences(log_path_, data::Format::kSqlite,
                                           {.known_items = &index, .private_run = true, .keep_times = true});
    Ledger ledger = OpenLedger();
    const Evaluation evaluated = *EvaluateLocally(base.architecture(), ParameterSource(base.tensors()),
                                                  ParameterSource(candidate.tensors()), read.sequences,
                                                  {.ledger = &ledger,
                                                   .gain_scale = settings.gain_scale,
                                                   .num_targets = settings.num_targets,
                                                   .after = data::Moment{.second = kUntil},
                                                   .lists_of_base = {.allow_seen = allow_seen},
                                                   .lists_of_candidate = {.allow_seen = allow_seen}});
    EXPECT_EQ(planned_run.verdict.evidence, Decide(settings.rule(), std::span(&evaluated, 1)).evidence);
    evidence.push_back(planned_run.verdict.evidence);
  }
  EXPECT_NE(evidence[0], evidence[1]);
}

// Evaluation uses the list rule that the plan was made for. Another rule needs another plan, which is free.
TEST_F(PlannedRunTest, BaseOfOtherLists_IsRefusedBeforeACharge) {
  Plan(Settings());
  MakeBase(base_path_, 1, true);
  const Status refused = RunPlanned(Options()).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("its lists may hold items of the history"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("`wisp_plan_change`"), std::string::npos) << refused.message();
  EXPECT_EQ(Charged("training"), 0u);
  EXPECT_EQ(times_read_, 0);
  MakeBase(base_path_, 1, false);
  EXPECT_EQ(MustRun().steps, 6u);
  const uint64_t trained = Charged("training");
  MakeBase(base_path_, 1, true);
  EXPECT_EQ(RunPlanned(Options()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Charged("training"), trained);
  const PlannedBase base(*ModelFile::Open(base_path_));
  Ledger ledger = OpenLedger();
  const auto changed = ChangeDeployment(base, ledger, **ReadSettings(ledger), {.runs = 5});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_TRUE(changed->is_free);
  ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  EXPECT_TRUE(CheckPlanBase(**ReadSettings(ledger), *ModelFile::Open(base_path_), ledger).ok());
}

TEST_F(PlannedRunTest, WithoutEvaluatesTheNewestIsServed) {
  DeploymentSettings settings = Settings();
  settings.evaluations = 0;
  Plan(settings);
  const PlannedRunResult first = MustRun();
  EXPECT_EQ(first.serves, Serves::kNewestCandidate);
  EXPECT_EQ(first.training->num_records, static_cast<uint64_t>(kUsers)) << "all of them train";
}

TEST_F(PlannedRunTest, ACheckpointThatIsGoneCostsTheOptimizerAlone) {
  Plan(Settings());
  ASSERT_EQ(MustRun().steps_of_model, 6u);
  const uint64_t first = ComputeHash(files_.candidate);
  ASSERT_TRUE(std::filesystem::remove(files_.checkpoint));
  const PlannedRunResult result = MustRun();
  EXPECT_EQ(result.steps, 6u);
  EXPECT_EQ(ComputeHash(files_.start), first);
  EXPECT_EQ(ModelFile::Open(files_.candidate)->provenance().size(), 3u);
  EXPECT_EQ(MustRun().steps_of_model, 12u) << "of the run that began with it";
}

TEST_F(PlannedRunTest, TakesAwayWhatKilledRunsLeftAlsoWhenNothingIsLeftToTrain) {
  DeploymentSettings settings = Settings();
  settings.runs = 1;
  settings.evaluations = 1;
  Plan(settings);
  MustRun();
  const std::string left[] = {TemporaryName(output_, 12, 0), TemporaryName(files_.candidate, 12, 1),
                              TemporaryName(files_.checkpoint, 12, 2), TemporaryName(ledger_path_ + "-room", 12, 3)};
  for (const std::string& path : left) std::ofstream(path) << "half";
  EXPECT_EQ(MustRun().steps, 0u);
  for (const std::string& path : left) EXPECT_FALSE(platform::IsThere(path)) << path;
}

TEST_F(PlannedRunTest, KeepsWhatItsRunsSawForTheDevicesOwnReport) {
  Plan(Settings());
  for (int planned_run = 0; planned_run < 3; ++planned_run) MustRun();
  const std::string& path = files_.local;
  const std::vector<RunFigures> runs = *ReadRunFigures(path);
  ASSERT_EQ(runs.size(), 3u);
  for (size_t n = 0; n < runs.size(); ++n) {
    EXPECT_EQ(runs[n].steps_of_model, 6 * (n + 1));
    EXPECT_GT(runs[n].mean_loss, 0);
    EXPECT_GE(runs[n].clipped_share, 0);
    EXPECT_LE(runs[n].clipped_share, 1);
  }
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  for (size_t planned_run = 0; planned_run <= kMostRunFigures; ++planned_run)
    ASSERT_TRUE(AddRunFigures(path, {.steps_of_model = planned_run}).ok());
  EXPECT_EQ(ReadRunFigures(path)->size(), kMostRunFigures);
  EXPECT_EQ(ReadRunFigures(path)->front().steps_of_model, 1u);
  // A damaged file is started anew.
  std::ofstream(path) << "steps=1 loss=2\n";
  EXPECT_EQ(ReadRunFigures(path).status().code(), StatusCode::kInvalidData);
  EXPECT_TRUE(AddRunFigures(path, {}).ok());
  EXPECT_EQ(ReadRunFigures(path)->size(), 1u);
}

// The last plan before the first charge counts.
TEST_F(PlannedRunTest, NewestPlanBeforeTheFirstCharge_Counts) {
  Plan(Settings());
  Plan(Settings());
  for (uint64_t planned_run = 1; planned_run <= 2; ++planned_run) {
    const PlannedRunResult result = MustRun();
    EXPECT_EQ(result.left.steps, 36 - 6 * planned_run);
    EXPECT_EQ(result.evaluated, planned_run == 2);
  }
  EXPECT_EQ(ComputeLeft(OpenLedger(), **ReadSettings(OpenLedger()))->evaluations, 2u);
}

// A misspelt log must not leave a model behind, which would block the next call.
TEST_F(PlannedRunTest, AFirstPlannedRunThatCannotReadLeavesNoModel) {
  Plan(Settings());
  PlannedRunOptions misspelt = Options();
  misspelt.read = [](const data::ReadOptions&) -> Result<data::ReadResult> { return IoError("typo.db: not there"); };
  EXPECT_EQ(RunPlanned(misspelt).status().code(), StatusCode::kIo);
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_EQ(Charged("training"), 0u);
  EXPECT_EQ(MustRun().serves, PlannedRunResult::Serves::kBase);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
  // Once a deployment has begun, the base is served, whatever else fails.
  std::filesystem::remove(output_);
  EXPECT_EQ(RunPlanned(misspelt).status().code(), StatusCode::kIo);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
}

TEST_F(PlannedRunTest, FilesOfAnotherDeployment_AreRefused) {
  const auto refused = [&](PlannedRunOptions o) { return RunPlanned(o).status(); };
  EXPECT_EQ(refused(Options()).code(), StatusCode::kIo) << "no ledger";
  { ASSERT_TRUE(OpenLedger().SetLimit(*privacy::EpsilonDelta::Create(8, 1e-4)).ok()); }
  EXPECT_EQ(refused(Options()).code(), StatusCode::kPrivacyRefused) << "no plan";
  EXPECT_EQ(times_read_, 0);
  Plan(Settings());
  PlannedRunOptions same = Options();
  same.output = base_path_;
  EXPECT_EQ(refused(same).code(), StatusCode::kInvalidArgument);
  PlannedRunOptions other = Options();
  other.dataset = "other.db";
  EXPECT_EQ(refused(other).code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(times_read_, 0) << "the log was read for another data set";
  for (const privacy::RecordSpec::Source& source :
       {privacy::RecordSpec::Source{.item_column = "sku"}, privacy::RecordSpec::Source{.table = "archive"}}) {
    PlannedRunOptions rows = Options();
    rows.source = source;
    EXPECT_EQ(refused(rows).code(), StatusCode::kPrivacyRefused);
    EXPECT_NE(refused(rows).message().find("costs of different records do not add up"), std::string::npos);
  }
  MustRun();
  MakeBase(folder_ / "other.wisp", 2);
  PlannedRunOptions base = Options();
  base.base_path = folder_ / "other.wisp";
  const Status status = refused(base);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("wisp catalogue rebase"), std::string::npos) << status.message();
  EXPECT_FALSE(BeganWith(*ModelFile::Open(files_.candidate), *ModelFile::Open(folder_ / "other.wisp")));
  EXPECT_TRUE(BeganWith(*ModelFile::Open(files_.candidate), *ModelFile::Open(base_path_)));
  const std::string theirs = folder_ / "theirs.wisp";
  MakeBase(theirs, 3);
  const uint64_t before = ComputeHash(theirs);
  PlannedRunOptions onto = Options();
  onto.output = theirs;
  EXPECT_EQ(refused(onto).code(), StatusCode::kInvalidArgument) << "another model would be lost";
  EXPECT_EQ(ComputeHash(theirs), before);
  EXPECT_FALSE(std::filesystem::exists(theirs + ".lock"));
  const auto lock = FileLock::Take(files_.lock, "held");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(refused(Options()).code(), StatusCode::kIo);
  EXPECT_EQ(Charged("training"), 6u);
}

}  // namespace
}  // namespace wisp::planned_run_test
