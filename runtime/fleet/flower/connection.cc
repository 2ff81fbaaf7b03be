#include "runtime/fleet/flower/connection.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include "runtime/core/date.h"
#include "runtime/fleet/flat_json.h"
#include "runtime/core/text.h"
#include "runtime/fleet/flower/objects.h"

namespace wisp::fleet::flower {
namespace {

// An answer without an object has some ids and short texts. Errors of a gateway may be pages.
constexpr size_t kMostAnswerBytes = size_t{64} << 10;
// A Message has 500 bytes or so, a RecordDict has 220.
constexpr size_t kMostSmallObject = 4096;
constexpr size_t kAroundObject = 64;  // fields beside the object in the answer to pull-object
// The server accepts signatures of the last 305 seconds and of 5 in the future. Its header Date has whole seconds.
constexpr double kClockSeconds = 3;
// Signatures are of whole minutes, so one serves all calls of a minute. A key store may need a second for each, and a
// page learns what to sign from the call before.
constexpr double kSignedSeconds = 60;
constexpr double kEndOfTime = 1e11;  // the year 5138

std::string Base64(std::string_view bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the terminating zero
  return text;
}

WireWriter NodeField(uint64_t node) {
  WireWriter request, inner;
  return request.Message(1, inner.Varint(1, node));
}

// Tells why the server refused a call. Flower's errors are {"code": 2007, "detail": "..."}.
Status Refusal(std::string_view route, const HttpReply& reply) {
  int64_t code = 0;
  std::string detail;
  if (Result<FlatJson> json = FlatJson::Parse(reply.body, "answer", kMostAnswerBytes); json.ok()) {
    if (const auto read = json->Whole("code", 0, INT32_MAX); read.ok()) code = *read;
    if (auto read = json->Text("detail", 300); read.ok()) detail = ", " + OneLine(*std::move(read));
  }
  const std::string told = JoinText("the fleet's server answers ", route, " with status ", reply.status,
                                    code > 0 ? JoinText(" and code ", code) : std::string(), detail);
  if (reply.status == 502 || reply.status == 503 || reply.status == 504) return IoError(told);
  if (reply.status == 403 && code == 2007) return Cancelled(told);
  return InvalidArgument(told);
}

Result<uint64_t> DecodeNode(std::string_view answer) {
  uint64_t node = 0;
  WireReader reader(answer, "answer to activate-node");
  while (reader.Next()) {
    if (reader.field() == 1) node = reader.Varint();
  }
  if (reader.status().ok() && node == 0) reader.Fail("has no node id");
  WISP_RETURN_IF_ERROR(reader.status());
  return node;
}

// Reads the one truth of an answer, field 1; a missing one is false.
Result<bool> DecodeTruth(std::string_view answer, std::string_view what) {
  bool truth = false;
  WireReader reader(answer, what);
  while (reader.Next()) {
    if (reader.field() == 1) truth = reader.Varint() != 0;
  }
  WISP_RETURN_IF_ERROR(reader.status());
  return truth;
}

}  // namespace

Result<HttpReply> Connection::Send(std::string_view route, std::string_view body, size_t most_bytes) {
  most_bytes = std::max(most_bytes, kMostAnswerBytes);  // an error may be longer than what was asked for
  for (bool again = true;; again = false) {
    const double offset = clock_offset_, now = Now();
    if (!(now >= 0 && now < kEndOfTime)) return InvalidArgument("the device's clock says ", now, " seconds since 1970");
    const std::string timestamp =
        UtcTime(static_cast<std::time_t>(std::floor(now / kSignedSeconds) * kSignedSeconds)) + "+00:00";
    if (timestamp != signed_timestamp_) {
      WISP_ASSIGN_OR_RETURN(signature_, transport_.Sign(timestamp));
      signed_timestamp_ = timestamp;
    }
    const std::array<HttpHeader, 4> headers = {{{"content-type", "application/protobuf"},
                                                {"flwr-public-key", Base64(transport_.public_key_pem())},
                                                {"flwr-timestamp", timestamp},
                                                {"flwr-signature", Base64(signature_)}}};
    WISP_ASSIGN_OR_RETURN(HttpReply reply, transport_.Post(JoinText("/v1/fleet/", route), headers, body, most_bytes));
    if (reply.body.size() > most_bytes) {
      return InvalidData("the fleet's server answers ", route, " with ", reply.body.size(), " bytes; allowed are ",
                         most_bytes, " at most");
    }
    // A date before 2001 is an error of the server. A device whose clock has no battery starts in 1970.
    if (reply.server_time > 1e9 && reply.server_time < kEndOfTime) {
      clock_offset_ = reply.server_time - transport_.Now();
    }
    if (reply.status == 401 && again && std::abs(clock_offset_ - offset) > kClockSeconds) continue;
    return reply;
  }
}

Result<std::string> Connection::Call(std::string_view route, WireWriter request, size_t most_bytes) {
  WISP_ASSIGN_OR_RETURN(HttpReply reply, Send(route, request.Take(), most_bytes));
  if (reply.status != 200) return Refusal(route, reply);
  return std::move(reply.body);
}

Status Connection::NeedsNode() const {
  return node_ != 0 ? OkStatus() : InvalidArgument("the node has not joined the fleet's server");
}

Result<uint64_t> Connection::Join(double heartbeat_seconds, uint64_t known_node) {
  heartbeat_seconds_ = heartbeat_seconds;
  if (known_node != 0) {
    node_ = known_node;
    const Status known = Heartbeat();
    if (known.ok()) return node_;
    if (known.code() != StatusCode::kInvalidArgument) return known;
  }
  node_ = 0;
  WireWriter writer;
  writer.Bytes(1, transport_.public_key_pem()).Double(2, heartbeat_seconds);
  const std::string activate = writer.Take();
  WISP_ASSIGN_OR_RETURN(HttpReply reply, Send("activate-node", activate, kMostAnswerBytes));
  if (reply.status == 412) {  // the server does not know the key, or its node is online
    const std::string key = WireWriter().Bytes(1, transport_.public_key_pem()).Take();
    WISP_ASSIGN_OR_RETURN(reply, Send("register-node", key, kMostAnswerBytes));
    if (reply.status == 412) {
      return IoError("the fleet's server does not let this device join: its key is not enrolled, or its node still ",
                     "counts as online");
    }
    if (reply.status == 200) {
      WISP_ASSIGN_OR_RETURN(reply, Send("activate-node", activate, kMostAnswerBytes));
    }
  }
  if (reply.status != 200) return Refusal("register-node or activate-node", reply);
  WISP_ASSIGN_OR_RETURN(node_, DecodeNode(reply.body));
  return node_;
}

Status Connection::Heartbeat() {
  WISP_RETURN_IF_ERROR(NeedsNode());
  WireWriter request = NodeField(node_).Double(2, heartbeat_seconds_);
  WISP_ASSIGN_OR_RETURN(const std::string answer, Call("send-node-heartbeat", std::move(request), kMostAnswerBytes));
  WISP_ASSIGN_OR_RETURN(const bool success, DecodeTruth(answer, "answer to send-node-heartbeat"));
  return success ? OkStatus() : InvalidArgument("the fleet's server does not know this node any more");
}

Status Connection::Leave() {
  WISP_RETURN_IF_ERROR(NeedsNode());
  return Call("deactivate-node", WireWriter().Varint(1, node_), kMostAnswerBytes).status();
}

Status Connection::Unregister() {
  WISP_RETURN_IF_ERROR(NeedsNode());
  return Call("unregister-node", WireWriter().Varint(1, node_), kMostAnswerBytes).status();
}

Result<std::optional<Incoming>> Connection::Pull() {
  WISP_RETURN_IF_ERROR(NeedsNode());
  WISP_ASSIGN_OR_RETURN(const std::string answer, Call("pull-messages", NodeField(node_), kMostAnswerBytes));
  WISP_ASSIGN_OR_RETURN(std::optional<Incoming> incoming, Incoming::FromAnswer(answer));
  if (incoming && incoming->metadata.dst_node_id != node_) {
    return InvalidData("the fleet's server sent a message for node ", incoming->metadata.dst_node_id, " to node ",
                       node_);
  }
  return incoming;
}

Result<Connection::Pulled> Connection::PullObject(const Metadata& of, uint64_t node, std::string_view id,
                                                  size_t most_bytes) {
  WISP_ASSIGN_OR_RETURN(const std::string answer, Call("pull-object", NodeField(node).Varint(2, of.run_id).Bytes(3, id),
                                                       most_bytes + kAroundObject));
  Pulled pulled;
  WireReader reader(answer, "answer to pull-object");
  while (reader.Next()) {
    if (reader.field() == 1) pulled.found = reader.Varint() != 0;
    if (reader.field() == 2) pulled.available = reader.Varint() != 0;
    if (reader.field() == 3) pulled.content = reader.Bytes();
  }
  WISP_RETURN_IF_ERROR(reader.status());
  if (pulled.content.size() > most_bytes) {
    return InvalidData("the fleet's server sent an object of ", pulled.content.size(), " bytes; allowed are ",
                       most_bytes, " at most");
  }
  return pulled;
}

Result<std::string> Connection::Download(const Metadata& of, std::string_view id, size_t most_bytes) {
  WISP_ASSIGN_OR_RETURN(Pulled pulled, PullObject(of, of.dst_node_id, id, most_bytes));
  if (!pulled.found) return Cancelled("the fleet's server has the object ", id, " no more: the request is over");
  if (!pulled.available) return IoError("the fleet's server has the object ", id, " not yet");
  return std::move(pulled.content);
}

Result<ConfigRecord> Connection::Fetch(const Incoming& request, size_t most_bytes) {
  const Metadata& of = request.metadata;
  // The server gets the message last, so it has all objects once it has this one. Confirm relies on that.
  WISP_ASSIGN_OR_RETURN(const std::string message, Download(of, of.message_id, kMostSmallObject));
  WISP_RETURN_IF_ERROR(ReadObject(message, of.message_id, "Message", request.record_dict_id).status());
  // A RecordDict as Flower writes it needs no download: its id tells that it names the one record "wisp".
  const std::string expected = MakeObject("RecordDict", request.record_id, WriteRecordDict(request.record_id));
  if (ObjectId(expected) != request.record_dict_id) {
    WISP_ASSIGN_OR_RETURN(const std::string dict, Download(of, request.record_dict_id, kMostSmallObject));
    WISP_ASSIGN_OR_RETURN(const std::string_view names,
                          ReadObject(dict, request.record_dict_id, "RecordDict", request.record_id));
    WISP_RETURN_IF_ERROR(CheckRecordDict(names, request.record_id));
  }
  WISP_ASSIGN_OR_RETURN(const std::string record, Download(of, request.record_id, most_bytes));
  WISP_ASSIGN_OR_RETURN(const std::string_view body, ReadObject(record, request.record_id, "ConfigRecord", ""));
  return ConfigRecord::Decode(body);
}

Status Connection::Confirm(const Incoming& request) {
  const Metadata& of = request.metadata;
  return Call("confirm-message-received", NodeField(of.dst_node_id).Varint(2, of.run_id).Bytes(3, of.message_id),
              kMostAnswerBytes)
      .status();
}

Result<Pushed> Connection::Push(const Reply& reply) {
  const Metadata& of = reply.metadata();
  WISP_ASSIGN_OR_RETURN(const HttpReply answer, Send("push-messages", reply.PushRequest(), kMostAnswerBytes));
  if (answer.status != 200) return Refusal("push-messages", answer);
  std::array<bool, 3> wanted = {};
  std::string session;
  WireReader reader(answer.body, "answer to push-messages");
  while (reader.Next()) {
    if (reader.field() == 4) session = reader.Text(kMostAnswerBytes);
    if (reader.field() != 3) continue;
    const std::string_view id = reader.Bytes();
    const auto found =
        std::find_if(reply.objects().begin(), reply.objects().end(), [&](const auto& o) { return o.id == id; });
    if (found == reply.objects().end()) {
      reader.Fail("asks for an object that the reply has not");
    } else {
      wanted[static_cast<size_t>(found - reply.objects().begin())] = true;
    }
  }
  WISP_RETURN_IF_ERROR(reader.status());
  if (wanted == std::array<bool, 3>{}) {
    // The server wants nothing if it has everything, and also if it refuses the reply. Then it lacks the message.
    WISP_ASSIGN_OR_RETURN(const Pulled pulled, PullObject(of, of.src_node_id, of.message_id, kMostSmallObject));
    return pulled.found && pulled.available ? Pushed::kStored : Pushed::kRefused;
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const Reply::Object& object = reply.objects()[i];
    WireWriter request = NodeField(of.src_node_id).Varint(2, of.run_id);
    request.Bytes(3, object.id).Bytes(4, object.content).Bytes(5, session);
    WISP_ASSIGN_OR_RETURN(const std::string stored_answer, Call("push-object", std::move(request), kMostAnswerBytes));
    WISP_ASSIGN_OR_RETURN(const bool stored, DecodeTruth(stored_answer, "answer to push-object"));
    if (!stored) return IoError("the fleet's server did not store an object of the reply");
  }
  return Pushed::kStored;
}

}  // namespace wisp::fleet::flower
