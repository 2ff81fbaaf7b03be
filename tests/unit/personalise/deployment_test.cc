// A plan for a deployment: it costs what was asked for, however it is used; its settings are read back; half of a plan
// does not count.
#include "runtime/personalise/deployment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>
#include <thread>

#include "runtime/train/run/job.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::deployment_test {
namespace {

using privacy::ChargeRequest;
using privacy::Ledger;
using privacy::LedgerFigures;

constexpr DeploymentSettings kDeployment = {.num_records_public = 2000,
                                            .epsilon = 4,
                                            .delta = 1e-5,
                                            .runs = 12,
                                            .steps_per_run = 10,
                                            .expected_batch = 100,
                                            .evaluations = 6};

class DeploymentTest : public ::testing::Test {
 protected:
  DeploymentTest() {
    architecture_ = UniformArchitecture{
        .num_items = 40, .max_length = 8, .width = 8, .num_heads = 1, .num_blocks = 1, .inner_width = 8};
  }
  Ledger Open(const char* name = "l") {
    return *Ledger::Open(folder_ / name, {.dataset = "d", .record = privacy::RecordSpec::OfEvents({})});
  }
  Deployment MustPlan(const DeploymentSettings& settings = kDeployment) {
    auto deployment = CalibrateDeployment(architecture_, settings);
    EXPECT_TRUE(deployment.ok()) << deployment.status().message();
    return *std::move(deployment);
  }
  double Spent(const Ledger& ledger) { return *ledger.Spent(*privacy::Delta::Create(1e-5)); }

