// Evaluations of one lineage say nothing about another: a deleted model leaves no evidence.
#include "runtime/personalise/line.h"

#include <gtest/gtest.h>

#include "runtime/personalise/plan_change.h"
#include "tests/unit/personalise/night_test_util.h"

namespace wisp::night_line_test {
namespace {

class NightLineTest : public NightTest {
 protected:
  static constexpr double kMuch = 1000;  // more than all records could say

  uint64_t Line() { return *LineOf(OpenLedger(), *ModelFile::Open(files_.candidate), *ModelFile::Open(base_path_)); }
  std::vector<Judgement> Judged(uint64_t line) { return *JudgementsOf(OpenLedger(), HashOf(base_path_), line); }
  // Writes the entries of an evaluation that found the candidate better by `gains`. `line` 0: no lineage was named.
  void Leave(double gains, uint64_t line, uint64_t candidate) {
    privacy::Ledger ledger = OpenLedger();
    const double noise = (*SettingsOf(ledger))->judging_noise;
    const auto id = ledger.Charge(*JudgeCharge({.run = "judging", .noise_multiplier = noise}));
    ASSERT_TRUE(id.ok()) << id.status().message();
    const Judgement judgement{.gains = gains,
                              .squares = 90,
                              .noise_multiplier = noise,
                              .base = HashOf(base_path_),
                              .candidate = candidate,
                              .line = line};
    ASSERT_TRUE(ledger.AddResult(*id, ToText(judgement)).ok());
  }
  void DeleteAll() const {
    for (const std::string& path : {files_.served, files_.candidate, files_.checkpoint, files_.start, files_.local})
      std::filesystem::remove(path);
  }
  NightResult MustRunJudged() {
    for (int night = 0; night < 4; ++night) {
      NightResult result = MustRun();
      if (result.judged) return result;
    }
    ADD_FAILURE() << "no night was judged";
    return {};
  }
};

TEST_F(NightLineTest, AModelThatWasDeletedLeavesNoEvidence) {
  Plan(Settings());
  MustRun();
  const uint64_t old = Line();
  Leave(kMuch, old, HashOf(files_.candidate));
  DeleteAll();
  std::vector<std::string> warnings;
  NightOptions o = Options();
  o.say = [&](NightOptions::Says kind, const std::string& sentence) {
    if (kind == NightOptions::Says::kWarning) warnings.push_back(sentence);
  };
  const auto first = RunNight(o);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->serves, NightResult::Serves::kBase);
  EXPECT_EQ(first->verdict.evidence, 0);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("6 steps were trained before, and what that cost stays charged"), std::string::npos)
      << warnings[0];
  const NightResult judged = MustRunJudged();
  EXPECT_LT(judged.verdict.evidence, kMuch / 2);
  EXPECT_NE(Line(), old);
  EXPECT_EQ(Judged(Line()).size(), 1u);
  EXPECT_EQ(Judged(old).size(), 1u);
  EXPECT_EQ(Charged("judging"), 2u) << "a charged judging stays charged";
}

TEST_F(NightLineTest, RunsOfOneNameAreLinesOfTheirOwn) {
  Plan(Settings());
  NightOptions o = Options();
  ASSERT_TRUE(RunNight(o).ok());
  const uint64_t old = Line();
  DeleteAll();
  ASSERT_TRUE(RunNight(o).ok());
  EXPECT_NE(Line(), old);
}

TEST_F(NightLineTest, Lineage_ContinuesWithItsCandidate) {
  Plan(Settings());
  MustRun();
  const uint64_t line = Line();
  MustRunJudged();
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
  EXPECT_EQ(Judged(line).size(), Charged("judging"));
}

TEST_F(NightLineTest, Lineage_ContinuesUnderAnotherPlan) {
  Plan(Settings());
  MustRun();
  const uint64_t line = Line();
  MustRunJudged();
  {
    privacy::Ledger ledger = OpenLedger();
    const auto changed = ChangeLife(PlannedBase(*ModelFile::Open(base_path_)), ledger, **SettingsOf(ledger),
                                    {.runs = 2, .steps_per_run = 3, .expected_batch = 150});
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  }
  MustRunJudged();
  EXPECT_EQ(Line(), line);
  EXPECT_EQ(Judged(line).size(), 2u);
}

TEST_F(NightLineTest, FilesThatWerePutBackAreOfTheirOwnLine) {
  Plan(Settings());
  MustRun();
  const uint64_t old = Line();
  const std::string kept = folder_ / "kept";
  std::filesystem::create_directory(kept);
  for (const std::string& path : {files_.served, files_.candidate, files_.checkpoint})
    std::filesystem::copy(path, kept);
  DeleteAll();
  MustRun();
  Leave(kMuch, Line(), HashOf(files_.candidate));
  DeleteAll();
  for (const auto& file : std::filesystem::directory_iterator(kept))
    std::filesystem::copy(file.path(), std::filesystem::path(output_).parent_path());
  const NightResult judged = MustRunJudged();
  EXPECT_EQ(Line(), old);
  EXPECT_LT(judged.verdict.evidence, kMuch / 2);
}

// Evaluations before the lineage began belong to another one.
TEST_F(NightLineTest, JudgementsThatNameNoLineCountForTheLineOfTheirTime) {
  Plan(Settings());
  MustRun();
  Leave(kMuch, 0, HashOf(files_.candidate));
  const uint64_t old = Line();
  EXPECT_EQ(Judged(old).size(), 1u);
  DeleteAll();
  MustRun();
  EXPECT_TRUE(Judged(Line()).empty());
}

TEST_F(NightLineTest, EndedLineage_IsNotServedIfItsLastVerdictWasWorse) {
  Plan(Settings());
  MustRun();
  const uint64_t candidate = HashOf(files_.candidate), line = Line();
  Leave(kMuch, line, candidate);
  ASSERT_TRUE(CopyFile(files_.candidate, output_).ok());
  Leave(-2 * kMuch, line, candidate);
  std::filesystem::remove(files_.candidate);
  std::filesystem::remove(files_.checkpoint);
  NightOptions o = Options();
  o.progress = [&](const JobProgress&) {
    EXPECT_EQ(HashOf(output_), HashOf(base_path_)) << "before it trains";
    return false;
  };
  EXPECT_EQ(RunNight(o).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(HashOf(output_), HashOf(base_path_));
}

TEST_F(NightLineTest, RefusesACandidateThatThisLedgerDidNotPayFor) {
  Plan(Settings());
  MustRun();
  std::filesystem::remove(ledger_path_);
  Plan(Settings());
  EXPECT_EQ(RunNight(Options()).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(Charged("training"), 0u);
}

TEST_F(NightLineTest, BeginsNoOtherModelWhereThatIsRefused) {
  Plan(Settings());
  NightOptions o = Options();
  o.anew = NightOptions::Anew::kRefused;
  ASSERT_TRUE(RunNight(o).ok()) << "the first one";
  ASSERT_TRUE(RunNight(o).ok()) << "which goes on";
  o.output = folder_ / "mien.wisp";
  const Status status = RunNight(o).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("12 steps were trained"), std::string::npos) << status.message();
  for (const char* ending : {"", ".lock"}) EXPECT_FALSE(std::filesystem::exists(o.output + ending)) << ending;
  EXPECT_EQ(Charged("training"), 12u);
  // Only the model is missing; training continues from the files beside it.
  std::filesystem::remove(output_);
  o.output = output_;
  EXPECT_EQ(RunNight(o)->steps_of_model, 18u);
}

}  // namespace
}  // namespace wisp::night_line_test
