// Flower's server in memory, as flwr 1.42 answers the calls of nodes: registered keys, signed headers with its clock,
// requests that are delivered once, sessions of sending, objects by their hash. And a transport that leads to it, with
// faults.
//
//   FakeSuperLink server;
//   FakeTransport transport(server, "first");
//   flower::Connection connection(transport);
//   const std::string id = server.Ask(*connection.Join(30), record);   // what the fleet's app asks
//   ...
//   for (const FakeSuperLink::Received& reply : server.Take()) ...     // what it gets
#ifndef WISP_TESTS_UNIT_FLEET_FAKE_SUPERLINK_H_
#define WISP_TESTS_UNIT_FLEET_FAKE_SUPERLINK_H_

#include <sodium.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/hex.h"
#include "runtime/core/status.h"
#include "runtime/fleet/flower/config_record.h"
#include "runtime/fleet/flower/messages.h"
#include "runtime/fleet/flower/objects.h"
#include "runtime/fleet/flower/wire.h"
#include "runtime/fleet/sha256.h"
#include "runtime/fleet/transport.h"

namespace wisp::fleet::test {

// In place of ECDSA: anybody can make it, but it depends on the key and the message.
inline std::string FakeSignature(std::string_view key_pem, std::string_view message) {
  return "signed " + ToHex(Sha256(std::string(key_pem) + std::string(message)));
}
inline std::string FakeKey(std::string_view name) {
  return JoinText("-----BEGIN PUBLIC KEY-----\n", name, "\n-----END PUBLIC KEY-----\n");
}

class FakeSuperLink {
 public:
  struct Received {
    flower::Metadata metadata;
    flower::ConfigRecord record;
  };

  double now = 1800000000;       // the server's clock
  uint64_t run_id = 77;          // the fleet's run
  bool run_over = false;         // its app has ended
  bool enrolled_only = false;    // keys are enrolled by the operator: Enrol()
  double session_seconds = 180;  // how long a node may take between two objects
  std::string (*record_dict)(std::string_view record_id) = flower::WriteRecordDict;  // the app's way to write it
  std::vector<std::string> calls;                                                    // the routes that were called

  void Enrol(const std::string& key_pem) { nodes_.emplace(key_pem, Node{next_node_++, 0}); }
  bool IsOnline(const std::string& key_pem) { return nodes_[key_pem].online_until > now; }

  // Asks a node, as the fleet's app does. Returns the message's id.
  std::string Ask(uint64_t node, const flower::ConfigRecord& record, double ttl = 3600) {
    flower::Incoming request;
    request.metadata = {.run_id = run_id,
                        .src_node_id = flower::kServerNode,
                        .dst_node_id = node,
                        .group_id = "1",
                        .ttl = ttl,
                        .message_type = "train",
                        .created_at = now,
                        .src_task_id = 5};
    request.record_id = Put("ConfigRecord", "", record.Encode());
    request.record_dict_id = Put("RecordDict", request.record_id, record_dict(request.record_id));
    flower::WireWriter body;
    body.Message(1, flower::EncodeMetadata(request.metadata));
    request.metadata.message_id = Put("Message", request.record_dict_id, body.Take());
    requests_.push_back({request, false, ""});
    return request.metadata.message_id;
  }

  // Takes the replies that are complete, with all they belong to.
  std::vector<Received> Take() {
    std::vector<Received> replies;
    std::erase_if(requests_, [&](const Request& request) {
      const auto reply = replies_.find(request.reply_id);
      if (reply == replies_.end()) return false;
      const flower::Incoming& shape = reply->second;
      for (const std::string& id : {shape.metadata.message_id, shape.record_dict_id, shape.record_id}) {
        if (objects_[id].empty()) return false;
      }
      const std::string_view body = *flower::ReadObject(objects_[shape.record_id], shape.record_id, "ConfigRecord", "");
      replies.push_back({shape.metadata, *flower::ConfigRecord::Decode(body)});
      Forget(shape);
      Forget(request.asked);
      replies_.erase(reply);
      return true;
    });
    return replies;
  }