  test::TemporaryFolder folder_;
  Architecture architecture_;
};

TEST_F(DeploymentTest, CostsWhatWasAskedForAndNoMoreAtItsEnd) {
  const Deployment deployment = MustPlan();
  EXPECT_EQ(deployment.charges.front().mechanism.sampling_probability(), 100.0 / 2000);
  EXPECT_EQ(deployment.charges.front().mechanism.steps(), 120u);
  EXPECT_EQ(deployment.charges.back().mechanism.steps(), 6u);
  Ledger ledger = Open();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  EXPECT_EQ(Spent(ledger), 0);
  // All of it is charged, in an unforeseen order.
  const auto charge = [&](const ChargeRequest& all, uint64_t steps) {
    ChargeRequest some = all;
    some.mechanism = *all.mechanism.WithSteps(steps);
    some.loss_slack = all.loss_slack * static_cast<double>(steps) / static_cast<double>(all.mechanism.steps());
    return ledger.Charge(some).ok();
  };
  for (const uint64_t steps : {1, 50, 19, 50}) EXPECT_TRUE(charge(deployment.charges.front(), steps));
  for (const uint64_t evaluations : {4, 2}) EXPECT_TRUE(charge(deployment.charges.back(), evaluations));
  const LedgerFigures figures = *ledger.Figures(*privacy::Delta::Create(1e-5));
  EXPECT_EQ(figures.basis, LedgerFigures::Basis::kPlan);
  EXPECT_LE(figures.stated.epsilon, 4);
  EXPECT_GT(figures.stated.epsilon, 3.98) << "a twentieth of delta is kept for a change of the plan";
  // One more step of either is refused.
  EXPECT_FALSE(charge(deployment.charges.front(), 1));
  EXPECT_FALSE(charge(deployment.charges.back(), 1));
  EXPECT_LE(Spent(ledger), 4);
}

// The cost of the noise's grid grows with the model.
TEST_F(DeploymentTest, CoversEachStepOfACatalogueThatGrows) {
  const Deployment deployment = MustPlan();
  Ledger ledger = Open();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  const auto covered = [&](uint32_t num_items) {
    Architecture grown = architecture_;
    grown.num_items = num_items;
    return *StepsThatPlanCovers(ledger, deployment.settings, {}, grown, 120);
  };
  EXPECT_EQ(covered(40), 120u);
  EXPECT_EQ(covered(600), 120u);
  // A catalogue that is too large trains as long as it may.
  EXPECT_GT(covered(2000), 10u);
  EXPECT_LT(covered(2000), 120u);
  EXPECT_EQ(covered(1'000'000), 0u);
}

TEST_F(DeploymentTest, SaysWhatIsLeft) {
  Ledger ledger = Open();
  EXPECT_FALSE(ReadSettings(ledger)->has_value());
  const Deployment deployment = MustPlan();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  const DeploymentSettings settings = **ReadSettings(ledger);
  EXPECT_EQ(settings, deployment.settings);
  const auto left = [&] { return *ComputeLeft(ledger, settings); };
  EXPECT_EQ(left().steps, 120u);
  EXPECT_EQ(left().runs, 12u);
  EXPECT_EQ(left().evaluations, 6u);
  ChargeRequest some = deployment.charges.front();
  some.mechanism = *some.mechanism.WithSteps(25);
  some.loss_slack = 0;
  ASSERT_TRUE(ledger.Charge(some).ok());
  ChargeRequest evaluation = deployment.charges.back();
  evaluation.mechanism = *evaluation.mechanism.WithSteps(1);
  evaluation.loss_slack = 0;
  ASSERT_TRUE(ledger.Charge(evaluation).ok());
  EXPECT_EQ(left().steps, 95u);
  EXPECT_EQ(left().runs, 10u) << "the last one takes what is left";
  EXPECT_EQ(left().evaluations, 5u);
  EXPECT_LT(left().epsilon, 0.02);
  EXPECT_EQ(WriteDeployment(ledger, deployment, "plan").code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(left().steps, 95u);
}

// A loop must not use up a plan, and neither a jumping clock nor a run that was cut short may block it.
TEST_F(DeploymentTest, ARunWaitsForHalfOfTheTimeBetweenRuns) {
  constexpr int64_t kHour = 3600;
  DeploymentSettings wanted = kDeployment;
  EXPECT_EQ(ToText(wanted).find("every"), std::string::npos) << "a plan as it was written before";
  wanted.every = 24 * kHour;
  const auto due = [&](const char* name, uint64_t steps, int64_t hours) {
    Ledger ledger = Open(name);
    const auto settings = *ReadSettings(ledger);
    if (!settings) {
      const Deployment deployment = MustPlan(wanted);
      EXPECT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
      ChargeRequest run = deployment.charges.front();
      run.mechanism = *run.mechanism.WithSteps(steps);
      run.loss_slack = 0;
      EXPECT_TRUE(ledger.Charge(run).ok());
    }
    const DeploymentSettings now = **ReadSettings(ledger);
    EXPECT_EQ(now.every, wanted.every);
    return CheckDue(ledger, now, *ComputeLeft(ledger, now), std::time(nullptr) + hours * kHour).code();
  };
  for (const int64_t hours : {0, 11, -11}) EXPECT_EQ(due("whole", 10, hours), StatusCode::kTooEarly) << hours;
  for (const int64_t hours : {13, -13, 24 * 365 * 50, -24 * 365 * 50})
    EXPECT_EQ(due("whole", 10, hours), StatusCode::kOk) << hours;
  EXPECT_EQ(due("cut short", 9, 0), StatusCode::kOk);
  EXPECT_EQ(due("used up", 120, 0), StatusCode::kOk) << "it trains nothing";
  // Runs of a device that fills up are shorter at first.
  wanted.num_records_at_start = 500;
  EXPECT_EQ(due("filling, whole", 5, 0), StatusCode::kTooEarly);
  EXPECT_EQ(due("filling, cut short", 3, 0), StatusCode::kOk);
  wanted.every = 0;
  EXPECT_EQ(due("at any time", 10, 0), StatusCode::kOk);
}

// The figure excludes what the plan has reserved, so it stays constant while the plan is followed.
TEST_F(DeploymentTest, WhatIsBesideThePlanIsLeftWhenAllOfItIsUsed) {
  const Deployment deployment = MustPlan();
  struct Case {
    double limit_epsilon, limit_delta;
    bool others;  // were charged before the plan's first charge
    double least, most;
  };
  int ledgers = 0;
  for (const Case& c : {Case{4, 1e-5, false, 0, 0.05}, Case{8, 1e-5, false, 3.9, 4.1}, Case{8, 1e-4, false, 4.4, 5},
                        Case{8, 1e-5, true, 0.5, 3.5}}) {
    SCOPED_TRACE(testing::Message() << c.limit_epsilon << " at " << c.limit_delta << (c.others ? ", others" : ""));
    Ledger ledger = Open(("l" + std::to_string(ledgers++)).c_str());
    ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(c.limit_epsilon, c.limit_delta)).ok());
    ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
    const ChargeRequest other{.mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 20}), .run = "other"};
    if (c.others) {
      ASSERT_TRUE(ledger.Charge(other).ok());
    }
    const double before = ComputeLeft(ledger, deployment.settings)->epsilon;
    EXPECT_GE(before, c.least);
    EXPECT_LE(before, c.most);
    for (const ChargeRequest& all : deployment.charges) {
      ASSERT_TRUE(ledger.Charge(all).ok());
      EXPECT_NEAR(ComputeLeft(ledger, deployment.settings)->epsilon, before, 1e-6);
    }
  }
}

