// A node on a fake server: what it answers, what it refuses, and faults of the network. fleet_node_crash_test.cc kills
// it.
#include "runtime/fleet/fleet_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "tests/unit/fleet/node_test_util.h"

namespace wisp::fleet::fleet_node_test {
namespace {

using flower::ConfigRecord;
using test::FakeSuperLink;
using test::FakeTransport;
using Fault = test::FakeTransport::Fault;

const std::vector<std::string> kAbsence = {"pull-messages", "pull-object", "pull-object", "confirm-message-received"};

class Node : public test::NodeTest {
 protected:
  // Expects that nothing of this request was sent or charged, and that nothing is kept.
  void ExpectAbsence(const Request& request, const char* reason) {
    const auto node = Open(transport_);
    MustWork(*node);
    const int charges = NumCharges();
    server_.calls.clear();
    said_.clear();
    Send(request);
    EXPECT_EQ(MustWork(*node).answers, 0u);
    std::vector<std::string> calls = kAbsence;
    calls.push_back("pull-messages");
    EXPECT_EQ(server_.calls, calls) << reason;
    EXPECT_TRUE(server_.Take().empty());
    EXPECT_EQ(NumCharges(), charges);
    EXPECT_EQ(NumFiles(), 0u);
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_TRUE(said_[0].starts_with("absent: ")) << said_[0];
    EXPECT_NE(said_[0].find(reason), std::string::npos) << said_[0];
  }
};

TEST_F(Node, RoundTakesEightCalls) {
  const auto node = Joined();
  Send(Ask(1));
  const FleetNode::Progress progress = MustWork(*node);
  EXPECT_EQ(progress.answers, 1u);
  EXPECT_EQ(progress.participations, 1u);
  EXPECT_EQ(server_.calls.size(), 9u);  // the last one finds no more requests
  const auto replies = server_.Take();
  ASSERT_EQ(replies.size(), 1u);
  const ConfigRecord& record = replies[0].record;
  EXPECT_EQ(*record.Text("plan", 64), ToHex(plan_.hash()));
  EXPECT_EQ(*record.Text("task", 64), "train");
  EXPECT_EQ(*record.Whole("round", 0, 99), 1);
  EXPECT_EQ(record.Bytes("nonce", 16)->size(), 16u);
  const std::string update(*record.Bytes("update", 1 << 20));
  EXPECT_EQ(update.size(), plan_.bytes_of_update());
  EXPECT_TRUE(update != std::string(update.size(), '\0'));
  EXPECT_EQ(record.size(), 5u) << "nothing else leaves the device";
  EXPECT_EQ(NumCharges(), 1);
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(Node, IdleNode_AsksOnceAndPausesWithJitter) {
  const auto node = Joined();
  std::set<double> pauses;
  double least = 1e9, most = 0;
  const auto waits = [&](double seconds) {
    pauses.insert(seconds);
    least = std::min(least, seconds);
    most = std::max(most, seconds);
    server_.now += seconds;
    return true;
  };
  ASSERT_TRUE(node->Work(
                      6000, [](const std::string&) {}, waits)
                  .ok());
  EXPECT_GE(least, 0);
  EXPECT_LE(most, 45);
  EXPECT_GT(most, 35);
  EXPECT_GT(pauses.size(), 100u);
  const auto heartbeats = std::count(server_.calls.begin(), server_.calls.end(), "send-node-heartbeat");
  EXPECT_GE(heartbeats, 3);
  EXPECT_LE(heartbeats, 4);
  EXPECT_LT(server_.calls.size(), 300u);
  const FleetNode::Progress progress = MustWork(*node);
  EXPECT_GE(progress.wait_seconds, 15);
  EXPECT_LE(progress.wait_seconds, 45);
}

TEST_F(Node, SecondDeviceOnTheLedgerIsRefused) {
  const auto node = Joined();
  const auto second = OpenDevice();
  EXPECT_EQ(second.status().code(), StatusCode::kIo);
  EXPECT_NE(second.status().message().find("another node of a fleet"), std::string::npos) << second.status().message();
}

TEST_F(Node, KeepsItsNumberForItsKeyAlone) {
  Start();
  server_.calls.clear();
  Start();
  EXPECT_EQ(server_.calls, (std::vector<std::string>{"send-node-heartbeat", "pull-messages"}));
  FakeTransport other(server_, "second");
  server_.calls.clear();
  ASSERT_TRUE(Work(*Open(other)).ok());
  EXPECT_EQ(server_.calls[0], "activate-node") << "the number of another key is not used";
}

TEST_F(Node, JoinsAnewWhenTheServerHasForgottenIt) {
  const auto node = Joined();
  server_.ForgetNodes();
  MustWork(*node);
  server_.Ask(kNode + 1, ToRecord(Ask(1)));
  server_.calls.clear();
  MustWork(*node);
  EXPECT_EQ(server_.calls.size(), said_.back().starts_with("absent") ? 5u : 9u) << "the role follows from the number";
}

TEST_F(Node, DifferentReasons_AreTheSameAbsence) {
  Request request = Ask(1);
  {
    SCOPED_TRACE("before anything was charged");
    Request other = request;
    other.task = "look";
    ExpectAbsence(other, "a task that no policy knows");
    other = Ask(1, "evaluate");
    ExpectAbsence(other, "the other role");
    other = request;
    other.round = 12;
    ExpectAbsence(other, "no such round");
    other = request;
    other.plan = "{}";
    ExpectAbsence(other, "the plan");
    other = request;
    FleetPlan foreign = plan_;
    foreign.base_hash ^= 1;
    other.plan = foreign.ToText();
    ExpectAbsence(other, "base");
    other = request;
    FleetPlan beyond = plan_;
    beyond.noise_multiplier *= 0.99;
    other.plan = beyond.ToText();
    ExpectAbsence(other, "noise_multiplier");
    other = request;
    other.plan = " " + request.plan;
    ExpectAbsence(other, "not written as");
    other = request;
    other.weights.pop_back();
    ExpectAbsence(other, "weights");
    other = request;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(other.weights.data() + 40, &nan, sizeof(nan));
    ExpectAbsence(other, "finite");
  }
  Send(request);
  EXPECT_EQ(Start().answers, 1u);
  EXPECT_EQ(server_.Take().size(), 1u);
  {
    SCOPED_TRACE("after a participation");
    ExpectAbsence(request, "took part in this block");
    ExpectAbsence(Ask(3), "took part in this block");
  }
  for (const int64_t round : {4, 8}) Send(Ask(round));
  EXPECT_EQ(Start().participations, 3u);
  EXPECT_EQ(server_.Take().size(), 2u);
  SCOPED_TRACE("when nothing is left");
  ExpectAbsence(Ask(9), "all participations of the policy are used");
  ExpectAbsence(request, "all participations of the policy are used");
}

TEST_F(Node, AnswersOnlyWhatTheOperatorSigned) {
  policy_.operator_key = test::kOperatorKey;
  Request request = Ask(1);
  std::vector<Request> changed(5, request);
  changed[0].signature.clear();
  changed[1].round = 2;
  changed[2].task = "keep";
  changed[3].weights = Weights(0.02f);
  changed[4].signature = test::FakeSignature(test::FakeKey("another"), TextToSign(request.view()));
  for (const Request& other : changed) ExpectAbsence(other, "signature");
  Send(request);
  EXPECT_EQ(Start().answers, 1u);
}

TEST_F(Node, MessageOfAnotherShape_IsAnAbsence) {
  const auto node = Joined();
  ConfigRecord record = ToRecord(Ask(1));
  server_.Ask(kNode, std::move(ConfigRecord().SetText("plan", "{}")));
  server_.Ask(kNode, std::move(ConfigRecord().SetWhole("plan", 5)));
  Request large = Ask(1);
  large.weights.resize(policy_.most_bytes_down + (1 << 17));
  Send(large);
  EXPECT_EQ(MustWork(*node).answers, 0u);
  EXPECT_EQ(said_.size(), 3u);
  EXPECT_EQ(NumCharges(), 0);
}

TEST_F(Node, LogThatCannotBeRead_SendsZerosAndIsCharged) {
  int charges = 0;
  for (const char* kind : {"empty", "missing", "damaged"}) {
    std::filesystem::remove(log_path_);
    if (kind == std::string("empty")) WriteLog(0);
    if (kind == std::string("damaged")) std::ofstream(log_path_) << "SQLite format 3, or so it says";
    Send(Ask(4 * charges));
    EXPECT_EQ(Start().answers, 1u) << kind;
    const auto replies = server_.Take();
    ASSERT_EQ(replies.size(), 1u) << kind;
    EXPECT_TRUE(*replies[0].record.Bytes("update", 1 << 20) == std::string(plan_.bytes_of_update(), '\0')) << kind;
    EXPECT_EQ(NumCharges(), ++charges) << kind;
  }
}

TEST_F(Node, Evaluates) {
  plan_ = Plan(Role::kEvaluates);
  policy_ = MakePolicy(plan_, policy_.server);
  ExpectAbsence(Ask(1), "the other role");
  Send(Ask(1, "evaluate"));
  EXPECT_EQ(Start().answers, 1u);
  const auto replies = server_.Take();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].record.Bytes("update", 99)->size(), 8u);
  EXPECT_EQ(NumCharges(), 1);
  ExpectAbsence(Ask(3, "evaluate"), "took part in this block");
  policy_.evaluates = false;
  ExpectAbsence(Ask(5, "evaluate"), "no evaluations");
}

TEST_F(Node, KeepsAModelThatIsNotWorse) {
  const auto node = Joined();
  Send(AskToKeepWorse(2));
  MustWork(*node);
  EXPECT_EQ(said_.back(), "the model of round 2 was not kept: lists of this device would be worse");
  EXPECT_FALSE(std::filesystem::exists(output_path_));
  server_.calls.clear();
  Send(Ask(1, "keep"));
  MustWork(*node);
  EXPECT_TRUE(std::filesystem::exists(output_path_)) << said_.back();
  const ModelFile kept = *ModelFile::Open(output_path_);
  EXPECT_EQ(kept.provenance().back().privacy_unit, "device");
  EXPECT_NE(kept.provenance().back().description.find("epsilon 100 at delta 1e-05 for each device if the server"),
            std::string::npos);
  EXPECT_EQ(NumCharges(), 0);
  EXPECT_TRUE(server_.Take().empty());
  EXPECT_EQ(server_.calls.size(), kAbsence.size() + 1);
}

// ---- Faults of the network --------------------------------------------------------------------------------------

TEST_F(Node, RequestIsKeptUntilItsObjectsArrive) {
  const auto node = Joined();
  const std::string id = server_.Ask(kNode, ToRecord(Ask(1)));
  const std::string record = server_.record_of(id);
  server_.Hide(record);
  EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  EXPECT_EQ(NumFiles(), 1u);
  server_.Hide(record);
  EXPECT_EQ(MustWork(*node).answers, 1u);
  EXPECT_EQ(NumFiles(), 0u);
}

TEST_F(Node, RequestWhoseTimeIsOver_IsAnAbsence) {
  const auto node = Joined();
  const std::string id = server_.Ask(kNode, ToRecord(Ask(1)), 600);
  server_.Hide(server_.record_of(id));
  EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  server_.now += 601;
  EXPECT_EQ(MustWork(*node).answers, 0u);
  EXPECT_EQ(said_.back(), "absent: the time for a request is over");
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(NumCharges(), 0);
}

// Each call fails once, in each way. The next call of Work goes on.
TEST_F(Node, RoundGoesOnAfterEachFault) {
  int round = 0;
  for (const Fault kind : {Fault::kNoConnection, Fault::kCut, Fault::kBusy}) {
    for (int at = 0; at < 9; ++at, ++round) {
      std::filesystem::remove(ledger_path_);
      const auto node = Joined();
      Send(Ask(1));
      int call = 0;
      transport_.fault = [&](std::string_view) { return call++ == at ? kind : Fault::kNone; };
      EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo) << at;
      EXPECT_TRUE(Work(*node).ok()) << at;
      const bool lost = kind == Fault::kCut && at == 0;
      EXPECT_EQ(server_.Take().size(), lost ? 0u : 1u) << at;
      EXPECT_EQ(NumCharges(), lost ? 0 : 1) << at;
      EXPECT_EQ(NumFiles(), 0u) << at;
      transport_.fault = {};
    }
  }
}

