#include "runtime/fleet/flower/connection.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/fleet/fake_superlink.h"

namespace wisp::fleet::connection_test {
namespace {

using flower::ConfigRecord;
using flower::Connection;
using flower::Incoming;
using flower::Pushed;
using flower::Reply;
using test::FakeSuperLink;
using test::FakeTransport;
using Fault = test::FakeTransport::Fault;

constexpr size_t kMostBytes = 100000;

ConfigRecord Question() {
  ConfigRecord record;
  record.SetText("plan", "{}").SetText("task", "train").SetWhole("round", 7);
  record.SetBytes("weights", std::string(5000, 'w')).SetBytes("signature", "");
  return record;
}
ConfigRecord Answer() { return std::move(ConfigRecord().SetWhole("round", 7).SetBytes("update", "\x01\xff")); }

// A node that joined, and one request to it.
struct Joined {
  Joined() {
    node = *connection.Join(30);
    message_id = server.Ask(node, Question());
  }
  Incoming Pull() { return **connection.Pull(); }
  Reply MakeReply(const Incoming& request) { return *Reply::Make(request, Answer(), connection.Now()); }

  FakeSuperLink server;
  FakeTransport transport{server, "first"};
  Connection connection{transport};
  uint64_t node = 0;
  std::string message_id;
};

template <class T>
StatusCode CodeOf(const Result<T>& result) {
  return result.status().code();
}

TEST(Connection, RoundTakesEightCalls) {
  Joined with;
  with.server.calls.clear();
  with.transport.num_bytes = 0;
  const auto request = with.connection.Pull();
  ASSERT_TRUE(request.ok() && *request) << request.status().message();
  EXPECT_EQ((*request)->metadata.message_id, with.message_id);
  EXPECT_EQ((*request)->metadata.message_type, "train");
  const auto record = with.connection.Fetch(**request, kMostBytes);
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->Encode(), Question().Encode());
  ASSERT_TRUE(with.connection.Confirm(**request).ok());
  const auto pushed = with.connection.Push(with.MakeReply(**request));
  ASSERT_TRUE(pushed.ok()) << pushed.status().message();
  EXPECT_EQ(*pushed, Pushed::kStored);
  EXPECT_EQ(with.server.calls,
            (std::vector<std::string>{"pull-messages", "pull-object", "pull-object", "confirm-message-received",
                                      "push-messages", "push-object", "push-object", "push-object"}));
  // Headers, ids and metadata of all calls, beside the weights.
  EXPECT_LT(with.transport.num_bytes, 5000u + 6000u);
  const auto replies = with.server.Take();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].record.Encode(), Answer().Encode());
  EXPECT_EQ(replies[0].metadata.reply_to_message_id, with.message_id);
  EXPECT_EQ(replies[0].metadata.src_node_id, with.node);
  EXPECT_EQ(replies[0].metadata.dst_task_id, 5u);
  EXPECT_FALSE(replies[0].metadata.src_task_id);
}

TEST(Connection, ServerGivesEachRequestOnce) {
  Joined with;
  EXPECT_TRUE(*with.connection.Pull());
  const auto again = with.connection.Pull();
  EXPECT_TRUE(again.ok() && !*again);
}

TEST(Connection, NodeKeepsItsId) {
  FakeSuperLink server;
  FakeTransport transport(server, "first"), other(server, "second");
  const uint64_t first = *Connection(transport).Join(30);
  EXPECT_EQ(server.calls, (std::vector<std::string>{"activate-node", "register-node", "activate-node"}));
  server.calls.clear();
  Connection again(transport);
  EXPECT_EQ(*again.Join(1800, first), first);
  EXPECT_EQ(server.calls, (std::vector<std::string>{"send-node-heartbeat"}));
  EXPECT_TRUE(server.IsOnline(transport.public_key_pem()));
  EXPECT_NE(*Connection(other).Join(30), first);
  EXPECT_TRUE(again.Heartbeat().ok());
  EXPECT_TRUE(again.Leave().ok());
  EXPECT_FALSE(server.IsOnline(transport.public_key_pem()));
  EXPECT_EQ(*Connection(transport).Join(30), first);
  EXPECT_TRUE(again.Unregister().ok());
  EXPECT_NE(*Connection(transport).Join(30, first), first);  // the server has forgotten it
}