  // The server starts anew, without what it knew of nodes.
  void ForgetNodes() { nodes_.clear(); }
  // Nodes that are half way through sending have to begin anew.
  void EndSessions() { sessions_.clear(); }
  // Makes an object of a request unavailable, as while the app still sends it; or available again.
  void Hide(const std::string& id) { std::swap(objects_[id], hidden_[id]); }
  std::map<std::string, std::string>& objects() { return objects_; }
  std::string record_of(const std::string& message_id) const {
    for (const Request& request : requests_) {
      if (request.asked.metadata.message_id == message_id) return request.asked.record_id;
    }
    return {};
  }

  HttpReply Post(std::string_view path, std::span<const HttpHeader> headers, std::string_view body) {
    constexpr std::string_view kPrefix = "/v1/fleet/";
    if (!path.starts_with(kPrefix)) return Answer(404, R"({"detail":"Not Found"})");
    const std::string_view route = path.substr(kPrefix.size());
    calls.emplace_back(route);
    std::map<std::string, std::string> header;
    for (const HttpHeader& one : headers) header[one.name] = one.value;
    if (header["content-type"] != "application/protobuf") return Refuse(415, 1006);
    const std::string key = FromBase64(header["flwr-public-key"]);
    const double age = now - FromIso(header["flwr-timestamp"]);
    const bool is_signed = FromBase64(header["flwr-signature"]) == FakeSignature(key, header["flwr-timestamp"]);
    const Fields fields(route, body);
    if (!fields.ok) return Refuse(400, 1007);
    const bool by_key = route == "register-node" || route == "activate-node";
    const bool knows = by_key ? fields.key == key : nodes_.contains(key) && nodes_[key].id == fields.node;
    if (!is_signed || !knows || !(-5 < age && age < 305)) {
      return Answer(401, R"({"detail":"Invalid SuperNode authentication"})");
    }
    return Handle(route, fields);
  }

 private:
  struct Node {
    uint64_t id = 0;
    double online_until = 0;
  };
  struct Request {
    flower::Incoming asked;
    bool delivered;
    std::string reply_id;
  };
  struct Session {
    std::set<std::string> pending;
    double expires_at;
  };

  // All fields of the requests, which have the same numbers in most.
  struct Fields {
    Fields(std::string_view route, std::string_view body) {
      const bool flat = route == "deactivate-node" || route == "unregister-node";
      flower::WireReader reader(body, "request");
      while (reader.Next()) {
        const uint32_t field = reader.field();
        if (route == "register-node" || route == "activate-node") {
          if (field == 1) key = reader.Bytes();
          if (field == 2) heartbeat = reader.Double();
        } else if (field == 1 && flat) {
          node = reader.Varint();
        } else if (field == 1) {
          flower::WireReader inner(reader.Bytes(), "node");
          while (inner.Next()) node = inner.Varint();
        } else if (route == "send-node-heartbeat") {
          if (field == 2) heartbeat = reader.Double();
        } else if (route == "push-messages") {
          if (field == 2) message = reader.Bytes();
          if (field == 3) tree = reader.Bytes();
        } else {
          if (field == 2) run = reader.Varint();
          if (field == 3) id = reader.Bytes();
          if (field == 4) content = reader.Bytes();
          if (field == 5) session = reader.Bytes();
        }
      }
      ok = reader.status().ok();
    }
    bool ok = false;
    std::string key, message, tree, id, content, session;
    double heartbeat = 0;
    uint64_t node = 0, run = 0;
  };

  HttpReply Answer(int status, std::string body) const {
    return {.status = status, .server_time = std::floor(now), .body = std::move(body)};
  }
  HttpReply Answer(flower::WireWriter& body) const { return Answer(200, body.Take()); }
  HttpReply Refuse(int status, int code) const {
    return Answer(status, JoinText("{\"code\":", code, ",\"detail\":\"refused by the test\"}"));
  }

