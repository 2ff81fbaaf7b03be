// A damaged file does not end a deployment: the session says what it found, and continues with the intact files.
#include "runtime/personalise/heal_plan.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/personalise/rebase.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::plan_damage_test {
namespace {

enum class Damage { kFlipped, kCut, kEmpty };

void Harm(const std::string& path, Damage damage) {
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  const uint64_t size = std::filesystem::file_size(path);
  if (damage == Damage::kCut) std::filesystem::resize_file(path, size / 2);
  if (damage == Damage::kEmpty) std::filesystem::resize_file(path, 0);
  if (damage != Damage::kFlipped) return;
  // Damages the weights, which come last.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(size * 7 / 8));
  const char byte = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(size * 7 / 8));
  file.put(static_cast<char>(byte ^ 0x40));
}

class PlanDamageTest : public PlannedRunTest, public ::testing::WithParamInterface<Damage> {
 protected:
  void SetUp() override {
    DeploymentSettings settings = Settings();
    settings.evaluations = 1;  // after the last session, so nothing is evaluated here
    Plan(settings);
  }
  PlannedRunResult MustHeal(const std::string& says) {
    said_.clear();
    PlannedRunOptions o = Options();
    o.say = [&](PlannedRunOptions::Says kind, const std::string& sentence) {
      if (kind == PlannedRunOptions::Says::kWarning) said_ += sentence + "\n";
    };
    auto planned_run = RunPlanned(o);
    EXPECT_TRUE(planned_run.ok()) << planned_run.status().message();
    EXPECT_NE(said_.find(says), std::string::npos) << said_;
    return planned_run.ok() ? *std::move(planned_run) : PlannedRunResult{};
  }
  // Training continues with the candidate as its start.
  void LoseCheckpoint() {
    ASSERT_TRUE(std::filesystem::remove(files_.checkpoint));
    MustRun();
    ASSERT_TRUE(files_.HasStart());
  }
  std::string said_;
};

TEST_P(PlanDamageTest, ACheckpointIsLeftAndTheCandidateTrainsOn) {
  MustRun();
  const uint64_t candidate = ComputeHash(files_.candidate);
  Harm(files_.checkpoint, GetParam());
  const PlannedRunResult planned_run = MustHeal("training resumes from the candidate, with a fresh optimizer");
  EXPECT_NE(said_.find(files_.checkpoint), std::string::npos) << said_;
  EXPECT_EQ(planned_run.steps, 6u);
  EXPECT_EQ(ComputeHash(files_.start), candidate);
  EXPECT_EQ(Charged("training"), 12u);
  EXPECT_EQ(MustRun().steps_of_model, 12u);
}

TEST_P(PlanDamageTest, ACheckpointWithoutACandidateIsLeftAndTrainingBeginsAnew) {
  MustRun();
  std::filesystem::remove(files_.candidate);
  Harm(files_.checkpoint, GetParam());
  EXPECT_EQ(MustHeal("training starts over from the base").steps_of_model, 6u);
  EXPECT_EQ(Charged("training"), 12u);
}

TEST_P(PlanDamageTest, ACandidateIsWrittenAnewFromTheCheckpoint) {
  MustRun();
  Harm(files_.candidate, GetParam());
  EXPECT_EQ(MustHeal("resumes from the checkpoint, rewrites it").steps_of_model, 12u);
  EXPECT_EQ(Charged("training"), 12u);
  EXPECT_TRUE(ModelFile::Open(files_.candidate, Verify::kFull).ok());
}

TEST_P(PlanDamageTest, ACandidateIsTakenAwayWhereNothingIsLeftToTrain) {
  for (int planned_run = 0; planned_run < 6; ++planned_run) MustRun();
  const uint64_t served = ComputeHash(output_);
  Harm(files_.candidate, GetParam());
  EXPECT_EQ(MustHeal(files_.candidate).steps, 0u);
  EXPECT_FALSE(files_.HasCandidate());
  MustHeal("the plan has no steps left");
  EXPECT_EQ(said_.find(files_.candidate), std::string::npos) << "it is said once";
  EXPECT_EQ(ComputeHash(output_), served);
}