TEST(Connection, NodeWithoutItsIdWaitsUntilItIsOffline) {
  FakeSuperLink server;
  FakeTransport transport(server, "first");
  const uint64_t first = *Connection(transport).Join(30);
  EXPECT_EQ(CodeOf(Connection(transport).Join(30)), StatusCode::kIo);
  server.now += 61;
  EXPECT_EQ(*Connection(transport).Join(30), first);
}

TEST(Connection, KeyThatIsNotEnrolledCannotJoin) {
  FakeSuperLink server;
  server.enrolled_only = true;
  FakeTransport transport(server, "first");
  Connection connection(transport);
  EXPECT_EQ(connection.Join(30).status().message(),
            "the fleet's server does not let this device join: its key is not enrolled, or its node still counts as "
            "online");
  EXPECT_EQ(CodeOf(connection.Pull()), StatusCode::kInvalidArgument);
  server.Enrol(transport.public_key_pem());
  EXPECT_EQ(CodeOf(connection.Join(5)), StatusCode::kInvalidArgument);
  EXPECT_TRUE(connection.Join(30).ok());
}

TEST(Connection, ServersClockIsUsedWhereTheDevicesIsWrong) {
  for (const double error : {-400.0, 3600.0, -3600.0, 66.0, 86400.0 * 365, -1e9}) {
    FakeSuperLink server;
    FakeTransport transport(server, "first");
    transport.clock_error = error;
    Connection connection(transport);
    EXPECT_TRUE(connection.Join(30).ok()) << error;
    EXPECT_EQ(server.calls.size(), 4u);  // one was refused
    EXPECT_NEAR(connection.Now(), server.now, 1) << error;
  }
}

TEST(Connection, OneSignatureServesTheCallsOfAMinute) {
  Joined with;
  const int before = with.transport.num_signed;
  with.server.now = 1'800'000'060;  // a whole minute
  for (int i = 0; i < 59; ++i, ++with.server.now) ASSERT_TRUE(with.connection.Pull().ok());
  EXPECT_EQ(with.transport.num_signed, before + 1);
  with.server.now = 1'800'000'120;
  ASSERT_TRUE(with.connection.Pull().ok());
  EXPECT_EQ(with.transport.num_signed, before + 2);
}

TEST(Connection, WrongDateOfTheServerIsIgnored) {
  Joined with;
  for (const double time : {-1.0, 0.0, 1e-300, 1e300, HUGE_VAL, std::nan("")}) {
    with.transport.change = [&](std::string_view, HttpReply& reply) { reply.server_time = time; };
    EXPECT_TRUE(with.connection.Pull().ok());
    EXPECT_NEAR(with.connection.Now(), with.server.now, 1);
  }
  with.transport.clock_error = 1e200;
  EXPECT_EQ(Connection(with.transport).Join(30, with.node).status().code(), StatusCode::kInvalidArgument);
}

TEST(Connection, RefusedSignatureIsNotTriedForEver) {
  FakeSuperLink server;
  FakeTransport transport(server, "first");
  transport.change = [&](std::string_view, HttpReply& reply) {
    reply.status = 401;
    server.now += 100;
    reply.server_time = server.now + 1000 * static_cast<double>(server.calls.size());
  };
  EXPECT_EQ(CodeOf(Connection(transport).Join(30)), StatusCode::kInvalidArgument);
  EXPECT_EQ(server.calls.size(), 2u);
}

TEST(Connection, ObjectThatIsNotThereYetMayBeAskedForAgain) {
  Joined with;
  const Incoming request = with.Pull();
  with.server.Hide(request.record_id);
  EXPECT_EQ(CodeOf(with.connection.Fetch(request, kMostBytes)), StatusCode::kIo);
  with.server.Hide(request.record_id);
  EXPECT_TRUE(with.connection.Fetch(request, kMostBytes).ok());
  ASSERT_TRUE(with.connection.Confirm(request).ok());
  EXPECT_EQ(CodeOf(with.connection.Fetch(request, kMostBytes)), StatusCode::kCancelled);
}

TEST(Connection, FetchIsBounded) {
  Joined with;
  const Incoming request = with.Pull();
  const size_t size = with.server.objects()[request.record_id].size();
  EXPECT_TRUE(with.connection.Fetch(request, size).ok());
  EXPECT_EQ(CodeOf(with.connection.Fetch(request, size - 1)), StatusCode::kInvalidData);
}