  HttpReply Handle(std::string_view route, const Fields& fields) {
    flower::WireWriter answer;
    if (route == "register-node") {
      if (enrolled_only) return Refuse(412, 2001);
      if (nodes_.contains(fields.key)) return Refuse(412, 23);
      Enrol(fields.key);
      return Answer(answer.Varint(1, nodes_[fields.key].id));
    }
    const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& known) {
      return fields.key.empty() ? known.second.id == fields.node : known.first == fields.key;
    });
    if (route == "activate-node" || route == "send-node-heartbeat") {
      if (!(fields.heartbeat >= 10 && fields.heartbeat <= 1800)) return Refuse(400, 2003);
      const bool activates = route == "activate-node";
      if (activates && (node == nodes_.end() || node->second.online_until > now)) return Refuse(412, 2004);
      node->second.online_until = now + 2 * fields.heartbeat;
      return Answer(answer.Varint(1, activates ? node->second.id : 1));
    }
    if (route == "deactivate-node") {
      if (node->second.online_until <= now) return Refuse(412, 2005);
      node->second.online_until = now;
      return Answer(answer);
    }
    if (route == "unregister-node") {
      if (enrolled_only) return Refuse(412, 2002);
      nodes_.erase(node);
      return Answer(answer);
    }
    if (route == "pull-messages") {
      for (Request& request : requests_) {
        const flower::Metadata& metadata = request.asked.metadata;
        if (request.delivered || metadata.dst_node_id != fields.node || metadata.expires_at() <= now) continue;
        request.delivered = true;
        return Answer(200, request.asked.ToBytes());
      }
      return Answer(answer);
    }
    if (run_over) return Refuse(403, 2007);
    if (route == "pull-object") {
      if (!objects_.contains(fields.id)) return Answer(answer);
      const std::string& content = objects_[fields.id];
      return Answer(answer.Varint(1, 1).Varint(2, content.empty() ? 0 : 1).Bytes(3, content));
    }
    if (route == "confirm-message-received") {
      for (const Request& request : requests_) {
        if (request.asked.metadata.message_id == fields.id) Forget(request.asked);
      }
      return Answer(answer);
    }
    if (route == "push-messages") return PushMessages(fields);
    if (route == "push-object") return Answer(answer.Varint(1, PushObject(fields) ? 1 : 0));
    return Answer(404, R"({"detail":"Not Found"})");
  }

  HttpReply PushMessages(const Fields& fields) {
    // A reply has the shape of a request, with source and destination changed; the reader of requests refuses that.
    flower::Incoming reply;
    flower::WireReader message(fields.message, "message");
    while (message.Next()) {
      if (message.field() == 1) reply.metadata = *flower::DecodeMetadata(message.Bytes());
    }
    std::vector<std::string> ids = TreeIds(fields.tree);
    const std::string session = JoinText("session-", ++num_sessions_);
    flower::WireWriter answer, reconnect, result;
    answer.Message(1, reconnect.Varint(1, 5));
    answer.Message(2, result.Bytes(1, reply.metadata.message_id));
    if (ids.size() == 3 && ids[0] == reply.metadata.message_id && Accept(reply.metadata)) {
      reply.record_dict_id = ids[1];
      reply.record_id = ids[2];
      replies_[ids[0]] = reply;
      Session& open = sessions_[session] = {{}, now + session_seconds};
      for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
        if (!objects_[*id].empty()) continue;
        open.pending.insert(*id);
        answer.Bytes(3, *id);
      }
    }
    return Answer(answer.Bytes(4, session));
  }

  bool Accept(const flower::Metadata& reply) {
    for (Request& request : requests_) {
      const flower::Metadata& asked = request.asked.metadata;
      if (asked.message_id != reply.reply_to_message_id) continue;
      const bool fits = reply.run_id == asked.run_id && reply.src_node_id == asked.dst_node_id &&
                        reply.dst_node_id == 1 && reply.ttl > 0 && reply.expires_at() > now &&
                        asked.expires_at() > now && reply.expires_at() <= asked.expires_at() + 0.1 &&
                        !reply.message_type.empty();
      if (!fits || (!request.reply_id.empty() && request.reply_id != reply.message_id)) return false;
      request.reply_id = reply.message_id;
      return true;
    }
    return false;
  }

  bool PushObject(const Fields& fields) {
    const auto session = sessions_.find(fields.session);
    if (session == sessions_.end() || fields.run != run_id || !session->second.pending.contains(fields.id))
      return false;
    if (session->second.expires_at <= now || flower::ObjectId(fields.content) != fields.id) return false;
    objects_[fields.id] = fields.content;
    session->second.pending.erase(fields.id);
    session->second.expires_at = now + session_seconds;
    return true;
  }

  std::string Put(std::string_view type, std::string_view child, std::string_view body) {
    std::string object = flower::MakeObject(type, child, body);
    std::string id = flower::ObjectId(object);
    objects_[id] = std::move(object);
    return id;
  }
  void Forget(const flower::Incoming& shape) {
    for (const std::string& id : {shape.metadata.message_id, shape.record_dict_id, shape.record_id}) objects_.erase(id);
  }

  static std::vector<std::string> TreeIds(std::string_view tree) {
    std::vector<std::string> ids;
    flower::WireReader reader(tree, "tree");
    while (reader.Next()) {
      if (reader.field() == 1) ids.insert(ids.begin(), std::string(reader.Bytes()));
      if (reader.field() != 2) continue;
      const std::vector<std::string> below = TreeIds(reader.Bytes());
      ids.insert(ids.end(), below.begin(), below.end());
    }
    return ids;
  }

  static std::string FromBase64(const std::string& text) {
    std::string bytes(text.size(), '\0');
    size_t size = 0;
    const int failed = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                                         text.size(), nullptr, &size, nullptr, sodium_base64_VARIANT_ORIGINAL);
    bytes.resize(failed == 0 ? size : 0);
    return bytes;
  }
  // Seconds since 1970 of 2026-11-29T01:43:28+00:00; 0 for another text.
  static double FromIso(const std::string& text) {
    std::tm parts{};
    int end = 0;
    if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d+00:00%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                    &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &end) != 6 ||
        static_cast<size_t>(end) != text.size()) {
      return 0;
    }
    parts.tm_year -= 1900;
    --parts.tm_mon;
    return static_cast<double>(timegm(&parts));
  }

  std::map<std::string, Node> nodes_;  // by their keys
  uint64_t next_node_ = 1001;
  std::deque<Request> requests_;
  std::map<std::string, flower::Incoming> replies_;
  std::map<std::string, std::string> objects_, hidden_;  // an empty content is not available
  std::map<std::string, Session> sessions_;
  uint64_t num_sessions_ = 0;
};