// The newest plan counts, whatever its kind of evaluation, and nothing of an earlier plan remains.
TEST_F(DeploymentTest, APlanIsMadeAnewWithOtherEvaluatesBeforeItsFirstCharge) {
  DeploymentSettings privately = kDeployment, locally = kDeployment, none = kDeployment;
  locally.evaluates_locally = 1;
  none.evaluations = 0;
  int ledgers = 0;
  for (const auto& [one, other] :
       {std::pair(privately, locally), {locally, privately}, {privately, none}, {none, privately}, {none, locally}}) {
    SCOPED_TRACE(ledgers);
    Ledger ledger = Open(("l" + std::to_string(ledgers++)).c_str());
    ASSERT_TRUE(WriteDeployment(ledger, MustPlan(one), "one").ok());
    const Deployment deployment = MustPlan(other);
    const Status again = WriteDeployment(ledger, deployment, "other");
    ASSERT_TRUE(again.ok()) << again.message();
    EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->evaluations, deployment.charges.size() == 1 ? 0u : 6u);
    EXPECT_LT(ComputeLeft(ledger, deployment.settings)->epsilon, 0.02);
    for (const ChargeRequest& charge : deployment.charges) EXPECT_TRUE(ledger.Charge(charge).ok());
    const LedgerFigures figures = *ledger.Figures(*privacy::Delta::Create(1e-5));
    EXPECT_EQ(figures.basis, LedgerFigures::Basis::kPlan);
    EXPECT_LE(figures.stated.epsilon, 4);
    EXPECT_TRUE(figures.planned_left.empty());
  }
}

TEST_F(DeploymentTest, AfterAChargeThereIsNoPlanAndNothingOfOne) {
  const Deployment deployment = MustPlan();
  Ledger ledger = Open();
  ASSERT_TRUE(ledger.Charge({.mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 50}), .run = "a"}).ok());
  EXPECT_EQ(WriteDeployment(ledger, deployment, "plan").code(), StatusCode::kPrivacyRefused);
  EXPECT_FALSE(ledger.Limit()->has_value());
  EXPECT_TRUE(ledger.Plans()->empty());
}

// Evaluations take a tenth of the budget at most, and no more than makes their noise half of what chance does to a sum.
TEST_F(DeploymentTest, EvaluationsCostSomeNoiseOfEachStep) {
  DeploymentSettings settings = kDeployment;
  settings.evaluations = 0;
  const Deployment none = MustPlan(settings), some = MustPlan();
  EXPECT_EQ(none.charges.size(), 1u);
  EXPECT_GT(some.settings.training_noise, 1.01 * none.settings.training_noise);
  EXPECT_LT(some.settings.training_noise, 1.06 * none.settings.training_noise);
  constexpr double kMu = 0.925;  // of a Gaussian mechanism with epsilon 4 at delta 1e-5
  EXPECT_NEAR(some.settings.evaluation_noise, std::sqrt(6 / kMostOfEvaluations) / kMu, 0.05);
  settings = kDeployment;
  settings.num_records_public = 1'000'000, settings.delta = 1e-7;
  EXPECT_EQ(MustPlan(settings).settings.evaluation_noise, 100);
}

