// A plan is made whole or not at all, and an app may ask for it at every start.
#include "runtime/personalise/make_plan.h"

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <latch>

#include "runtime/personalise/plan_change.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::make_plan_test {
namespace {

using privacy::EpsilonDelta;
using privacy::Ledger;

class MakePlanTest : public ::testing::Test {
 protected:
  MakePlanTest() {
    architecture_ = UniformArchitecture{
        .num_items = 40, .max_length = 8, .width = 8, .num_heads = 1, .num_blocks = 1, .inner_width = 8};
    wanted_.request = {.num_records_public = 2000,
                       .epsilon = 4,
                       .delta = 1e-5,
                       .runs = 12,
                       .steps_per_run = 3,
                       .expected_batch = 400,
                       .evaluations = 2};
    wanted_.run = "plan";
    wanted_.output = folder_ / "mine.wisp";
  }
  Ledger Open() { return *Ledger::Open(folder_ / "l", {.dataset = "d", .record = privacy::RecordSpec::OfEvents({})}); }
  Result<MadePlan> Make() {
    Ledger ledger = Open();
    return MakePlan(ledger, PlannedBase(architecture_, allow_seen_), wanted_);
  }
  // Returns true if the plan was there before.
  bool MustFind() {
    const auto made = Make();
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() && made->made_before.has_value();
  }
  void Refused(const std::string& sentence) {
    const Status status = Make().status();
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused) << sentence;
    EXPECT_NE(status.message().find(sentence), std::string::npos) << status.message();
  }
  size_t NumRows() {
    const Ledger ledger = Open();
    return ledger.Plans()->size() + ledger.Limits()->size() + ledger.Entries()->size();
  }
  DeploymentSettings InForce() { return **ReadSettings(Open()); }
  void ChargeOneRun() {
    Ledger ledger = Open();
    auto charge = ledger.Plans()->back();
    ASSERT_TRUE(ledger.Charge({.mechanism = *charge.mechanisms[0].mechanism.WithSteps(3), .run = "run"}).ok());
  }

  test::TemporaryFolder folder_;
  Architecture architecture_;
  bool allow_seen_ = false;  // of the base
  PlanToMake wanted_;
};

TEST_F(MakePlanTest, TheSameWishesFindThePlanAndWriteNothing) {
  EXPECT_FALSE(MustFind());
  const size_t rows = NumRows();
  const DeploymentSettings planned = InForce();
  EXPECT_TRUE(MustFind());
  wanted_.request.steps_per_run = 0;  // left to be chosen: it was chosen
  wanted_.request.expected_batch = 0;
  wanted_.request.evaluations = {};
  architecture_.num_items = 50;  // an update's catalogue has other noise
  EXPECT_TRUE(MustFind());
  ChargeOneRun();
  EXPECT_TRUE(MustFind()) << "runs may have run";
  EXPECT_EQ(InForce(), planned);
  EXPECT_EQ(NumRows(), rows + 1) << "the run";
}

TEST_F(MakePlanTest, AChangedPlanIsFoundByTheWishesOfTheFirstOneToo) {
  EXPECT_FALSE(MustFind());
  ChargeOneRun();
  {
    Ledger ledger = Open();
    const auto changed = ChangeDeployment(PlannedBase(architecture_, allow_seen_), ledger, InForce(), {.runs = 33});
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  }
  EXPECT_TRUE(MustFind());
  wanted_.request.runs = 33;
  wanted_.request.steps_per_run = 0;
  wanted_.request.evaluations = {};
  EXPECT_TRUE(MustFind());
  EXPECT_EQ(InForce().runs, 33u);
}