class FakeTransport : public Transport {
 public:
  enum class Fault {
    kNone,
    kNoConnection,  // the server does not hear of the call
    kCut,           // it handles the call, and its answer is lost
    kBusy,          // a gateway answers with 503
  };

  FakeTransport(FakeSuperLink& server, std::string_view key_name) : server_(server), key_(FakeKey(key_name)) {}

  int num_signed = 0;
  size_t num_bytes = 0;                                                  // of headers and bodies, both ways
  double clock_error = 0;                                                // of the device, in seconds
  std::function<Fault(std::string_view route)> fault;                    // asked before each call
  std::function<void(std::string_view route, HttpReply& reply)> change;  // may change each answer

  Result<HttpReply> Post(const std::string& path, std::span<const HttpHeader> headers, std::string_view body,
                         size_t most_bytes) override {
    const std::string_view route = std::string_view(path).substr(path.rfind('/') + 1);
    const Fault what = fault ? fault(route) : Fault::kNone;
    if (what == Fault::kNoConnection) return IoError("no connection");
    if (what == Fault::kBusy) return HttpReply{503, server_.now, "<html>busy</html>"};
    HttpReply reply = server_.Post(path, headers, body);
    if (what == Fault::kCut) return IoError("the connection was cut");
    if (change) change(route, reply);
    for (const HttpHeader& header : headers) num_bytes += header.name.size() + header.value.size();
    num_bytes += path.size() + body.size() + reply.body.size();
    if (reply.body.size() > most_bytes) return InvalidData("the answer is larger than ", most_bytes, " bytes");
    return reply;
  }
  Result<std::string> Sign(std::string_view message) override {
    ++num_signed;
    return FakeSignature(key_, message);
  }
  const std::string& public_key_pem() const override { return key_; }
  Status Verify(const std::string& key_pem, std::string_view message, std::string_view signature) override {
    return signature == FakeSignature(key_pem, message) ? OkStatus()
                                                        : InvalidData("the signature is not the operator's");
  }
  double Now() const override { return server_.now + clock_error; }

 private:
  FakeSuperLink& server_;
  std::string key_;
};

}  // namespace wisp::fleet::test

#endif  // WISP_TESTS_UNIT_FLEET_FAKE_SUPERLINK_H_
