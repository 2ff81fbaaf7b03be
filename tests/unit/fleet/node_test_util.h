// A device of a fleet with everything on disk: base, log, policy and ledger. And the plan and the requests of a server.
#ifndef WISP_TESTS_UNIT_FLEET_NODE_TEST_UTIL_H_
#define WISP_TESTS_UNIT_FLEET_NODE_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "runtime/fleet/fleet_budget.h"
#include "runtime/fleet/fleet_device.h"
#include "runtime/fleet/fleet_node.h"
#include "runtime/fleet/round_model.h"
#include "runtime/model/catalogue.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/fleet/fake_superlink.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::fleet::test {

// The operator's key, and what it signs.
inline const std::string kOperatorKey = FakeKey("operator");

class DeviceTest : public wisp::test::RingTraining {
 protected:
  static constexpr uint64_t kNode = 1001;  // what FakeSuperLink gives first

  DeviceTest() : RingTraining(3) {
    std::vector<std::string> keys;
    for (uint32_t i = 0; i < kSmall.num_items; ++i) keys.push_back("item-" + std::to_string(i));
    const Status written = WriteModel(base_path_, {.architecture = kSmall,
                                                   .weights = start_,
                                                   .item_keys = keys,
                                                   .provenance = {{.description = "test", .dataset = "a public log"}},
                                                   .created_by = "test"});
    EXPECT_TRUE(written.ok()) << written.message();
    base_.emplace(*ModelFile::Open(base_path_));
    WriteLog(12);
    plan_ = Plan();
    policy_ = MakePolicy(plan_, "http://localhost:9092");
  }

  // Three people on the device, each with so many events.
  void WriteLog(int events) const {
    std::vector<data::Event> all;
    for (int event = 0; event < events; ++event) {
      for (int user = 0; user < 3; ++user) {
        all.push_back({.user = "u" + std::to_string(user),
                       .item = "item-" + std::to_string((user * 7 + event) % 30),
                       .time = 1700000000 + event});
      }
    }
    Result<data::EventLog> log = data::EventLog::Open(log_path_);
    const Status written = log.ok() ? log->AppendAll(all) : log.status();
    EXPECT_TRUE(written.ok()) << written.message();
  }

  // A plan of three blocks of four rounds, in which kNode has the role. An evaluation follows each round.
  FleetPlan Plan(Role role = Role::kTrains) const {
    FleetPlan plan{.name = "ring",
                   .base_hash = base_->content_hash(),
                   .devices = 100,
                   .rounds = 12,
                   .takes_part = 3,
                   .evaluators = 0.5,
                   .evaluations = 12,
                   .weight_bits = 32,
                   .epsilon = 100,
                   .optimizer = {.learning_rate = 0.05f}};
    plan.num_weights = *RoundModel::CountWeights(*base_, plan);
    static const double noise = MakePlan(plan)->noise_multiplier;  // takes half a second
    plan.noise_multiplier = noise;
    for (int i = 0;; ++i) {
      plan.name = "ring-" + std::to_string(i);
      if (IsEvaluator(plan, plan.hash(), kNode) == (role == Role::kEvaluates)) return plan;
    }
  }

  // The weights of a round: those of the base, changed a little.
  std::string Weights(float change = 0.01f) const {
    const RoundModel model = *RoundModel::Create(*base_, plan_);
    std::vector<float> held(model.start().begin(), model.start().end());
    for (float& weight : held) weight += change;
    return *model.Encode(held);
  }

  struct Request {
    std::string plan, task = "train";
    int64_t round = 0;
    std::string weights, signature;

    RoundRequest view() const {
      return {.plan = plan, .task = task, .round = round, .weights = weights, .signature = signature};
    }
  };
  Request Ask(int64_t round, const std::string& task = "train") const {
    Request request{.plan = plan_.ToText(), .task = task, .round = round, .weights = Weights()};
    request.signature = FakeSignature(kOperatorKey, TextToSign(request.view()));
    return request;
  }
  static flower::ConfigRecord ToRecord(const Request& r) {
    flower::ConfigRecord record;
    record.SetText("plan", r.plan).SetText("task", r.task).SetWhole("round", r.round);
    record.SetBytes("weights", r.weights).SetBytes("signature", r.signature);
    return record;
  }