TEST_F(MakePlanTest, AnotherPlanIsRefusedAndEachDifferenceIsNamed) {
  EXPECT_FALSE(MustFind());
  const size_t rows = NumRows();
  const PlanToMake first = wanted_;
  const auto differs = [&](const std::string& sentence, auto change) {
    wanted_ = first;
    change(wanted_);
    Refused(sentence);
  };
  differs("epsilon is 4, asked for is 2; the number of runs is 12, asked for is 6", [](PlanToMake& p) {
    p.request.epsilon = 2;
    p.request.runs = 6;
  });
  differs("delta is", [](PlanToMake& p) { p.request.delta = 1e-6; });
  differs("the public number of records is 2000, asked for is 3000",
          [](PlanToMake& p) { p.request.num_records_public = 3000; });
  differs("the public number of records at the start is 0, asked for is 9",
          [](PlanToMake& p) { p.request.num_records_at_start = 9; });
  differs("the number of steps of a run is 3", [](PlanToMake& p) { p.request.steps_per_run = 4; });
  differs("the batch is 400", [](PlanToMake& p) { p.request.expected_batch = 300; });
  differs("the learning rate is", [](PlanToMake& p) { p.request.learning_rate = 0.5; });
  differs(
      "the kind of evaluation is private, asked for is "
      "none",
      [](PlanToMake& p) { p.request.evaluations = 0; });
  differs("the kind of evaluation is private, asked for is local",
          [](PlanToMake& p) { p.request.evaluates_locally = true; });
  differs("the number of evaluations is 2, asked for is 3", [](PlanToMake& p) { p.request.evaluations = 3; });
  differs("the time until which events train is 0", [](PlanToMake& p) { p.request.trains_until = 5; });
  differs("`replace`", [](PlanToMake& p) { p.request.runs = 6; });
  allow_seen_ = true;
  differs("allow_seen of the base is 0, asked for is 1", [](PlanToMake&) {});
  allow_seen_ = false;
  EXPECT_EQ(NumRows(), rows);
  ChargeOneRun();
  wanted_ = first;
  wanted_.request.runs = 6;
  wanted_.replaces = true;
  Refused("has charges: a plan for a deployment is made before the first of them");
}

// The limit follows the plan that is replaced; a limit that somebody else set stays.
TEST_F(MakePlanTest, AnotherPlanReplacesOneThatWasNeverChargedWhereThatIsAskedFor) {
  EXPECT_FALSE(MustFind());
  wanted_.request.epsilon = 8;
  wanted_.replaces = true;
  EXPECT_FALSE(MustFind());
  EXPECT_EQ(InForce().epsilon, 8);
  EXPECT_EQ((**Open().Limit()).epsilon(), 8);
  wanted_.request.epsilon = 2;
  EXPECT_FALSE(MustFind());
  EXPECT_EQ((**Open().Limit()).epsilon(), 2);
  EXPECT_TRUE(MustFind()) << "the same one is not made twice";
  ASSERT_TRUE(Open().SetLimit(*EpsilonDelta::Create(3, 1e-5)).ok());
  wanted_.request.epsilon = 4;
  EXPECT_FALSE(Make().ok());
  EXPECT_EQ((**Open().Limit()).epsilon(), 3);
  EXPECT_EQ(InForce().epsilon, 2) << "a plan that is refused replaces nothing";
}

TEST_F(MakePlanTest, InterruptedPlan_IsCompleted) {
  for (const char* left : {"nothing", "an empty file", "tables", "a limit"}) {
    SCOPED_TRACE(left);
    std::filesystem::remove(folder_ / "l");
    const std::string what = left;
    if (what != "nothing") std::ofstream(folder_ / "l").close();
    if (what == "tables") Open();
    if (what == "a limit") {
      ASSERT_TRUE(Open().SetLimit(*EpsilonDelta::Create(4, 1e-5)).ok());
    }
    EXPECT_FALSE(MustFind());
    EXPECT_TRUE(MustFind());
    EXPECT_EQ(ComputeLeft(Open(), InForce())->steps, 36u);
  }
}

