// A plan may release successions and the weight of the output bias: it pays for them with its steps, and its first run
// puts them into the candidate.
#include <thread>

#include "runtime/model/catalogue.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/plan_change.h"
#include "runtime/personalise/rebase.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/successions.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::planned_releases_test {
namespace {

using privacy::ChargeRequest;
using privacy::Ledger;

class PlannedReleases : public PlannedRunTest {
 protected:
  static DeploymentSettings WithRelease(uint32_t releases = 1) {
    DeploymentSettings settings = Settings();
    settings.succession_releases = releases;
    settings.succession_share = 0.45;
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

TEST_F(PlannedReleases, EverythingTogetherCostsAtMostThePlan) {
  for (const uint32_t releases : {1u, 3u}) {
    DeploymentSettings settings = WithRelease(releases);
    settings.bias_weight_releases = releases;
    settings.bias_weight_share = 0.04;
    const Deployment deployment = MustCalibrate(settings);
    const std::vector<ChargeRequest>& all = deployment.charges;
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].mechanism.steps(), 36u) << "steps come first";
    EXPECT_EQ(all[1].purpose, kBiasWeightPurpose);
    EXPECT_EQ(all[2].purpose, kSuccessionsPurpose);
    EXPECT_EQ(all[3].purpose, kEvaluationPurpose);
    EXPECT_GT(deployment.settings.bias_weight_noise, 2 * deployment.settings.succession_noise) << "the smaller share";
    Ledger ledger = *Ledger::Open(folder_ / std::to_string(releases),
                                  {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})});
    ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
    EXPECT_EQ(**ReadSettings(ledger), deployment.settings);
    const auto left = [&] { return *ComputeLeft(ledger, deployment.settings); };
    for (uint32_t i = 0; i < releases; ++i) {
      EXPECT_EQ(left().bias_weight_releases, releases - i);
      ASSERT_TRUE(ledger.Charge(Some(all[1], 1)).ok());
      EXPECT_EQ(left().bias_weight_releases, releases - i - 1);
      EXPECT_EQ(left().succession_releases, releases - i);
      ASSERT_TRUE(ledger.Charge(Some(all[2], 1)).ok());
      EXPECT_EQ(left().succession_releases, releases - i - 1);
      EXPECT_EQ(left().steps, 36u);
      EXPECT_LT(left().epsilon, 0.05) << "what is reserved is not left";
    }
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(ledger.Charge(Some(all[0], 12)).ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(ledger.Charge(Some(all[3], 1)).ok());
    const privacy::Delta delta = *privacy::Delta::Create(1e-4);
    const privacy::LedgerFigures figures = *ledger.Figures(delta);
    EXPECT_LE(figures.stated.epsilon, 8);
    EXPECT_GT(figures.stated.epsilon, 7.9);
    for (const ChargeRequest& charge : all) EXPECT_FALSE(ledger.Charge(Some(charge, 1)).ok());
    EXPECT_EQ(*StepsTrained(ledger), 36u) << "a release is no step";
  }
  for (const double share : {0.0, 1.0, -1.0}) {
    DeploymentSettings invalid = WithRelease();
    invalid.succession_share = share;
    EXPECT_EQ(CheckSettings(invalid).code(), StatusCode::kInvalidArgument);
    invalid = Settings();
    invalid.bias_weight_releases = 1;
    invalid.bias_weight_share = share;
    EXPECT_EQ(CheckSettings(invalid).code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(PlannedReleases, AReleaseDoesNotMoveTheMomentUntilWhichEventsTrain) {
  DeploymentSettings settings = WithRelease();
  settings.trains_until = 0;
  const Deployment deployment = MustCalibrate(settings);
  Ledger ledger = OpenLedger();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  const auto until = [&] { return *TrainsUntil(ledger, deployment.settings, 77); };
  ASSERT_TRUE(ledger.Charge(Some(deployment.charges[1], 1)).ok());
  EXPECT_EQ(until(), 77) << "no step was charged yet";
  ASSERT_TRUE(ledger.Charge(Some(deployment.charges[0], 4)).ok());
  EXPECT_GT(until(), 77);
}

TEST_F(PlannedReleases, SmallCataloguesWithManyRecordsReleaseThem) {
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

TEST_F(PlannedReleases, AFixedBiasIsWeighedWhereThereAreEnoughRecords) {
  const auto releases = [](OutputBias bias, uint32_t records, uint32_t runs) {
    Architecture a = UniformArchitecture{
        .num_items = 12000, .max_length = 20, .width = 16, .num_heads = 1, .num_blocks = 1, .inner_width = 16};
    a.head.output_bias = bias;
    DeploymentSettings s =
        SuggestDeployment({.num_records_public = records, .epsilon = 4, .delta = 1e-5, .runs = runs});
    ChooseReleases(a, s, s);
    EXPECT_EQ(s.bias_weight_share > 0, s.bias_weight_releases > 0);
    EXPECT_LT(s.bias_weight_share, 0.1) << "it costs little";
    return s.bias_weight_releases;
  };
  EXPECT_EQ(releases(OutputBias::kFixed, 2000, 6), 1u);
  EXPECT_EQ(releases(OutputBias::kFixed, 2000, 365), 4u);
  EXPECT_EQ(releases(OutputBias::kFixed, 199, 6), 0u);
  EXPECT_EQ(releases(OutputBias::kNone, 2000, 6), 0u);
  EXPECT_EQ(releases(OutputBias::kTrained, 2000, 6), 0u);
}

TEST_F(PlannedReleases, TheFirstRunPutsThemIntoTheCandidate) {
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

TEST_F(PlannedReleases, TheFirstRunWeighsTheBias) {
  DeploymentSettings settings = Settings();
  settings.bias_weight_releases = 1;
  settings.bias_weight_share = 0.04;
  MakeBase(base_path_, 1, false, 0, OutputBias::kFixed);
  Plan(settings);
  while (MustRun().left.steps > 0) ASSERT_LT(runs_, 8);
  EXPECT_EQ(Charged(kBiasWeightPurpose), 1u);
  EXPECT_EQ(OpenLedger().Entries()->front().purpose, kBiasWeightPurpose);
  EXPECT_EQ(Charged("training"), 36u);
  EXPECT_LE(*OpenLedger().Spent(*privacy::Delta::Create(1e-4)), 8);
}

TEST_F(PlannedReleases, StoppedAnywhere_TheyArePaidForOnce) {
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

TEST_F(PlannedReleases, AChangedPlanKeepsThemAndReleasesNone) {
  DeploymentSettings settings = WithRelease();
  settings.succession_share = 0.1;  // leaves the filter enough for other steps
  Plan(settings);
  MustRun();
  const std::vector<Succession> first = Of(files_.candidate);
  {
    Ledger ledger = OpenLedger();
    const auto changed = ChangeDeployment(PlannedBase(*ModelFile::Open(base_path_)), ledger, **ReadSettings(ledger),
                                          {.runs = 3, .expected_batch = 100});
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_EQ(changed->settings.succession_releases, 0u);
    EXPECT_EQ(changed->settings.bias_weight_releases, 0u);
    ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  }
  MustRun();
  EXPECT_EQ(Of(files_.candidate), first);
  EXPECT_EQ(Charged(kSuccessionsPurpose), 1u);
}

TEST_F(PlannedReleases, ARebaseCarriesThemByKeys) {
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
class SuccessionsOfBases : public PlannedReleases {
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
}  // namespace wisp::planned_releases_test