  static Status Verify(const std::string& key, std::string_view text, std::string_view signature) {
    return signature == FakeSignature(key, text) ? OkStatus() : InvalidData("the signature is not the operator's");
  }
  // A request to keep a model whose lists are worse than the base's for this device's newest events: the first of some
  // random ones.
  Request AskToKeepWorse(int64_t round) const {
    const auto index = data::ItemIndex::Make(base_path_, GetItemKeys(*base_));
    const auto log = data::ReadLog(log_path_, {.known_items = &*index, .private_run = true});
    const RoundModel model = *RoundModel::Create(*base_, plan_);
    RoundWorker worker(policy_, *base_, Verify);
    std::mt19937 random(1);
    Request request = Ask(round, "keep");
    do {
      std::vector<float> held(model.start().size());
      for (float& weight : held) weight = static_cast<float>(random() % 2001) / 1000 - 1;
      request.weights = *model.Encode(held);
      request.signature = FakeSignature(kOperatorKey, TextToSign(request.view()));
      EXPECT_EQ(worker.Accept(request.view(), kNode, {}).why_absent, "");
    } while (worker.FindGain(log->sequences) >= 0);
    return request;
  }

  Result<std::unique_ptr<FleetDevice>> OpenDevice() const {
    return FleetDevice::Open({.policy = policy_,
                              .base = &*base_,
                              .base_path = base_path_,
                              .log_path = log_path_,
                              .ledger_path = ledger_path_,
                              .output_path = output_path_,
                              .verify = Verify});
  }

  // The charges in the ledger, read beside whoever has it open. -1 if it is not there.
  int NumCharges() const {
    sqlite3* handle = nullptr;
    sqlite3_stmt* count = nullptr;
    int charges = -1;
    if (sqlite3_open_v2(ledger_path_.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
      sqlite3_busy_timeout(handle, 5000);
      if (sqlite3_prepare_v2(handle, "SELECT count(*) FROM entries", -1, &count, nullptr) == SQLITE_OK &&
          sqlite3_step(count) == SQLITE_ROW) {
        charges = sqlite3_column_int(count, 0);
      }
    }
    sqlite3_finalize(count);
    sqlite3_close(handle);
    return charges;
  }

  const std::string base_path_ = folder_ / "base.wisp", log_path_ = folder_ / "log.db",
                    output_path_ = folder_ / "fleet.wisp", reply_path_ = folder_ / "fleet.reply";
  std::string ledger_path_ = folder_ / "fleet.ledger";
  std::optional<ModelFile> base_;
  FleetPlan plan_;
  FleetPolicy policy_;
};

// A node of such a device on a fake server.
class NodeTest : public DeviceTest {
 protected:
  std::unique_ptr<FleetNode> Open(Transport& transport) {
    auto device = OpenDevice();
    EXPECT_TRUE(device.ok()) << device.status().message();
    return device.ok() ? FleetNode::Open(*std::move(device), transport, reply_path_) : nullptr;
  }
  Result<FleetNode::Progress> Work(FleetNode& node) {
    return node.Work(0, [this](const std::string& sentence) { said_.push_back(sentence); });
  }
  FleetNode::Progress MustWork(FleetNode& node) {
    const auto progress = Work(node);
    EXPECT_TRUE(progress.ok()) << progress.status().message();
    return progress.ok() ? *progress : FleetNode::Progress{};
  }
  // Opens a node and works, as an app that was just started.
  FleetNode::Progress Start() {
    const auto node = Open(transport_);
    return node ? MustWork(*node) : FleetNode::Progress{};
  }
  // A new node, which has joined.
  std::unique_ptr<FleetNode> Joined() {
    auto node = Open(transport_);
    MustWork(*node);
    server_.calls.clear();
    said_.clear();
    return node;
  }
  void Send(const Request& request, double ttl = 3600) { server_.Ask(kNode, ToRecord(request), ttl); }
  size_t NumFiles() const {
    return static_cast<size_t>(std::filesystem::exists(reply_path_)) +
           static_cast<size_t>(std::filesystem::exists(reply_path_ + ".request"));
  }

  FakeSuperLink server_;
  FakeTransport transport_{server_, "first"};
  std::vector<std::string> said_;
};

}  // namespace wisp::fleet::test

#endif  // WISP_TESTS_UNIT_FLEET_NODE_TEST_UTIL_H_
