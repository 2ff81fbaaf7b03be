// A plan may release successions: it pays for them with its steps, and its first run puts them into the candidate.
#include <thread>

#include "runtime/model/catalogue.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/plan_change.h"
#include "runtime/personalise/rebase.h"
#include "runtime/train/successions.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::planned_successions_test {
namespace {

using privacy::ChargeRequest;
using privacy::Ledger;

class PlannedSuccessions : public PlannedRunTest {
 protected:
  static DeploymentSettings WithRelease(uint32_t releases = 1) {
    DeploymentSettings settings = Settings();
    settings.succession_releases = releases;
    settings.succession_share = 0.7;
    return settings;
  }
  Deployment MustCalibrate(const DeploymentSettings& settings) {
    auto deployment = CalibrateDeployment(ModelFile::Open(base_path_)->architecture(), settings);
    EXPECT_TRUE(deployment.ok()) << deployment.status().message();
    return *std::move(deployment);
  }
  static ChargeRequest Some(const ChargeRequest& all, uint64_t steps) {
    ChargeRequest some = all;
    some.mechanism = *all.mechanism.WithSteps(steps);
    some.loss_slack = all.loss_slack * static_cast<double>(steps) / static_cast<double>(all.mechanism.steps());
    return some;
  }
  std::vector<Succession> Of(const std::string& path) {
    const ModelFile model = *ModelFile::Open(path, Verify::kFull);
    return {model.lists().successions.begin(), model.lists().successions.end()};
  }
};

TEST_F(PlannedSuccessions, EverythingTogetherCostsAtMostThePlan) {
  for (const uint32_t releases : {1u, 3u}) {
    const Deployment deployment = MustCalibrate(WithRelease(releases));
    ASSERT_EQ(deployment.training.size(), 2u);
    EXPECT_EQ(deployment.training[0].mechanism.steps(), 36u) << "steps come first";
    EXPECT_EQ(deployment.training[1].purpose, kSuccessionsPurpose);
    EXPECT_EQ(deployment.training[1].mechanism.steps(), releases);
    Ledger ledger = *Ledger::Open(folder_ / std::to_string(releases),
                                  {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})});
    ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
    EXPECT_EQ(**ReadSettings(ledger), deployment.settings);
    ASSERT_TRUE(ledger.Charge(Some(deployment.training[1], 1)).ok());
    EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->succession_releases, releases - 1);
    EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->steps, 36u);
    EXPECT_LT(ComputeLeft(ledger, deployment.settings)->epsilon, 0.05) << "what is reserved is not left";
    for (uint32_t i = 1; i < releases; ++i) ASSERT_TRUE(ledger.Charge(Some(deployment.training[1], 1)).ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(ledger.Charge(Some(deployment.training[0], 12)).ok());
    const privacy::Delta delta = *privacy::Delta::Create(1e-4);
    const privacy::LedgerFigures figures = *ledger.Figures(delta);
    for (const auto& part : figures.parts) {
      EXPECT_LE(part.stated.epsilon, 8);
      if (part.part == privacy::RecordPart::kTraining) {
        EXPECT_GT(part.stated.epsilon, 7.9);
      }
    }
    EXPECT_FALSE(ledger.Charge(Some(deployment.training[1], 1)).ok());
    EXPECT_FALSE(ledger.Charge(Some(deployment.training[0], 1)).ok());
    EXPECT_EQ(*StepsTrained(ledger), 36u) << "a release is no step";
  }
  DeploymentSettings invalid = WithRelease();
  for (const double share : {0.0, 1.0, -1.0}) {
    invalid.succession_share = share;
    EXPECT_EQ(CheckSettings(invalid).code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(PlannedSuccessions, AReleaseDoesNotMoveTheMomentUntilWhichEventsTrain) {
  DeploymentSettings settings = WithRelease();
  settings.trains_until = 0;
  const Deployment deployment = MustCalibrate(settings);
  Ledger ledger = OpenLedger();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  const auto until = [&] { return *TrainsUntil(ledger, deployment.settings, 77); };
  ASSERT_TRUE(ledger.Charge(Some(deployment.training[1], 1)).ok());
  EXPECT_EQ(until(), 77) << "no step was charged yet";
  ASSERT_TRUE(ledger.Charge(Some(deployment.training[0], 4)).ok());
  EXPECT_GT(until(), 77);
}

TEST_F(PlannedSuccessions, SmallCataloguesWithManyRecordsReleaseThem) {
  const auto plan = [](uint32_t num_items) {
    const UniformArchitecture a{
        .num_items = num_items, .max_length = 20, .width = 16, .num_heads = 1, .num_blocks = 1, .inner_width = 16};
    return PlanDeployment(a, {.num_records_public = 2000, .epsilon = 4, .delta = 1e-5, .runs = 6})->settings;
  };
  const DeploymentSettings small = plan(480), large = plan(12000);
  EXPECT_EQ(small.succession_releases, 1u);
  EXPECT_GT(small.succession_noise, 0);
  EXPECT_EQ(large.succession_releases, 0u);
  EXPECT_EQ(large.succession_noise, 0);
}

TEST_F(PlannedSuccessions, TheFirstRunPutsThemIntoTheCandidate) {
  Plan(WithRelease());
  MustRun();
  EXPECT_EQ(Charged(kSuccessionsPurpose), 1u);
  const std::vector<Succession> first = Of(files_.candidate);
  int found = 0;  // the device's ring
  for (const Succession& s : first) found += s.to == (s.from + kDeviceStride) % kItems;
  EXPECT_GE(found, kItems * 3 / 4);
  EXPECT_TRUE(Of(base_path_).empty());
  MustRun();
  EXPECT_EQ(Of(files_.candidate), first) << "from the checkpoint";
  std::filesystem::remove(files_.checkpoint);
  MustRun();
  EXPECT_EQ(Of(files_.candidate), first) << "from the candidate";
  while (MustRun().left.steps > 0) ASSERT_LT(runs_, 8);
  EXPECT_EQ(Charged(kSuccessionsPurpose), 1u);
  EXPECT_EQ(Charged("training"), 36u);
  EXPECT_EQ(Of(output_), first) << "found better, and served";
  EXPECT_LE(*OpenLedger().Spent(*privacy::Delta::Create(1e-4)), 8);
}

TEST_F(PlannedSuccessions, StoppedAnywhere_TheyArePaidForOnce) {
  Plan(WithRelease());
  PlannedRunOptions o = Options();
  o.progress = [](const JobProgress& p) { return p.step > 1; };  // after the first step
  EXPECT_EQ(RunPlanned(o).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(Charged(kSuccessionsPurpose), 1u);
  MustRun();
  EXPECT_FALSE(Of(files_.candidate).empty()) << "from the checkpoint";
  // Lost with both files, they stay lost, and what they cost stays spent.
  std::filesystem::remove(files_.checkpoint);
  std::filesystem::remove(files_.candidate);
  o = Options();
  ASSERT_TRUE(RunPlanned(o).ok());
  EXPECT_TRUE(Of(files_.candidate).empty());
  EXPECT_EQ(Charged(kSuccessionsPurpose), 1u);
}

TEST_F(PlannedSuccessions, AChangedPlanKeepsThemAndReleasesNone) {
  Plan(WithRelease());
  MustRun();
  const std::vector<Succession> first = Of(files_.candidate);
  {
    Ledger ledger = OpenLedger();
    const auto changed = ChangeDeployment(PlannedBase(*ModelFile::Open(base_path_)), ledger, **ReadSettings(ledger),
                                          {.runs = 3, .expected_batch = 100});
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_EQ(changed->settings.succession_releases, 0u);
    ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  }
  MustRun();
  EXPECT_EQ(Of(files_.candidate), first);
  EXPECT_EQ(Charged(kSuccessionsPurpose), 1u);
}

TEST_F(PlannedSuccessions, ARebaseCarriesThemByKeys) {
  Plan(WithRelease());
  MustRun();
  const std::vector<Succession> first = Of(files_.candidate);
  ASSERT_FALSE(first.empty());
  const ModelFile base = *ModelFile::Open(base_path_);
  auto grown = AddItems(base, std::vector<NewItem>{{"new", "", ""}});
  std::reverse(grown->contents.item_keys.begin(), grown->contents.item_keys.end());
  grown->contents.untrained = {0};
  const auto parameters = ListParameters(grown->contents.architecture);
  const ParameterSpec& table = parameters[RequireParameter(parameters, ParameterRole::kItemTable)];
  std::vector<float> reversed = grown->weights;
  for (size_t row = 0; row < table.rows; ++row)
    std::copy_n(grown->weights.data() + table.offset + row * table.cols, table.cols,
                reversed.data() + table.offset + (table.rows - 1 - row) * table.cols);
  grown->contents.weights = reversed;
  const std::string other = folder_ / "base-2.wisp";
  ASSERT_TRUE(WriteModel(other, grown->contents).ok());
  ASSERT_TRUE(Rebase({.from = base_path_, .to = other, .output = output_, .ledger = ledger_path_})->carried);
  std::vector<Succession> expected;
  for (const Succession& s : first) expected.push_back({kItems - s.from, kItems - s.to, s.score});
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(Of(files_.start), expected);
}

// The app's update brings successions of its own. Those that the device released count more. Without any, those of the
// new base replace those of the old one.
class SuccessionsOfBases : public PlannedSuccessions {
 protected:
  void Write(const std::string& path, const std::vector<Succession>& successions) {
    const ModelFile base = *ModelFile::Open(base_path_);
    std::vector<float> room;
    ModelContents contents = GetContents(base, room);
    contents.successions = successions;
    ASSERT_TRUE(WriteModel(path, contents).ok());
  }
  // Returns those of the model that training starts from after a rebase.
  std::vector<Succession> Carried(const DeploymentSettings& settings) {
    Write(base_path_, old_);
    Plan(settings);
    MustRun();
    learned_ = Of(files_.candidate);
    const std::string to = folder_ / "base-2.wisp";
    Write(to, new_);
    const auto rebased = Rebase({.from = base_path_, .to = to, .output = output_, .ledger = ledger_path_});
    EXPECT_TRUE(rebased.ok() && rebased->carried) << rebased.status().message();
    return Of(files_.start);
  }

  const std::vector<Succession> old_ = {{1, 2, 3.0f}}, new_ = {{1, 4, 2.0f}, {5, 0, 1.0f}};
  std::vector<Succession> learned_;
};

TEST_F(SuccessionsOfBases, WithoutARelease_AreThoseOfTheNewBase) {
  EXPECT_EQ(Carried(Settings()), new_);
  EXPECT_EQ(learned_, old_);
}

TEST_F(SuccessionsOfBases, AfterARelease_AreThoseThatTheDeviceLearned) {
  const std::vector<Succession> carried = Carried(WithRelease());
  EXPECT_EQ(carried, learned_);
  EXPECT_NE(carried, old_);
}

}  // namespace
}  // namespace wisp::planned_successions_test