TEST(Connection, ObjectsOfAnotherContentAreRefused) {
  Joined with;
  const Incoming request = with.Pull();
  for (const std::string& id : {request.metadata.message_id, request.record_id}) {
    std::string& content = with.server.objects()[id];
    const std::string kept = content;
    content.back() ^= 1;
    EXPECT_EQ(CodeOf(with.connection.Fetch(request, kMostBytes)), StatusCode::kInvalidData);
    content = kept;
  }
  EXPECT_TRUE(with.connection.Fetch(request, kMostBytes).ok());
}

TEST(Connection, RecordDictOfAnotherFormIsDownloaded) {
  Joined with;
  EXPECT_TRUE(with.Pull().record_id.size() == 64);
  with.server.record_dict = [](std::string_view id) { return JoinText("{\"wisp\":\"", id, "\"}"); };
  with.server.Ask(with.node, Question());
  const Incoming compact = with.Pull();
  with.server.calls.clear();
  EXPECT_TRUE(with.connection.Fetch(compact, kMostBytes).ok());
  EXPECT_EQ(with.server.calls.size(), 3u);
  with.server.objects()[compact.record_dict_id].back() = ']';
  EXPECT_EQ(CodeOf(with.connection.Fetch(compact, kMostBytes)), StatusCode::kInvalidData);
  with.server.record_dict = [](std::string_view id) { return JoinText("{\"other\": \"", id, "\"}"); };
  with.server.Ask(with.node, Question());
  EXPECT_EQ(CodeOf(with.connection.Fetch(with.Pull(), kMostBytes)), StatusCode::kInvalidData);
}