TEST_F(MakePlanTest, ARefusedPlanLeavesNothingOfItself) {
  ASSERT_TRUE(Open().SetLimit(*EpsilonDelta::Create(2, 1e-5)).ok());
  EXPECT_EQ(Make().status().code(), StatusCode::kPrivacyRefused);
  EXPECT_TRUE(Open().Plans()->empty());
}

// A plan that another process wrote since the ledger was read is not replaced.
TEST_F(MakePlanTest, WhatWasWrittenMeanwhile_IsNotReplaced) {
  EXPECT_FALSE(MustFind());
  Ledger ledger = Open();
  const uint64_t looked_at = *ledger.NewestRow();
  wanted_.request.epsilon = 8;
  wanted_.replaces = true;
  EXPECT_FALSE(MustFind()) << "the other process";
  const size_t rows = NumRows();
  const auto deployment = PlanDeployment(architecture_, wanted_.request);
  ASSERT_TRUE(deployment.ok()) << deployment.status().message();
  const Status late = WriteDeployment(ledger, *deployment, "late", looked_at);
  EXPECT_EQ(late.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(late.message().find("another process wrote meanwhile"), std::string::npos) << late.message();
  EXPECT_EQ(NumRows(), rows);
  EXPECT_TRUE(WriteDeployment(ledger, *deployment, "now", *ledger.NewestRow()).ok());
}

// Finding the noise takes so long that both look before either writes.
TEST_F(MakePlanTest, TwoCallsAtOnce_WriteOnePlan) {
  for (const bool same : {true, false}) {
    SCOPED_TRACE(same ? "the same wishes" : "other wishes");
    std::filesystem::remove(folder_ / "l");
    std::filesystem::remove(folder_ / "link");
    Open();
    std::filesystem::create_symlink(folder_ / "l", folder_ / "link");
    std::latch both(2);
    const auto call = [&](const char* name, double epsilon) {
      PlanToMake wanted = wanted_;
      wanted.request.epsilon = epsilon;
      Ledger ledger = *Ledger::Open(folder_ / name, {.dataset = "d", .record = privacy::RecordSpec::OfEvents({})});
      both.arrive_and_wait();
      return MakePlan(ledger, PlannedBase(architecture_, allow_seen_), wanted);
    };
    auto other = std::async(std::launch::async, call, "link", same ? 4 : 8);
    const auto one = call("l", 4), two = other.get();
    if (same) {
      ASSERT_TRUE(one.ok() && two.ok()) << one.status().message() << two.status().message();
      EXPECT_NE(one->made_before.has_value(), two->made_before.has_value());
    } else {
      ASSERT_NE(one.ok(), two.ok());
      const Status& second = one.ok() ? two.status() : one.status();
      EXPECT_NE(second.message().find("has another plan than was asked for"), std::string::npos) << second.message();
    }
    EXPECT_EQ((**Open().Limit()).epsilon(), one.ok() ? 4 : 8);
  }
}

// The ledger was deleted, or is on another disk today.
TEST_F(MakePlanTest, BesideWhatRunsTrainedNoPlanBeginsAnew) {
  const std::string candidate = wanted_.output + ".candidate";
  std::ofstream(candidate) << "a model";
  Refused("a new plan would forget what they spent");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "l"));
  std::filesystem::remove(candidate);
  EXPECT_FALSE(MustFind());
  std::ofstream(candidate) << "a model";
  EXPECT_TRUE(MustFind()) << "with its ledger nothing is wrong";
}

TEST_F(MakePlanTest, ADryRunSaysWhatAPlanWouldBeAndWritesNothing) {
  EXPECT_FALSE(MustFind());
  const size_t rows = NumRows();
  wanted_.dry_run = true;
  wanted_.request.epsilon = 1;
  const auto made = Make();
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->deployment.settings.epsilon, 1);
  EXPECT_EQ(NumRows(), rows);
}

}  // namespace
}  // namespace wisp::make_plan_test
