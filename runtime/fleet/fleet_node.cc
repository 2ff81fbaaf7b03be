#include "runtime/fleet/fleet_node.h"

#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/hash.h"
#include "runtime/core/hex.h"
#include "runtime/core/platform.h"

namespace wisp::fleet {
namespace {

using flower::ConfigRecord;
using flower::Incoming;
using flower::Reply;

// The node counts as online for twice this time after each heartbeat. The server drops the reply of a node that went
// offline before the reply was collected, so this is the longest that Flower allows, and a node never leaves by itself.
constexpr double kHeartbeatSeconds = 1800;
constexpr double kAskSeconds = 30;
constexpr size_t kNonceBytes = 16, kMostSignatureBytes = 256;
// Bytes of a request beside its weights: plan, signature, names.
constexpr size_t kMostOtherBytes = 1 << 16;
// A server that always has another request does not hold the device in one call for ever.
constexpr uint32_t kMostRequests = 100;
constexpr std::string_view kReplyMark = "wisp-fleet-reply 1 ", kRequestMark = "wisp-fleet-request 1 ",
                           kNodeMark = "wisp-fleet-node 1 ";

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// The bytes of a file, or nullopt if it does not exist.
Result<std::optional<std::string>> Load(const std::string& path) {
  if (!platform::IsThere(path)) return std::optional<std::string>();
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return std::optional<std::string>(std::in_place, reinterpret_cast<const char*>(file.bytes().data()),
                                    file.bytes().size());
}

Status Store(const std::string& path, const std::string& bytes) {
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.Write(AsBytes(bytes)));
  return file.Commit();
}

// A line with a hash of the bytes, then the bytes.
std::string Sealed(const std::string& line, const std::string& bytes) {
  return line + " " + ToHex(Hash64(AsBytes(bytes))) + "\n" + bytes;
}
// The bytes after the first line, as far as there is one.
std::string_view AfterLine(std::string_view file) { return file.substr(std::min(file.size(), file.find('\n') + 1)); }

struct Unfinished {
  Participation participation;
  Reply reply;
};

// The file of an unfinished reply: its participation and the policy under which it was made, then the reply.
std::string ToFile(const Participation& p, const std::string& policy_hash, const Reply& reply) {
  return Sealed(std::string(kReplyMark) + p.ToText() + " " + policy_hash, reply.ToBytes());
}
Result<Unfinished> FromFile(std::string_view file, const std::string& policy_hash) {
  const Status damaged = InvalidData("the stored answer is damaged, or made under another policy");
  if (!file.starts_with(kReplyMark)) return damaged;
  const std::optional<Participation> p =
      Participation::Parse(file.substr(0, file.find('\n')).substr(kReplyMark.size()));
  if (!p) return damaged;
  Result<Reply> reply = Reply::Parse(AfterLine(file));
  if (!reply.ok() || file != ToFile(*p, policy_hash, *reply)) return damaged;
  return Unfinished{*p, *std::move(reply)};
}

std::string ToFile(const Incoming& request) {
  return Sealed(std::string(kRequestMark.substr(0, kRequestMark.size() - 1)), request.ToBytes());
}

std::string ToFile(uint64_t node_id, const std::string& owner) {
  return std::string(kNodeMark) + std::to_string(node_id) + " " + owner + "\n";
}
// The node's number in its file; 0 if the file is missing, damaged, or of another owner.
uint64_t NodeFromFile(const std::string& path, const std::string& owner) {
  const Result<std::optional<std::string>> file = Load(path);
  if (!file.ok() || !*file || !(**file).starts_with(kNodeMark)) return 0;
  const std::string& text = **file;
  uint64_t id = 0;
  std::from_chars(text.data() + kNodeMark.size(), text.data() + text.size(), id);
  return text == ToFile(id, owner) ? id : 0;
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

std::string NameAnswer(const Participation& p) { return "the answer to round " + std::to_string(p.round); }

// Half to one and a half of it, so that nodes that started together do not ask together.
double Jittered(double seconds) { return seconds * (0.5 + randombytes_uniform(1'000'001) / 1e6); }

}  // namespace

FleetNode::FleetNode(std::unique_ptr<FleetDevice> device, Transport& transport, std::string reply_path,
                     double ask_seconds)
    : device_(std::move(device)),
      transport_(transport),
      connection_(transport),
      path_(std::move(reply_path)),
      request_path_(path_ + ".request"),
      node_path_(path_ + ".node"),
      policy_hash_(ToHex(Sha256(device_->policy().ToText()))),
      node_owner_(ToHex(Sha256(device_->policy().server + "\n" + transport.public_key_pem()))),
      ask_seconds_(ask_seconds > 0 ? ask_seconds : kAskSeconds) {}

std::unique_ptr<FleetNode> FleetNode::Open(std::unique_ptr<FleetDevice> device, Transport& transport,
                                           std::string reply_path, double ask_seconds) {
  [[maybe_unused]] static const int ready = sodium_init();  // before it libsodium has no random bytes in browsers
  return std::unique_ptr<FleetNode>(new FleetNode(std::move(device), transport, std::move(reply_path), ask_seconds));
}

Status FleetNode::Join() {
  if (!node_id_ || !(std::abs(connection_.Now() - heard_) < kHeartbeatSeconds)) {
    if (!node_id_) stored_id_ = NodeFromFile(node_path_, node_owner_);
    WISP_ASSIGN_OR_RETURN(node_id_, connection_.Join(kHeartbeatSeconds, node_id_.value_or(stored_id_)));
    heard_ = connection_.Now();
  }
  if (*node_id_ == stored_id_) return OkStatus();
  WISP_RETURN_IF_ERROR(Store(node_path_, ToFile(*node_id_, node_owner_)));
  stored_id_ = *node_id_;
  return OkStatus();
}

Result<bool> FleetNode::WasForgotten() {
  const std::optional<uint64_t> before = node_id_;
  heard_ = 0;
  WISP_RETURN_IF_ERROR(Join());
  return node_id_ != before;
}

Status FleetNode::SendReply(const Say& say) {
  WISP_ASSIGN_OR_RETURN(const std::optional<std::string> file, Load(path_));
  if (!file) return OkStatus();
  const Result<Unfinished> stored = FromFile(*file, policy_hash_);
  if (!stored.ok()) {
    say(stored.status().message() + "; it was removed");
    return RemoveFile(path_);
  }
  const std::string name = NameAnswer(stored->participation);
  const flower::Metadata& metadata = stored->reply.metadata();
  WISP_ASSIGN_OR_RETURN(const std::optional<Incoming> request, LoadRequest(say));
  if (request) WISP_RETURN_IF_ERROR(Confirm(*request));
  WISP_ASSIGN_OR_RETURN(const bool charged, device_->IsCharged(stored->participation));
  const auto is_late = [&] { return metadata.src_node_id != *node_id_ || connection_.Now() >= metadata.expires_at(); };
  if (!charged && is_late()) {
    say("absent: the time for " + name + " is over; it was not charged");
    return RemoveFile(path_);
  }
  const Status charge = device_->Charge(stored->participation);
  if (charge.code() == StatusCode::kPrivacyRefused) WISP_RETURN_IF_ERROR(RemoveFile(path_));
  WISP_RETURN_IF_ERROR(charge);
  const Result<flower::Pushed> pushed = connection_.Push(stored->reply);
  if (pushed.ok() && *pushed == flower::Pushed::kStored) {
    ++answers_;
    say("the server has " + name);
    return RemoveFile(path_);
  }
  if (pushed.status().code() == StatusCode::kIo) return pushed.status();
  // Refused: the reply came too late, the run is over, or the server has forgotten this node. Any other refusal may
  // change until the time of the reply is over.
  if (!pushed.ok() && pushed.status().code() != StatusCode::kCancelled && !is_late()) {
    WISP_ASSIGN_OR_RETURN(const bool forgotten, WasForgotten());
    if (!forgotten) return pushed.status();
  }
  say(name + " came too late; it stays charged");
  return RemoveFile(path_);
}

Result<std::optional<Incoming>> FleetNode::LoadRequest(const Say& say) const {
  WISP_ASSIGN_OR_RETURN(const std::optional<std::string> file, Load(request_path_));
  if (!file) return std::optional<Incoming>();
  Result<Incoming> request = Incoming::Parse(AfterLine(*file));
  if (request.ok() && *file == ToFile(*request)) return std::optional<Incoming>(*std::move(request));
  say("absent: the stored request is damaged; it was removed");
  WISP_RETURN_IF_ERROR(RemoveFile(request_path_));
  return std::optional<Incoming>();
}

// A message that is not for wisp is skipped.
Result<std::optional<Incoming>> FleetNode::PullRequest(const Say& say) {
  for (uint32_t i = 0; i < kMostRequests; ++i) {
    Result<std::optional<Incoming>> pulled = connection_.Pull();
    if (pulled.ok()) {
      if (*pulled) WISP_RETURN_IF_ERROR(Store(request_path_, ToFile(**pulled)));
      return pulled;
    }
    const StatusCode code = pulled.status().code();
    if (code == StatusCode::kInvalidArgument) {
      WISP_ASSIGN_OR_RETURN(const bool forgotten, WasForgotten());
      if (forgotten) continue;
    }
    if (code != StatusCode::kUnsupported) return pulled.status();
    say("absent: " + pulled.status().message());
  }
  return std::optional<Incoming>();
}

Status FleetNode::Confirm(const Incoming& request) {
  // It only lets the server free the request, so a refusal does not matter.
  if (Status confirmed = connection_.Confirm(request); confirmed.code() == StatusCode::kIo) return confirmed;
  return RemoveFile(request_path_);
}

Result<FleetDevice::Taken> FleetNode::Take(const ConfigRecord& record) {
  const auto plan = record.Text("plan", FleetPlan::kMostTextBytes), task = record.Text("task", 32);
  const auto weights = record.Bytes("weights", device_->policy().most_bytes_down);
  const auto signature = record.Bytes("signature", kMostSignatureBytes);
  const auto round = record.Whole("round", 0, std::numeric_limits<uint32_t>::max());
  for (const Status& read : {plan.status(), task.status(), weights.status(), signature.status(), round.status()}) {
    if (!read.ok()) return FleetDevice::Taken{.what = "absent: " + read.message()};
  }
  return device_->Take({.plan = *plan, .task = *task, .round = *round, .weights = *weights, .signature = *signature},
                       *node_id_);
}

Result<bool> FleetNode::Answer(const Say& say) {
  WISP_ASSIGN_OR_RETURN(std::optional<Incoming> request, LoadRequest(say));
  if (!request) {
    WISP_ASSIGN_OR_RETURN(request, PullRequest(say));
    if (!request) return false;
  }
  const auto is_absent = [&](const std::string& why) {
    say("absent: " + why);
    return true;
  };
  if (request->metadata.dst_node_id != *node_id_ || connection_.Now() >= request->metadata.expires_at()) {
    WISP_RETURN_IF_ERROR(RemoveFile(request_path_));
    return is_absent("the time for a request is over");
  }
  const Result<ConfigRecord> record = connection_.Fetch(*request, device_->policy().most_bytes_down + kMostOtherBytes);
  if (record.status().code() == StatusCode::kIo) return record.status();
  if (!record.ok()) {
    WISP_RETURN_IF_ERROR(Confirm(*request));
    return is_absent(record.status().message());
  }
  WISP_ASSIGN_OR_RETURN(const FleetDevice::Taken taken, Take(*record));
  say(taken.what);
  if (!taken.answer) {
    WISP_RETURN_IF_ERROR(Confirm(*request));
    return true;
  }
  const Result<Reply> reply = Reply::Make(*request, ToRecord(*taken.answer), connection_.Now());
  if (!reply.ok()) {
    WISP_RETURN_IF_ERROR(Confirm(*request));
    return is_absent(reply.status().message());
  }
  WISP_RETURN_IF_ERROR(Store(path_, ToFile(taken.answer->participation, policy_hash_, *reply)));
  WISP_RETURN_IF_ERROR(SendReply(say));
  return true;
}

Result<FleetNode::Progress> FleetNode::Work(double seconds, const Say& say, const std::function<bool(double)>& wait) {
  answers_ = 0;
  const double end = transport_.Now() + seconds;
  for (uint32_t requests = 0; requests < kMostRequests;) {
    WISP_RETURN_IF_ERROR(Join());
    WISP_RETURN_IF_ERROR(SendReply(say));
    WISP_ASSIGN_OR_RETURN(const bool answered, Answer(say));
    const double left = end - transport_.Now();
    if (seconds > 0 && left <= 0) break;
    if (answered) {
      ++requests;
    } else if (left <= 0 || !wait || !wait(std::min(left, Jittered(ask_seconds_)))) {
      break;
    }
  }
  WISP_ASSIGN_OR_RETURN(const std::vector<Participation> all, device_->ListParticipations());
  return Progress{
      .answers = answers_, .participations = static_cast<uint32_t>(all.size()), .wait_seconds = Jittered(ask_seconds_)};
}

}  // namespace wisp::fleet