TEST(Connection, ErrorsTellWhatMayBeTriedAgain) {
  Joined with;
  int status = 0;
  std::string body;
  with.transport.change = [&](std::string_view, HttpReply& reply) { reply = {status, 0, body}; };
  const auto code = [&](int with_status, std::string with_body) {
    status = with_status;
    body = std::move(with_body);
    return CodeOf(with.connection.Pull());
  };
  for (const int again : {502, 503, 504}) EXPECT_EQ(code(again, ""), StatusCode::kIo);
  for (const int final : {301, 400, 401, 404, 412, 415, 500, 501}) {
    EXPECT_EQ(code(final, "<html>"), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(code(403, "{\"code\": 2007, \"detail\": \"over\"}"), StatusCode::kCancelled);
  EXPECT_EQ(code(403, "{\"code\": 2010}"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(403, ""), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(200, "<html>"), StatusCode::kInvalidData);
  EXPECT_EQ(code(200, std::string(100000, 'a')), StatusCode::kInvalidData);
  EXPECT_EQ(code(200, ""), StatusCode::kOk);
  status = 400;
  body = "{\"code\": 7, \"detail\": \"a\\u001b[2Jb\"}";
  EXPECT_EQ(with.connection.Pull().status().message(),
            "the fleet's server answers pull-messages with status 400 and code 7, a?[2Jb");
}

// Fails at each call of a round. The node starts anew each time with what it has kept. A request that was lost with the
// answer to pull-messages is lost; everything else ends in one reply.
TEST(Connection, RoundGoesOnAfterEachFault) {
  for (const Fault kind : {Fault::kNoConnection, Fault::kCut, Fault::kBusy}) {
    for (int at = 0; at < 8; ++at) {
      Joined with;
      int call = 0;
      with.transport.fault = [&](std::string_view) { return call++ == at ? kind : Fault::kNone; };
      std::string request_file, reply_file;
      // Sets the two files as it goes.
      const auto work = [&]() -> Result<Pushed> {
        if (reply_file.empty()) {
          if (request_file.empty()) {
            Connection pulling = with.connection;
            WISP_ASSIGN_OR_RETURN(const std::optional<Incoming> pulled, pulling.Pull());
            if (!pulled) return Pushed::kRefused;
            request_file = pulled->ToBytes();
          }
          WISP_ASSIGN_OR_RETURN(const Incoming request, Incoming::Parse(request_file));
          Connection connection(with.transport);
          WISP_RETURN_IF_ERROR(connection.Fetch(request, kMostBytes).status());
          reply_file = Reply::Make(request, Answer(), with.server.now)->ToBytes();
        }
        Connection connection(with.transport);
        WISP_RETURN_IF_ERROR(connection.Confirm(*Incoming::Parse(request_file)));
        WISP_ASSIGN_OR_RETURN(const Reply reply, Reply::Parse(reply_file));
        return connection.Push(reply);
      };
      const auto first = work();
      EXPECT_EQ(CodeOf(first), StatusCode::kIo) << "call " << at;
      const bool lost = kind == Fault::kCut && at == 0;
      const auto second = work();
      ASSERT_TRUE(second.ok()) << second.status().message();
      EXPECT_EQ(*second, lost ? Pushed::kRefused : Pushed::kStored) << "call " << at;
      EXPECT_EQ(with.server.Take().size(), lost ? 0u : 1u) << "call " << at;
    }
  }
}

TEST(Connection, ReplyThatArrivedIsNotSentTwice) {
  Joined with;
  const Reply reply = with.MakeReply(with.Pull());
  EXPECT_EQ(*with.connection.Push(reply), Pushed::kStored);
  with.server.calls.clear();
  EXPECT_EQ(*with.connection.Push(reply), Pushed::kStored);
  EXPECT_EQ(with.server.calls, (std::vector<std::string>{"push-messages", "pull-object"}));
  EXPECT_EQ(with.server.Take().size(), 1u);
  EXPECT_EQ(*with.connection.Push(reply), Pushed::kRefused);
}

TEST(Connection, RefusalIsToldApart) {
  {
    Joined with;
    const Incoming request = with.Pull();
    const Reply reply = with.MakeReply(request);
    with.server.now += 3601;
    EXPECT_EQ(*with.connection.Push(reply), Pushed::kRefused);
    EXPECT_EQ(CodeOf(Reply::Make(request, Answer(), with.connection.Now())), StatusCode::kCancelled);
  }
  {
    Joined with;
    const Incoming request = with.Pull();
    EXPECT_EQ(*with.connection.Push(with.MakeReply(request)), Pushed::kStored);
    const Reply other = *Reply::Make(request, ConfigRecord().SetWhole("round", 8), with.connection.Now());
    EXPECT_EQ(*with.connection.Push(other), Pushed::kRefused);
  }
  {
    Joined with;
    const Reply reply = with.MakeReply(with.Pull());
    with.server.run_over = true;
    EXPECT_EQ(CodeOf(with.connection.Push(reply)), StatusCode::kCancelled);
  }
}

TEST(Connection, EndedSessionIsBegunAnew) {
  Joined with;
  const Reply reply = with.MakeReply(with.Pull());
  int objects = 0;
  with.transport.fault = [&](std::string_view route) {
    if (route == "push-object" && ++objects == 2) with.server.EndSessions();
    return Fault::kNone;
  };
  EXPECT_EQ(CodeOf(with.connection.Push(reply)), StatusCode::kIo);
  EXPECT_TRUE(with.server.Take().empty());
  with.server.calls.clear();
  EXPECT_EQ(*with.connection.Push(reply), Pushed::kStored);
  EXPECT_EQ(with.server.calls, (std::vector<std::string>{"push-messages", "push-object", "push-object"}));
  EXPECT_EQ(with.server.Take().size(), 1u);
}

TEST(Connection, ServerGetsNoOtherObjects) {
  Joined with;
  const Reply reply = with.MakeReply(with.Pull());
  with.transport.change = [&](std::string_view route, HttpReply& answer) {
    if (route == "push-messages") answer.body = flower::WireWriter().Bytes(3, std::string(64, 'a')).Take();
  };
  EXPECT_EQ(CodeOf(with.connection.Push(reply)), StatusCode::kInvalidData);
}

TEST(Connection, RequestForAnotherNodeIsRefused) {
  Joined with;
  with.transport.change = [&](std::string_view, HttpReply& answer) {
    Incoming request = *Incoming::Parse(answer.body);
    request.metadata.dst_node_id = 5;
    answer.body = request.ToBytes();
  };
  EXPECT_EQ(CodeOf(with.connection.Pull()), StatusCode::kInvalidData);
}

}  // namespace
}  // namespace wisp::fleet::connection_test