// Whatever is wished, the releases leave something for the steps.
TEST_F(DeploymentTest, AnyWishLeavesStepsTheirShare) {
  for (const double epsilon : {0.1, 4.0, 30.0, 50.0}) {
    for (const uint32_t records : {20u, 400u, 20'000u}) {
      for (const uint32_t evaluations : {2u, 52u}) {
        DeploymentSettings settings = kDeployment;
        settings.epsilon = epsilon, settings.num_records_public = records, settings.expected_batch = 20;
        settings.runs = 52, settings.steps_per_run = 1, settings.evaluations = evaluations;
        const double alone = [&] {
          DeploymentSettings without = settings;
          without.evaluations = 0;
          return MustPlan(without).settings.training_noise;
        }();
        settings.bias_weight_releases = settings.succession_releases = 4;
        settings.bias_weight_share = 0.04, settings.succession_share = 0.75;
        const double noise = MustPlan(settings).settings.training_noise;
        EXPECT_GT(noise, alone) << epsilon << " " << records;
        EXPECT_LT(noise, 4 * alone) << epsilon << " " << records;
      }
    }
  }
}

// Training sessions share the steps by how many people there are: in proportion to the sums of a straight line from the
// start to the end.
TEST_F(DeploymentTest, RunsTakeMoreStepsWhereMorePeopleAreThere) {
  DeploymentSettings settings = kDeployment;
  settings.num_records_at_start = 200;
  const Deployment deployment = MustPlan(settings);
  EXPECT_EQ(deployment.charges.front().mechanism.steps(), 120u) << "the whole is the same";
  EXPECT_EQ(deployment.settings.training_noise, MustPlan().settings.training_noise);
  Ledger ledger = Open();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  EXPECT_EQ(ReadSettings(ledger)->value().num_records_at_start, 200u);
  std::vector<uint64_t> steps;
  for (uint64_t planned_run = 0; planned_run < 12; ++planned_run) {
    const DeploymentLeft left = *ComputeLeft(ledger, deployment.settings);
    EXPECT_EQ(left.runs, 12 - planned_run);
    steps.push_back(left.steps_of_next);
    ChargeRequest some = deployment.charges.front();
    some.mechanism = *some.mechanism.WithSteps(left.steps_of_next);
    some.loss_slack *= static_cast<double>(left.steps_of_next) / 120;
    ASSERT_TRUE(ledger.Charge(some).ok());
  }
  EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->steps, 0u);
  EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->runs, 0u);
  EXPECT_EQ(std::accumulate(steps.begin(), steps.end(), uint64_t{0}), 120u);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end())) << steps.front() << " to " << steps.back();
  EXPECT_LE(steps.front(), 3u) << "200 of 2,000 people";
  EXPECT_GE(steps.back(), 17u);
  settings.num_records_at_start = 2000;
  EXPECT_EQ(settings.share_present(), 1);
  settings.num_records_at_start = 2001;
  EXPECT_EQ(CheckSettings(settings).code(), StatusCode::kInvalidArgument);
}

// The first session was cut short: the next one takes its rest and no more; one step is the minimum.
TEST_F(DeploymentTest, InterruptedSession_IsCompleted) {
  DeploymentSettings settings = kDeployment;
  settings.num_records_at_start = 1000;
  const Deployment deployment = MustPlan(settings);
  Ledger ledger = Open();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  const uint64_t first = ComputeLeft(ledger, deployment.settings)->steps_of_next;
  ASSERT_EQ(first, 7u);
  ChargeRequest two = deployment.charges.front();
  two.mechanism = *two.mechanism.WithSteps(2);
  two.loss_slack /= 60;
  ASSERT_TRUE(ledger.Charge(two).ok());
  EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->steps_of_next, 5u);
  EXPECT_EQ(ComputeLeft(ledger, deployment.settings)->runs, 12u);
}

TEST_F(DeploymentTest, ALimitThatIsThereHolds) {
  const Deployment deployment = MustPlan();
  Ledger ledger = Open();
  ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(2, 1e-5)).ok());
  EXPECT_EQ(WriteDeployment(ledger, deployment, "plan").code(), StatusCode::kPrivacyRefused);
  EXPECT_FALSE(ReadSettings(ledger)->has_value());
  EXPECT_EQ((**ledger.Limit()).epsilon(), 2);
}

