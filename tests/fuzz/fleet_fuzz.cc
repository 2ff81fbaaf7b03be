// Answers of a fleet's server, plans, policies, and files of requests and replies: any bytes. A value that is read can
// be written and read again; everything else is a sentence.
// Needs FLEET.
#include <optional>
#include <string>

#include "runtime/fleet/flat_json.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/fleet/fleet_policy.h"
#include "runtime/fleet/flower/config_record.h"
#include "runtime/fleet/flower/connection.h"
#include "runtime/fleet/flower/messages.h"
#include "runtime/fleet/flower/objects.h"
#include "tests/fuzz/input.h"

namespace {

using namespace wisp;
using namespace wisp::fleet;
using namespace wisp::fleet::flower;

constexpr int kMostRounds = 16;

bool Held(const Status& status) {
  if (!status.ok()) fuzz::RequireSentence(status.message());
  return status.ok();
}

// A server that answers with pieces of the input.
class Answering final : public Transport {
 public:
  explicit Answering(fuzz::Input& input) : input_(input) {}
  Result<HttpReply> Post(const std::string&, std::span<const HttpHeader>, std::string_view, size_t) override {
    constexpr int kStatuses[] = {200, 200, 200, 200, 403, 412, 401, 503};
    if (input_.empty()) return IoError("no more input");
    const uint8_t how = input_.Byte();
    const double time = how & 8 ? input_.Number<double>() : 0;
    return HttpReply{kStatuses[how % 8], time, std::string(input_.Piece(input_.Number<uint16_t>()))};
  }
  Result<std::string> Sign(std::string_view message) override { return std::string(message); }
  const std::string& public_key_pem() const override { return key_; }
  Status Verify(const std::string&, std::string_view, std::string_view) override { return OkStatus(); }
  double Now() const override { return 1800000000; }

 private:
  fuzz::Input& input_;
  std::string key_ = "key";
};

void ReadRequest(std::string_view bytes) {
  const auto request = Incoming::FromAnswer(bytes);
  if (!Held(request.status()) || !*request) return;
  const auto again = Incoming::Parse((*request)->ToBytes());
  fuzz::Require(again.ok() && again->metadata == (*request)->metadata && again->record_id == (*request)->record_id,
                "a request that is kept reads back");
  const auto reply = Reply::Make(**request, ConfigRecord().SetWhole("round", 1), (*request)->metadata.created_at);
  if (!Held(reply.status())) return;
  const auto kept = Reply::Parse(reply->ToBytes());
  fuzz::Require(kept.ok() && kept->PushRequest() == reply->PushRequest(), "a reply that is kept reads back");
}

void ReadReply(std::string_view bytes) {
  const auto reply = Reply::Parse(bytes);
  if (Held(reply.status())) fuzz::Require(reply->ToBytes() == bytes, "a file of a reply has one form");
}

void ReadRecord(std::string_view bytes) {
  const auto record = ConfigRecord::Decode(bytes);
  if (!Held(record.status())) return;
  const auto again = ConfigRecord::Decode(record->Encode());
  fuzz::Require(again.ok() && again->Encode() == record->Encode(), "a record reads back");
}

void ReadJson(std::string_view bytes) {
  Result<FlatJson> json = FlatJson::Parse(bytes, "plan.json", 4096);
  if (!Held(json.status())) return;
  const std::vector<FlatJson::Entry> entries = json->entries();
  for (const FlatJson::Entry& entry : entries) {
    Held(json->Whole(entry.key, 1, 9).status());
    Held(json->Number(entry.key, 0, 1).status());
    Held(json->Text(entry.key, 3).status());
  }
  fuzz::Require(Held(json->NoOtherKeys()), "all keys were asked for");
}

void ReadPlan(std::string_view bytes) {
  const auto plan = FleetPlan::FromText(bytes, "plan.json");
  if (Held(plan.status())) {
    const auto again = FleetPlan::FromText(plan->ToText(), "plan.json");
    fuzz::Require(again.ok() && *again == *plan, "a plan reads back");
  }
  const auto policy = FleetPolicy::FromText(bytes, "policy.json");
  if (!Held(policy.status())) return;
  const auto again = FleetPolicy::FromText(policy->ToText(), "policy.json");
  fuzz::Require(again.ok() && again->ToText() == policy->ToText(), "a policy reads back");
  if (plan.ok()) Held(policy->Allows(*plan));
}

void Call(fuzz::Input& input) {
  Answering server(input);
  Connection connection(server);
  if (!Held(connection.Join(30, input.Byte() % 2).status())) return;
  for (int i = 0; i < kMostRounds && !input.empty(); ++i) {
    const auto request = connection.Pull();
    if (!Held(request.status()) || !*request) continue;
    const auto record = connection.Fetch(**request, 4096);
    Held(record.status());
    Held(connection.Confirm(**request));
    const auto reply = Reply::Make(**request, ConfigRecord().SetWhole("round", 1), connection.Now());
    if (Held(reply.status())) Held(connection.Push(*reply).status());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  switch (input.Byte() % 7) {
    case 0:
      ReadRequest(input.Rest());
      break;
    case 1:
      ReadReply(input.Rest());
      break;
    case 2:
      ReadRecord(input.Rest());
      break;
    case 3:
      ReadJson(input.Rest());
      break;
    case 4: {
      // An object, with whatever hash it has.
      const std::string object(input.Rest());
      Held(ReadObject(object, ObjectId(object), "ConfigRecord", "").status());
      Held(CheckRecordDict(object, std::string(64, 'a')));
      break;
    }
    case 5:
      Call(input);
      break;
    case 6:
      ReadPlan(input.Rest());
      break;
  }
  return 0;
}