TEST_P(PlanDamageTest, WithoutACandidateAndACheckpointTrainingBeginsAnew) {
  MustRun();
  Harm(files_.candidate, GetParam());
  Harm(files_.checkpoint, GetParam());
  const PlannedRunResult planned_run = MustHeal("training starts over from the base, with what the plan has left");
  EXPECT_EQ(planned_run.steps_of_model, 6u);
  EXPECT_EQ(planned_run.left.steps, 24u) << "what was spent stays spent";
}

TEST_P(PlanDamageTest, AStartIsLeftAndTheCandidateTrainsOn) {
  MustRun();
  LoseCheckpoint();
  const uint64_t candidate = ComputeHash(files_.candidate);
  Harm(files_.start, GetParam());
  EXPECT_EQ(MustHeal("training resumes from the candidate, with a fresh optimizer").steps, 6u);
  EXPECT_EQ(ComputeHash(files_.start), candidate);
}

TEST_P(PlanDamageTest, WithoutStartAndCandidateTrainingBeginsAnew) {
  MustRun();
  LoseCheckpoint();
  Harm(files_.start, GetParam());
  Harm(files_.candidate, GetParam());
  EXPECT_EQ(MustHeal("training starts over from the base").steps_of_model, 6u);
  EXPECT_FALSE(files_.HasStart());
  EXPECT_EQ(ModelFile::Open(files_.candidate)->provenance().size(), 2u);
}

TEST_P(PlanDamageTest, InPlaceOfAServedModelTheBaseIsServed) {
  MustRun();
  ASSERT_TRUE(CopyFile(files_.candidate, output_).ok());
  Harm(output_, GetParam());
  const PlannedRunResult planned_run = MustHeal("the base was put in its place");
  EXPECT_TRUE(planned_run.changed);
  EXPECT_EQ(planned_run.serves, PlannedRunResult::Serves::kBase);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
}

TEST_P(PlanDamageTest, ARebaseCarriesOverWhatIsWhole) {
  MustRun();
  LoseCheckpoint();
  TrainFurther(folder_ / "base-2.wisp", {{.description = "trained", .dataset = "more of the public"}});
  Harm(files_.candidate, GetParam());
  // A file that a run could still rewrite is not thrown away.
  const uint64_t bytes = std::filesystem::file_size(files_.checkpoint);
  const Status refused =
      Rebase({.from = base_path_, .to = folder_ / "base-2.wisp", .output = output_, .ledger = ledger_path_}).status();
  EXPECT_NE(refused.message().find("first let one run with the old base resume from it"), std::string::npos)
      << refused.message();
  EXPECT_EQ(std::filesystem::file_size(files_.checkpoint), bytes);
  std::filesystem::remove(files_.checkpoint);
  const auto carried =
      Rebase({.from = base_path_, .to = folder_ / "base-2.wisp", .output = output_, .ledger = ledger_path_});
  ASSERT_TRUE(carried.ok()) << carried.status().message();
  EXPECT_TRUE(carried->carried) << "of the start";
  EXPECT_NE(carried->damaged.find(files_.candidate), std::string::npos) << carried->damaged;
  PlannedRunOptions o = Options();
  o.base_path = folder_ / "base-2.wisp";
  EXPECT_EQ(RunPlanned(o)->steps, 6u);
}

TEST_P(PlanDamageTest, ABaseAndALedgerAreNotMended) {
  MustRun();
  const std::string kept = folder_ / "kept";
  std::filesystem::copy(base_path_, kept);
  Harm(base_path_, GetParam());
  const Status base = RunPlanned(Options()).status();
  EXPECT_EQ(base.code(), StatusCode::kInvalidData);
  EXPECT_NE(base.message().find("put it back as it was shipped"), std::string::npos) << base.message();
  std::filesystem::rename(kept, base_path_);
  std::filesystem::resize_file(ledger_path_, std::filesystem::file_size(ledger_path_) / 2);
  const Status ledger = RunPlanned(Options()).status();
  EXPECT_EQ(ledger.code(), StatusCode::kInvalidData) << ledger.message();
  EXPECT_NE(ledger.message().find("put its newest copy back"), std::string::npos) << ledger.message();
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
}

