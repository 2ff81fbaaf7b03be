// The decisions of a device about requests, without a node: a worker has neither ledger nor files.
#include "runtime/fleet/round_worker.h"

#include <gtest/gtest.h>

#include "runtime/data/readers.h"
#include "runtime/fleet/fleet_gain.h"
#include "runtime/model/catalogue.h"
#include "tests/unit/fleet/node_test_util.h"

namespace wisp::fleet::round_worker_test {
namespace {

class Worker : public test::DeviceTest {
 protected:
  RoundWorker Make() const { return RoundWorker(policy_, *base_, Verify); }
  data::Sequences ReadLog() const {
    return data::ReadLog(log_path_, {.known_items = &index_, .private_run = true})->sequences;
  }
  // Why the worker stays away; empty if it takes part.
  static std::string Why(RoundWorker& worker, const Request& request, std::span<const Participation> before = {}) {
    return worker.Accept(request.view(), kNode, before).why_absent;
  }

  const data::ItemIndex index_ = *data::ItemIndex::Make(base_path_, GetItemKeys(*base_));
};

TEST(Participation, ReadsBackFromItsText) {
  const Participation p{.plan = "0123456789abcdef", .block = 3, .round = 17};
  EXPECT_EQ(p.ToText(), "0123456789abcdef 3 17");
  EXPECT_EQ(Participation::Parse(p.ToText()), p);
  EXPECT_EQ(Participation::Parse(p.ToText() + " more"), p);
  for (const char* text :
       {"", "0123456789abcdef", "0123456789abcdef 3", "0123456789abcdef 3 ", "0123456789abcdef  3 17",
        "0123456789abcdef 3 -1", "0123456789abcdef 03 17", "0123456789abcdef 3 99999999999", "0123456789abcdef 3,17"}) {
    EXPECT_FALSE(Participation::Parse(text)) << text;
  }
}

TEST_F(Worker, SignedText_NamesTaskRoundPlanAndWeights) {
  const Request request = Ask(1);
  const std::string text = TextToSign(request.view());
  EXPECT_EQ(text, "wisp fleet\ntrain\n1\n" + ToHex(plan_.hash()) + "\n" + ToHex(Sha256(request.weights)));
}

TEST_F(Worker, EqualRequests_GiveEqualBitsInEveryWorker) {
  const Request request = Ask(1);
  const data::Sequences log = ReadLog();
  std::vector<std::string> updates;
  for (int i = 0; i < 2; ++i) {
    RoundWorker worker = Make();
    const RoundWorker::Task task = worker.Accept(request.view(), kNode, {});
    ASSERT_EQ(task.why_absent, "");
    updates.push_back(worker.Compute(task, kNode, log)->update);
    updates.push_back(worker.Compute(task, kNode, log)->update);
  }
  EXPECT_TRUE(updates[0] == updates[1] && updates[0] == updates[2] && updates[0] == updates[3]);
  EXPECT_EQ(updates[0].size(), plan_.bytes_of_update());
}

TEST_F(Worker, OneParticipationInABlock_OfThisPlanAlone) {
  RoundWorker worker = Make();
  const std::string plan = ToHex(plan_.hash()).substr(0, 16);
  const Participation in_block{plan, 0, 3}, in_another{plan, 1, 5}, of_another{"0000000000000000", 0, 1};
  EXPECT_NE(Why(worker, Ask(1), {&in_block, 1}), "");
  EXPECT_EQ(Why(worker, Ask(1), {&in_another, 1}), "");
  EXPECT_EQ(Why(worker, Ask(1), {&of_another, 1}), "");
  const std::vector<Participation> all(policy_.takes_part, of_another);
  EXPECT_EQ(Why(worker, Ask(1), all), "all participations of the policy are used");
  EXPECT_EQ(Why(worker, Ask(1, "keep"), all), "") << "keeping a model tells nothing";
}

TEST_F(Worker, AbsencesDoNotDependOnTheLog) {
  std::filesystem::remove(log_path_);
  RoundWorker worker = Make();
  const RoundWorker::Task task = worker.Accept(Ask(2).view(), kNode, {});
  EXPECT_EQ(task.why_absent, "");
  EXPECT_TRUE(worker.Compute(task, kNode, {})->update == std::string(plan_.bytes_of_update(), '\0'));
}

TEST_F(Worker, RefusedWeights_LeaveThoseBefore) {
  RoundWorker worker = Make();
  ASSERT_EQ(Why(worker, Ask(1)), "");
  const std::vector<float> held(worker.held().begin(), worker.held().end());
  Request bad = Ask(1);
  bad.weights = Weights(0.5f);
  bad.weights.pop_back();
  EXPECT_NE(Why(worker, bad), "");
  EXPECT_TRUE(std::equal(held.begin(), held.end(), worker.held().begin(), worker.held().end()));
  EXPECT_EQ(Why(worker, Ask(1)), "");
  EXPECT_TRUE(std::equal(held.begin(), held.end(), worker.held().begin(), worker.held().end()));
}

TEST_F(Worker, ChangesItsPlan) {
  RoundWorker worker = Make();
  ASSERT_EQ(Why(worker, Ask(1)), "");
  const FleetPlan first = plan_;
  plan_.name = "another";
  while (IsEvaluator(plan_, plan_.hash(), kNode)) plan_.name += "x";
  const RoundWorker::Task task = worker.Accept(Ask(1).view(), kNode, {});
  EXPECT_EQ(task.why_absent, "");
  EXPECT_EQ(task.participation.plan, ToHex(plan_.hash()).substr(0, 16));
  plan_ = first;
  EXPECT_EQ(worker.Accept(Ask(5).view(), kNode, {}).participation,
            (Participation{ToHex(first.hash()).substr(0, 16), 1, 5}));
}

TEST_F(Worker, EvaluationIsOfTheBlockOfTheRoundBefore) {
  plan_ = Plan(Role::kEvaluates);
  policy_ = MakePolicy(plan_, policy_.server);
  RoundWorker worker = Make();
  EXPECT_NE(Why(worker, Ask(0, "evaluate")), "") << "there is nothing to evaluate before the first round";
  for (const int64_t round : {1, 4, 5, 12}) {
    const RoundWorker::Task task = worker.Accept(Ask(round, "evaluate").view(), kNode, {});
    EXPECT_EQ(task.why_absent, "") << round;
    EXPECT_EQ(task.participation.block, static_cast<uint32_t>((round - 1) / 4)) << round;
    const auto gain = DeviceGain::Parse(worker.Compute(task, kNode, ReadLog())->update);
    EXPECT_TRUE(gain) << "the server takes it";
  }
  EXPECT_NE(Why(worker, Ask(13, "evaluate")), "");
}

TEST_F(Worker, KeyInThePolicyNeedsSomebodyWhoChecksIt) {
  policy_.operator_key = test::kOperatorKey;
  RoundWorker worker(policy_, *base_);
  EXPECT_NE(Why(worker, Ask(1)), "");
}

}  // namespace
}  // namespace wisp::fleet::round_worker_test
