// Evaluations of one lineage say nothing about another: a deleted model leaves no evidence.
#include "runtime/personalise/lineage.h"

#include <gtest/gtest.h>

#include "runtime/personalise/plan_change.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::lineage_test {
namespace {

class LineageTest : public PlannedRunTest {
 protected:
  static constexpr double kMuch = 1000;  // more than all records could say

  uint64_t Line() {
    return *FindLineage(OpenLedger(), *ModelFile::Open(files_.candidate), *ModelFile::Open(base_path_));
  }
  std::vector<Evaluation> Evaluated(uint64_t line) {
    return *ReadEvaluations(OpenLedger(), ComputeHash(base_path_), line);
  }
  // Writes the entries of an evaluation that found the candidate better by `gains`. `line` 0: no lineage was named.
  void Leave(double gains, uint64_t line, uint64_t candidate) {
    privacy::Ledger ledger = OpenLedger();
    const double noise = (*ReadSettings(ledger))->evaluation_noise;
    const auto id = ledger.Charge(*EvaluationCharge({.run = "evaluation", .noise_multiplier = noise}));
    ASSERT_TRUE(id.ok()) << id.status().message();
    const Evaluation evaluation{.gains = gains,
                                .squares = 90,
                                .noise_multiplier = noise,
                                .base = ComputeHash(base_path_),
                                .candidate = candidate,
                                .line = line};
    ASSERT_TRUE(ledger.AddResult(*id, ToText(evaluation)).ok());
  }
  void DeleteAll() const {
    for (const std::string& path : {files_.served, files_.candidate, files_.checkpoint, files_.start, files_.local})
      std::filesystem::remove(path);
  }
  PlannedRunResult MustRunEvaluated() {
    for (int planned_run = 0; planned_run < 4; ++planned_run) {
      PlannedRunResult result = MustRun();
      if (result.evaluated) return result;
    }
    ADD_FAILURE() << "no run was evaluated";
    return {};
  }
};

TEST_F(LineageTest, AModelThatWasDeletedLeavesNoEvidence) {
  Plan(Settings());
  MustRun();
  const uint64_t old = Line();
  Leave(kMuch, old, ComputeHash(files_.candidate));
  DeleteAll();
  std::vector<std::string> warnings;
  PlannedRunOptions o = Options();
  o.say = [&](PlannedRunOptions::Says kind, const std::string& sentence) {
    if (kind == PlannedRunOptions::Says::kWarning) warnings.push_back(sentence);
  };
  const auto first = RunPlanned(o);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->serves, PlannedRunResult::Serves::kBase);
  EXPECT_EQ(first->verdict.evidence, 0);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("6 steps were trained before, and what that cost stays charged"), std::string::npos)
      << warnings[0];
  const PlannedRunResult evaluated = MustRunEvaluated();
  EXPECT_LT(evaluated.verdict.evidence, kMuch / 2);
  EXPECT_NE(Line(), old);
  EXPECT_EQ(Evaluated(Line()).size(), 1u);
  EXPECT_EQ(Evaluated(old).size(), 1u);
  EXPECT_EQ(Charged("evaluation"), 2u) << "a charged evaluation stays charged";
}

TEST_F(LineageTest, RunsOfOneNameAreLinesOfTheirOwn) {
  Plan(Settings());
  PlannedRunOptions o = Options();
  ASSERT_TRUE(RunPlanned(o).ok());
  const uint64_t old = Line();
  DeleteAll();
  ASSERT_TRUE(RunPlanned(o).ok());
  EXPECT_NE(Line(), old);
}

TEST_F(LineageTest, Lineage_ContinuesWithItsCandidate) {
  Plan(Settings());
  MustRun();
  const uint64_t line = Line();
  MustRunEvaluated();
  ASSERT_TRUE(std::filesystem::remove(files_.checkpoint));
  MustRun();
  EXPECT_EQ(Line(), line) << "from the candidate";
  ASSERT_TRUE(std::filesystem::remove(files_.candidate));
  MustRun();
  EXPECT_EQ(Line(), line) << "from the checkpoint";
  ASSERT_TRUE(std::filesystem::remove(files_.candidate));
  ASSERT_TRUE(std::filesystem::remove(files_.checkpoint));
  MustRun();
  EXPECT_EQ(Line(), line) << "from the start";
  EXPECT_EQ(Evaluated(line).size(), Charged("evaluation"));
}