INSTANTIATE_TEST_SUITE_P(All, PlanDamageTest, ::testing::Values(Damage::kFlipped, Damage::kEmpty));

using PlanFilesTest = PlanDamageTest;

// Somebody's file was named as the output by mistake.
TEST_F(PlanFilesTest, OtherFiles_AreNotReplaced) {
  std::ofstream(output_) << "a photograph";
  EXPECT_EQ(RunPlanned(Options()).status().code(), StatusCode::kInvalidData);
  std::string text;
  std::getline(std::ifstream(output_), text);
  EXPECT_EQ(text, "a photograph");
  EXPECT_EQ(Charged("training"), 0u);
}

// An intact model of another kind, or of another deployment, is not damage.
TEST_F(PlanFilesTest, AWholeModelOfAnotherKindIsNotReplaced) {
  Architecture encoder = ModelFile::Open(base_path_)->architecture();
  encoder.attend = Attend::kAll;
  encoder.head = {.kind = HeadKind::kEmbedding};
  const std::vector<float> weights = test::RandomWeights(encoder, 3);
  ASSERT_TRUE(WriteModel(output_, {.architecture = encoder, .weights = weights}).ok());
  const std::string before = test::ReadBytes(output_);
  EXPECT_EQ(RunPlanned(Options()).status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(test::ReadBytes(output_), before);
  EXPECT_EQ(Charged("training"), 0u);
}

// A wrong base is found before any damaged file is replaced.
TEST_F(PlanFilesTest, AWrongBaseHealsNothing) {
  MustRun();
  MakeBase(folder_ / "base-2.wisp", 2);
  Harm(output_, Damage::kCut);
  const std::string before = test::ReadBytes(output_);
  PlannedRunOptions o = Options();
  o.base_path = folder_ / "base-2.wisp";
  EXPECT_EQ(RunPlanned(o).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(test::ReadBytes(output_), before);
  EXPECT_TRUE(files_.HasCandidate() && files_.HasCheckpoint());
}

// A disk that cannot be read now may be readable tomorrow.
TEST_F(PlanFilesTest, AnErrorOfTheDiskTakesNothingAway) {
  MustRun();
  for (const std::string& path : {files_.candidate, files_.checkpoint}) {
    const std::string kept = folder_ / "kept";
    std::filesystem::rename(path, kept);
    std::filesystem::create_directory(path);
    EXPECT_EQ(RunPlanned(Options()).status().code(), StatusCode::kIo);
    EXPECT_TRUE(std::filesystem::is_directory(path));
    std::filesystem::remove(path);
    std::filesystem::rename(kept, path);
  }
  EXPECT_EQ(Charged("training"), 6u);
  EXPECT_EQ(MustRun().steps_of_model, 12u);
}

// If a session is killed between any two removals of files, the next one can continue.
TEST_F(PlanFilesTest, HealingMayBeStoppedAnywhere) {
  MustRun();
  LoseCheckpoint();
  Harm(files_.start, Damage::kCut);
  std::filesystem::remove(files_.checkpoint);  // the first of two
  EXPECT_EQ(MustHeal("training resumes from the candidate").steps, 6u);
  LoseCheckpoint();
  Harm(files_.start, Damage::kCut);
  Harm(files_.candidate, Damage::kCut);
  std::filesystem::remove(files_.checkpoint);
  std::filesystem::remove(files_.start);  // the first two of three
  EXPECT_EQ(MustHeal("training starts over from the base").steps_of_model, 6u);
}

}  // namespace
}  // namespace wisp::plan_damage_test
