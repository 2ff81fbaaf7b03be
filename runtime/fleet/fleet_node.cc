#include "runtime/fleet/fleet_node.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/hash.h"
#include "runtime/core/hex.h"

namespace wisp::fleet {
namespace {

using flower::ConfigRecord;
using flower::Incoming;
using flower::Reply;

// The node counts as online for twice this time after each call that says so.
constexpr double kHeartbeatSeconds = 900;
// Between two questions for work while nothing is there: a question costs the server 10 ms.
constexpr double kAskSeconds = 10;
constexpr size_t kNonceBytes = 16, kMostSignatureBytes = 256, kHashDigits = 64;
// Bytes of a request beside its weights: plan, signature, names.
constexpr size_t kMostOtherBytes = 1 << 16;

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// The file of an unfinished reply: a line with the participation and a hash, then the reply.
std::string ToFile(const FleetAnswer& answer, const Reply& reply) {
  const Participation& p = answer.participation;
  const std::string bytes = reply.ToBytes();
  return "wisp-fleet-reply 1 " + p.plan + " " + std::to_string(p.block) + " " + std::to_string(p.round) + " " +
         ToHex(Hash64(AsBytes(bytes))) + "\n" + bytes;
}

struct Unfinished {
  FleetAnswer answer;
  Reply reply;
};
Result<Unfinished> FromFile(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const size_t end = all.find('\n');
  if (end == std::string_view::npos) return InvalidData(path, ": is no unfinished reply of a fleet");
  const std::string_view bytes = all.substr(end + 1);
  WISP_ASSIGN_OR_RETURN(Reply reply, Reply::Parse(bytes));
  FleetAnswer answer;
  const std::optional<Participation> p =
      Participation::Parse(all.substr(0, end).substr(std::min(end, std::string_view("wisp-fleet-reply 1 ").size())));
  if (!p) return InvalidData(path, ": is no unfinished reply of a fleet");
  answer.participation = *p;
  if (all != ToFile(answer, reply)) return InvalidData(path, ": the unfinished reply of a fleet is damaged");
  return Unfinished{std::move(answer), std::move(reply)};
}

Status Store(const std::string& path, const std::string& bytes) {
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.Write(AsBytes(bytes)));
  return file.Commit();
}

std::string MakeNonce() {
  std::string nonce(kNonceBytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

ConfigRecord ToRecord(const FleetAnswer& answer) {
  ConfigRecord record;
  record.SetText("plan", answer.plan_hash)
      .SetText("task", GetName(answer.kind))
      .SetWhole("round", answer.participation.round)
      .SetBytes("nonce", MakeNonce())
      .SetBytes("update", answer.update);
  return record;
}

}  // namespace

std::unique_ptr<FleetNode> FleetNode::Open(std::unique_ptr<FleetDevice> device, Transport& transport,
                                           std::string reply_path) {
  return std::unique_ptr<FleetNode>(new FleetNode(std::move(device), transport, std::move(reply_path)));
}

Status FleetNode::Join() {
  if (!node_id_) {
    WISP_ASSIGN_OR_RETURN(node_id_, connection_.Join(kHeartbeatSeconds));
    heard_ = connection_.Now();
  }
  if (connection_.Now() - heard_ < kHeartbeatSeconds) return OkStatus();
  WISP_RETURN_IF_ERROR(connection_.Heartbeat());
  heard_ = connection_.Now();
  return OkStatus();
}

Status FleetNode::Finish(const Say& say) {
  if (!Exists(path_)) return OkStatus();
  Result<Unfinished> stored = FromFile(path_);
  if (!stored.ok()) {
    say(stored.status().message() + "; it was removed");
    return RemoveFile(path_);
  }
  WISP_RETURN_IF_ERROR(device_->Charge(stored->answer));
  const Result<flower::Pushed> pushed = connection_.Push(stored->reply);
  if (!pushed.ok() && pushed.status().code() != StatusCode::kCancelled) return pushed.status();
  if (pushed.ok() && *pushed == flower::Pushed::kStored) {
    ++answers_;
    say("the server has the answer to round " + std::to_string(stored->answer.participation.round));
  } else {
    say("the answer to round " + std::to_string(stored->answer.participation.round) +
        " came too late; it stays charged");
  }
  return RemoveFile(path_);
}

Result<bool> FleetNode::Ask(const Say& say) {
  Result<std::optional<Incoming>> pulled = connection_.Pull();
  if (!pulled.ok() && pulled.status().code() == StatusCode::kUnsupported) {
    say("absent: " + pulled.status().message());
    return true;
  }
  WISP_RETURN_IF_ERROR(pulled.status());
  if (!*pulled) return false;
  const Incoming& request = **pulled;
  const size_t most = device_->policy().most_bytes_down + kMostOtherBytes;
  const Result<ConfigRecord> record = connection_.Fetch(request, most);
  if (!record.ok()) {
    if (record.status().code() == StatusCode::kIo) return record.status();
    say("absent: " + record.status().message());
    return true;
  }
  WISP_RETURN_IF_ERROR(connection_.Confirm(request));
  const auto plan = record->Text("plan", FleetPlan::kMostTextBytes), task = record->Text("task", 32);
  const auto weights = record->Bytes("weights", most), signature = record->Bytes("signature", kMostSignatureBytes);
  const auto round = record->Whole("round", 0, std::numeric_limits<uint32_t>::max());
  for (const Status& read : {plan.status(), task.status(), weights.status(), signature.status(), round.status()}) {
    if (read.ok()) continue;
    say("absent: " + read.message());
    return true;
  }
  WISP_ASSIGN_OR_RETURN(
      const FleetDevice::Taken taken,
      device_->Take({.plan = *plan, .task = *task, .round = *round, .weights = *weights, .signature = *signature},
                    *node_id_));
  say(taken.what);
  if (!taken.answer) return true;
  const Result<Reply> reply = Reply::Make(request, ToRecord(*taken.answer), connection_.Now());
  if (!reply.ok()) {
    say("absent: " + reply.status().message());
    return true;
  }
  WISP_RETURN_IF_ERROR(Store(path_, ToFile(*taken.answer, *reply)));
  WISP_RETURN_IF_ERROR(Finish(say));
  return true;
}

Result<FleetNode::Progress> FleetNode::Work(double seconds, const Say& say, const std::function<bool(double)>& wait) {
  answers_ = 0;
  const double end = transport_.Now() + seconds;
  WISP_RETURN_IF_ERROR(Finish(say));
  while (true) {
    WISP_RETURN_IF_ERROR(Join());
    WISP_ASSIGN_OR_RETURN(const bool asked, Ask(say));
    if (asked) continue;
    const double left = end - transport_.Now();
    if (left <= 0 || !wait || !wait(std::min(left, kAskSeconds))) break;
  }
  WISP_ASSIGN_OR_RETURN(const std::vector<Participation> all, device_->ListParticipations());
  return Progress{
      .answers = answers_, .participations = static_cast<uint32_t>(all.size()), .wait_seconds = kAskSeconds};
}

}  // namespace wisp::fleet