TEST_F(LineageTest, Lineage_ContinuesUnderAnotherPlan) {
  Plan(Settings());
  MustRun();
  const uint64_t line = Line();
  MustRunEvaluated();
  {
    privacy::Ledger ledger = OpenLedger();
    const auto changed = ChangeDeployment(PlannedBase(*ModelFile::Open(base_path_)), ledger, **ReadSettings(ledger),
                                          {.runs = 2, .steps_per_run = 3, .expected_batch = 150});
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  }
  MustRunEvaluated();
  EXPECT_EQ(Line(), line);
  EXPECT_EQ(Evaluated(line).size(), 2u);
}

TEST_F(LineageTest, FilesThatWerePutBackAreOfTheirOwnLine) {
  Plan(Settings());
  MustRun();
  const uint64_t old = Line();
  const std::string kept = folder_ / "kept";
  std::filesystem::create_directory(kept);
  for (const std::string& path : {files_.served, files_.candidate, files_.checkpoint})
    std::filesystem::copy(path, kept);
  DeleteAll();
  MustRun();
  Leave(kMuch, Line(), ComputeHash(files_.candidate));
  DeleteAll();
  for (const auto& file : std::filesystem::directory_iterator(kept))
    std::filesystem::copy(file.path(), std::filesystem::path(output_).parent_path());
  const PlannedRunResult evaluated = MustRunEvaluated();
  EXPECT_EQ(Line(), old);
  EXPECT_LT(evaluated.verdict.evidence, kMuch / 2);
}

// Evaluations before the lineage began belong to another one.
TEST_F(LineageTest, EvaluationsThatNameNoLineCountForTheLineOfTheirTime) {
  Plan(Settings());
  MustRun();
  Leave(kMuch, 0, ComputeHash(files_.candidate));
  const uint64_t old = Line();
  EXPECT_EQ(Evaluated(old).size(), 1u);
  DeleteAll();
  MustRun();
  EXPECT_TRUE(Evaluated(Line()).empty());
}

TEST_F(LineageTest, EndedLineage_IsNotServedIfItsLastVerdictWasWorse) {
  Plan(Settings());
  MustRun();
  const uint64_t candidate = ComputeHash(files_.candidate), line = Line();
  Leave(kMuch, line, candidate);
  ASSERT_TRUE(CopyFile(files_.candidate, output_).ok());
  Leave(-2 * kMuch, line, candidate);
  std::filesystem::remove(files_.candidate);
  std::filesystem::remove(files_.checkpoint);
  PlannedRunOptions o = Options();
  o.progress = [&](const JobProgress&) {
    EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_)) << "before it trains";
    return false;
  };
  EXPECT_EQ(RunPlanned(o).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
}

TEST_F(LineageTest, RefusesACandidateThatThisLedgerDidNotPayFor) {
  Plan(Settings());
  MustRun();
  std::filesystem::remove(ledger_path_);
  Plan(Settings());
  EXPECT_EQ(RunPlanned(Options()).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(Charged("training"), 0u);
}

TEST_F(LineageTest, BeginsNoOtherModelWhereThatIsRefused) {
  Plan(Settings());
  PlannedRunOptions o = Options();
  o.start_over = PlannedRunOptions::StartOver::kRefused;
  ASSERT_TRUE(RunPlanned(o).ok()) << "the first one";
  ASSERT_TRUE(RunPlanned(o).ok()) << "which resumes";
  o.output = folder_ / "mien.wisp";
  const Status status = RunPlanned(o).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("12 steps were trained"), std::string::npos) << status.message();
  for (const char* ending : {"", ".lock"}) EXPECT_FALSE(std::filesystem::exists(o.output + ending)) << ending;
  EXPECT_EQ(Charged("training"), 12u);
  // Only the model is missing; training continues from the files beside it.
  std::filesystem::remove(output_);
  o.output = output_;
  EXPECT_EQ(RunPlanned(o)->steps_of_model, 18u);
}

}  // namespace
}  // namespace wisp::lineage_test
