// A plan that is changed in the middle of a deployment: other times cost nothing, another kind of step costs noise, and
// the limit holds whatever is chosen.
#include "runtime/personalise/plan_change.h"

#include <gtest/gtest.h>

#include "runtime/train/privacy_plan.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::plan_change_test {
namespace {

using privacy::Ledger;
using privacy::LedgerFigures;

class PlanChangeTest : public PlannedRunTest {
 protected:
  PlanChangeTest() { Plan(Settings()); }  // 6 runs of 6 steps, batch 200 of 210
  PlannedBase Shape() { return PlannedBase(*ModelFile::Open(base_path_)); }
  DeploymentSettings InForce() { return **ReadSettings(OpenLedger()); }
  DeploymentLeft Left() { return *ComputeLeft(OpenLedger(), InForce()); }
  Result<ChangedDeployment> Change(const PlanChange& change) {
    Ledger ledger = OpenLedger();
    auto changed = ChangeDeployment(Shape(), ledger, InForce(), change);
    if (changed.ok()) WISP_RETURN_IF_ERROR(WriteChange(ledger, *changed, "change"));
    return changed;
  }
  LedgerFigures ComputeFigures() { return *OpenLedger().Figures(*privacy::Delta::Create(Settings().delta)); }
};

TEST_F(PlanChangeTest, OtherTimes_CostNothingAndTrainingContinues) {
  MustRun();
  MustRun();
  const auto changed = Change({.runs = 12});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_TRUE(changed->is_free);
  EXPECT_EQ(changed->before.steps, 24u);
  EXPECT_EQ(changed->settings.steps_per_run, 2u);
  EXPECT_EQ(Left().steps, 24u);
  EXPECT_EQ(Left().runs, 12u);
  EXPECT_FALSE(Left().by_filter);
  const PlannedRunResult planned_run = MustRun();
  EXPECT_EQ(planned_run.steps, 2u);
  EXPECT_EQ(planned_run.steps_of_model, 14u) << "from the checkpoint";
  EXPECT_EQ(Left().steps, 22u);
  // Uses the plan to its end, all under the first plan, with one more change on the way.
  ASSERT_TRUE(Change({.runs = 2}).ok());
  EXPECT_EQ(MustRun().steps, 11u);
  EXPECT_EQ(MustRun().steps, 11u);
  EXPECT_EQ(MustRun().steps, 0u);
  EXPECT_EQ(Left().evaluations, 0u) << "the evaluations are spread over what is left";
  EXPECT_EQ(ComputeFigures().basis, LedgerFigures::Basis::kPlan);
  EXPECT_LE(ComputeFigures().stated.epsilon, 8);
}

TEST_F(PlanChangeTest, AnotherStepCostsNoiseAndGoesThroughTheFilter) {
  MustRun();
  const double until_now = InForce().training_noise;
  const auto changed = Change({.runs = 4, .steps_per_run = 3, .expected_batch = 150});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_FALSE(changed->is_free);
  EXPECT_EQ(changed->settings.evaluations_before, 0u);
  // Planned from the start, these steps would need less noise: there are fewer of them, on fewer records.
  EXPECT_GT(changed->settings.training_noise, 0.5 * until_now);
  EXPECT_EQ(Left().steps, 12u);
  EXPECT_TRUE(Left().by_filter);
  const uint64_t candidate = ComputeHash(files_.candidate);
  PlannedRunResult planned_run = MustRun();
  EXPECT_EQ(planned_run.steps, 3u);
  EXPECT_EQ(planned_run.steps_of_model, 3u) << "its own run";
  EXPECT_EQ(ComputeHash(files_.start), candidate) << "which begins with what was learned";
  EXPECT_EQ(Left().steps, 9u);
  for (int n = 0; n < 3; ++n) EXPECT_EQ(MustRun().steps, 3u);
  EXPECT_EQ(MustRun().steps, 0u);
  EXPECT_EQ(Left().evaluations, 0u);
  const auto figures = ComputeFigures();
  EXPECT_EQ(figures.basis, LedgerFigures::Basis::kAdaptive) << "chosen after looking, and said";
  EXPECT_LE(figures.stated.epsilon, 8);
}

// Half the batch would take twice the steps for as many passes; more steps than the rest are taken only on request.
// Here a session charges while somebody looks at the change: the rest is no longer the one that the change was made
// for.
TEST_F(PlanChangeTest, AChangeDoesNotFollowFromWhatWasChargedMeanwhile) {
  MustRun();
  Ledger ledger = OpenLedger();
  const auto changed = ChangeDeployment(Shape(), ledger, InForce(), {.runs = 3});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  MustRun();
  const Status refused = WriteChange(ledger, *changed, "change");
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("another process wrote meanwhile"), std::string::npos) << refused.message();
}

TEST_F(PlanChangeTest, SuggestsNoMoreStepsThanWereLeft) {
  MustRun();
  const Ledger ledger = OpenLedger();
  const auto steps = [&](const PlanChange& change) {
    const auto changed = ChangeDeployment(Shape(), ledger, InForce(), change);
    EXPECT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_LE(changed->settings.runs, change.runs);
    return changed->settings.num_steps();
  };
  EXPECT_EQ(steps({.runs = 5, .expected_batch = 100}), 30u);
  EXPECT_EQ(steps({.runs = 4, .expected_batch = 100}), 28u) << "whole steps";
  EXPECT_EQ(steps({.runs = 100, .expected_batch = 100}), 30u) << "every run has one at least";
  EXPECT_EQ(steps({.runs = 5, .expected_batch = 210}), 25u) << "as many passes";
  EXPECT_EQ(steps({.runs = 5, .steps_per_run = 8, .expected_batch = 100}), 40u) << "as asked for";
}