TEST_F(Node, LateReply_StaysChargedOnlyIfItWasBegun) {
  const auto node = Joined();
  // The confirmation fails until the time is over: nothing was charged, and nothing is.
  Send(Ask(1));
  transport_.fault = [&](std::string_view route) {
    return route == "confirm-message-received" ? Fault::kNoConnection : Fault::kNone;
  };
  EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  EXPECT_EQ(NumFiles(), 2u);
  server_.now += 3601;
  transport_.fault = {};
  MustWork(*node);
  EXPECT_EQ(said_.back(), "absent: the time for the answer to round 1 is over; it was not charged");
  EXPECT_EQ(NumCharges(), 0);
  EXPECT_EQ(NumFiles(), 0u);
  // Sending fails: it was charged before.
  Send(Ask(1));
  transport_.fault = [&](std::string_view route) {
    return route == "push-object" ? Fault::kNoConnection : Fault::kNone;
  };
  EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  EXPECT_EQ(NumCharges(), 1);
  server_.now += 3601;
  transport_.fault = {};
  EXPECT_EQ(MustWork(*node).answers, 0u);
  EXPECT_EQ(said_.back(), "the answer to round 1 came too late; it stays charged");
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(NumCharges(), 1);
}

TEST_F(Node, ReplyOfAForgottenNodeIsDropped) {
  const auto node = Joined();
  Send(Ask(1));
  transport_.fault = [&](std::string_view route) {
    return route == "push-messages" ? Fault::kNoConnection : Fault::kNone;
  };
  EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  transport_.fault = {};
  server_.ForgetNodes();
  EXPECT_EQ(MustWork(*node).answers, 0u);
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(NumCharges(), 1);
  server_.Ask(kNode + 1, ToRecord(Ask(1)));
  MustWork(*node);
  EXPECT_EQ(NumCharges(), 1) << "another number is no way to a second participation in a block";
}