// The moment until which events train is public and never moves back. It is the newest charge, and from the first
// evaluation on the charge with which the newest evaluation became due.
TEST_F(DeploymentTest, TrainsUntilTheNewestEvaluationBecameDue) {
  DeploymentSettings settings = kDeployment;
  const Deployment deployment = MustPlan(settings);  // an evaluation for each 20 steps
  Ledger ledger = Open();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  const auto until = [&] { return *TrainsUntil(ledger, deployment.settings, 77); };
  const auto charge = [&](uint64_t steps) {
    ChargeRequest some = deployment.charges.front();
    some.mechanism = *some.mechanism.WithSteps(steps);
    some.loss_slack = 0;
    ASSERT_TRUE(ledger.Charge(some).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  };
  const auto charged_at = [&](size_t which) {
    std::tm time{};
    strptime((*ledger.Entries())[which].time_utc.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
    return static_cast<int64_t>(timegm(&time)) + 1;
  };
  EXPECT_EQ(until(), 77) << "nothing was trained yet";
  charge(9);
  EXPECT_EQ(until(), charged_at(0));
  charge(1);
  EXPECT_EQ(until(), charged_at(1));
  charge(9);
  EXPECT_EQ(until(), charged_at(1)) << "what comes from now on is for the first evaluation";
  charge(1);
  EXPECT_EQ(until(), charged_at(3)) << "the first evaluation is due";
  charge(19);
  EXPECT_EQ(until(), charged_at(3)) << "training lags behind, until it is evaluated by what came since";
  charge(2);
  EXPECT_EQ(until(), charged_at(5));
  settings.trains_until = 1'700'000'000;
  EXPECT_EQ(*TrainsUntil(ledger, settings, 77), 1'700'000'000);
  settings.evaluations = 0;
  EXPECT_EQ(*TrainsUntil(ledger, settings, 77), data::kLatestSecond) << "without evaluation all events train";
  settings.trains_until = -1;
  EXPECT_EQ(CheckSettings(settings).code(), StatusCode::kInvalidArgument);
}

// After a change that leaves no evaluation nothing is kept back any more.
TEST_F(DeploymentTest, WithoutAnEvaluationLeftAllEventsTrain) {
  const Deployment deployment = MustPlan();  // an evaluation for each 20 steps
  Ledger ledger = Open();
  ASSERT_TRUE(WriteDeployment(ledger, deployment, "plan").ok());
  ChargeRequest some = deployment.charges.front();
  some.mechanism = *some.mechanism.WithSteps(20);
  some.loss_slack = 0;
  ASSERT_TRUE(ledger.Charge(some).ok());
  DeploymentSettings changed = deployment.settings;
  changed.evaluations_before = changed.evaluations;
  ASSERT_TRUE(ledger.ChangePlan("r", "changed", {&some, 1}, ToText(changed), *ledger.NewestRow()).ok());
  const int64_t first = *TrainsUntil(ledger, changed, 77);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ASSERT_TRUE(ledger.Charge(some).ok());
  EXPECT_GT(*TrainsUntil(ledger, changed, 77), first) << "that of the newest charge";
}

TEST_F(DeploymentTest, SettingsAreReadBackAndNothingElseIs) {
  DeploymentSettings settings = kDeployment;
  settings.training_noise = 1.0 / 3;
  settings.allow_seen = 1;
  settings.trains_until = 1'700'000'000;
  const std::string text = ToText(settings);
  EXPECT_EQ(*ParseDeploymentSettings(text), settings);
  for (const std::string& bad : {std::string(), text + " ", text.substr(0, text.size() - 1), "x" + text,
                                 text.substr(0, text.find("runs")) + "runs=0" + text.substr(text.find(" steps_per"))})
    EXPECT_EQ(ParseDeploymentSettings(bad).status().code(), StatusCode::kInvalidData) << bad;
}

TEST_F(DeploymentTest, InvalidPlans_AreRefused) {
  const auto refused = [&](auto change) {
    DeploymentSettings settings = kDeployment;
    change(settings);
    return CalibrateDeployment(architecture_, settings).status().code();
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(refused([](auto& s) { s.num_records_public = 0; }), kInvalid);
  EXPECT_EQ(refused([](auto& s) { s.runs = 0; }), kInvalid);
  EXPECT_EQ(refused([](auto& s) { s.steps_per_run = 0; }), kInvalid);
  EXPECT_EQ(refused([](auto& s) { s.steps_per_run = UINT64_MAX / 2; }), kInvalid);
  EXPECT_EQ(refused([](auto& s) { s.error = 0; }), kInvalid);
  EXPECT_EQ(refused([](auto& s) { s.delta = 0.01; }), StatusCode::kPrivacyRefused);
  EXPECT_EQ(refused([](auto& s) { s.epsilon = 0; }), kInvalid);
}

}  // namespace
}  // namespace wisp::deployment_test