// This is the smallest noise that fits: with slightly less, the limit would be exceeded.
TEST_F(PlanChangeTest, AsksForNoMoreNoiseThanTheFilterDoes) {
  MustRun();
  Ledger ledger = OpenLedger();
  const ChangedDeployment changed = *ChangeDeployment(Shape(), ledger, InForce(), {.runs = 4, .expected_batch = 150});
  EXPECT_TRUE(ledger.CheckFits(changed.charges, {}).ok());
  ChangedDeployment louder = changed;
  louder.settings.training_noise /= 1.003;
  const PrivacyPlan plan = *PrivacyPlan::Create(Shape().architecture, MakeTrainingOptions(louder.settings));
  louder.charges = *ChargesWithEvaluations(plan, louder.settings.num_steps(), louder.settings, louder.before);
  EXPECT_EQ(ledger.CheckFits(louder.charges, {}).code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(WriteChange(ledger, louder, "too much").code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(InForce(), **ReadSettings(ledger)) << "nothing was written";
  EXPECT_EQ(Left().steps, 30u);
}

TEST_F(PlanChangeTest, StoppedBetweenItsFiles_ItContinues) {
  MustRun();
  ASSERT_TRUE(Change({.runs = 4, .expected_batch = 150}).ok());
  const uint64_t candidate = ComputeHash(files_.candidate);
  // The candidate has become the start, and the previous checkpoint is still there.
  std::filesystem::rename(files_.candidate, files_.start);
  EXPECT_GT(MustRun().steps, 0u);
  EXPECT_EQ(ComputeHash(files_.start), candidate);
}

TEST_F(PlanChangeTest, RefusesWhatCannotBe) {
  const auto code = [&](const PlanChange& change) { return Change(change).status().code(); };
  EXPECT_EQ(code({.runs = 3}), StatusCode::kPrivacyRefused) << "nothing was charged: a new plan costs nothing";
  MustRun();
  EXPECT_EQ(code({}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.runs = 10, .steps_per_run = 6}), StatusCode::kInvalidArgument) << "30 steps are left";
  EXPECT_EQ(code({.runs = 5, .learning_rate = 0.001}), StatusCode::kInvalidArgument)
      << "a checkpoint with another rate cannot resume";
  EXPECT_EQ(code({.runs = 5, .num_records_public = 20'000}), StatusCode::kPrivacyRefused) << "delta is 1e-4";
  EXPECT_EQ(Change({.runs = 2'000'000'000})->settings.runs, 30u) << "a step each";
  EXPECT_EQ(code({.runs = 5, .steps_per_run = 6}), StatusCode::kOk);
  for (int planned_run = 0; planned_run < 5; ++planned_run) MustRun();
  EXPECT_EQ(code({.runs = 1}), StatusCode::kInvalidArgument) << "none is left";
  EXPECT_EQ(code({.runs = 1, .expected_batch = 150}), StatusCode::kPrivacyRefused) << "all of the limit is spent";
}

// The table of docs/personalise.md: the rest of the steps is taken with another kind of step, after some were taken.
TEST(CostOfAChange, RisesWithWhatIsSpent) {
  const Architecture shape = UniformArchitecture{
      .num_items = 480, .max_length = 40, .width = 32, .num_heads = 1, .num_blocks = 2, .inner_width = 64};
  const Deployment deployment = *CalibrateDeployment(shape, {.num_records_public = 2000,
                                                             .epsilon = 4,
                                                             .delta = 1e-5,
                                                             .runs = 36,
                                                             .steps_per_run = 10,
                                                             .expected_batch = 500,
                                                             .evaluations = 12});
  double last = 1;
  for (const uint64_t done : {36, 90, 180, 270}) {
    const test::TemporaryFolder folder;
    Ledger ledger = *Ledger::Open(folder / "l", {.dataset = "d", .record = privacy::RecordSpec::OfEvents({})});
    ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
    const PrivacyPlan plan = *PrivacyPlan::Create(shape, MakeTrainingOptions(deployment.settings));
    ASSERT_TRUE(ledger.Charge(plan.ChargesTogether(done)->front()).ok());
    const auto changed = ChangeDeployment(PlannedBase(shape, false), ledger, deployment.settings,
                                          {.runs = 36, .steps_per_run = (360 - done) / 36, .expected_batch = 499});
    const double times = changed.ok() ? changed->settings.training_noise / deployment.settings.training_noise : 0;
    std::printf("after %3.0f %% of the steps: %s\n", static_cast<double>(done) / 3.6,
                changed.ok() ? std::to_string(times).c_str() : changed.status().message().c_str());
    if (done == 270) {
      EXPECT_EQ(changed.status().code(), StatusCode::kPrivacyRefused);
    } else {
      EXPECT_GT(times, last);
      EXPECT_LT(times, 3);
      last = times;
    }
  }
}

TEST_F(PlanChangeTest, SettingsAreReadBackAndAllAreNeeded) {
  DeploymentSettings settings = Settings();
  settings.steps_in_all = 36;
  settings.evaluations_before = 2;
  std::string text = ToText(settings);
  EXPECT_EQ(*ParseDeploymentSettings(text), settings);
  const size_t at = text.find("allow_seen=0 ");
  ASSERT_NE(at, std::string::npos) << text;
  text.erase(at, std::string_view("allow_seen=0 ").size());
  EXPECT_EQ(ParseDeploymentSettings(text).status().code(), StatusCode::kInvalidData);
}

}  // namespace
}  // namespace wisp::plan_change_test