TEST_F(Node, ReplyOfARunThatIsOverIsDropped) {
  const auto node = Joined();
  Send(Ask(1));
  transport_.fault = [&](std::string_view route) {
    if (route == "push-messages") server_.run_over = true;
    return Fault::kNone;
  };
  EXPECT_EQ(MustWork(*node).answers, 0u);
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(NumCharges(), 1);
}

TEST_F(Node, DamagedFilesAreRemoved) {
  Start();
  for (const std::string& path : {reply_path_, reply_path_ + ".request", reply_path_ + ".node"}) {
    for (const char* text : {"", "x", "wisp-fleet-reply 1 ", "wisp-fleet-request 1 0\n\n", "wisp-fleet-node 1 7\n"}) {
      std::ofstream(path) << text;
      if (path.ends_with(".node")) server_.now += 3601;  // without its number it has to wait until it is offline
      EXPECT_EQ(Start().answers, 0u) << path << text;
      EXPECT_EQ(NumFiles(), 0u);
    }
  }
  EXPECT_EQ(NumCharges(), 0);
}

TEST_F(Node, StoredReplyUnderAnotherPolicyIsNotSent) {
  {
    const auto node = Joined();
    Send(Ask(1));
    transport_.fault = [&](std::string_view route) {
      return route == "confirm-message-received" ? Fault::kNoConnection : Fault::kNone;
    };
    EXPECT_EQ(Work(*node).status().code(), StatusCode::kIo);
  }
  transport_.fault = {};
  policy_.noise_multiplier *= 2;
  EXPECT_EQ(Start().answers, 0u);
  EXPECT_TRUE(server_.Take().empty());
  EXPECT_EQ(NumCharges(), 0);
}

TEST_F(Node, ServerThatNeverStopsAskingDoesNotHoldTheDevice) {
  const auto node = Joined();
  for (int i = 0; i < 150; ++i) Send(Ask(1, "evaluate"));
  MustWork(*node);
  EXPECT_EQ(std::count(server_.calls.begin(), server_.calls.end(), "pull-messages"), 100);
}

}  // namespace
}  // namespace wisp::fleet::fleet_node_test
