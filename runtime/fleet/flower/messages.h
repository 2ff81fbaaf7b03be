// A request of the fleet's server and the reply to it, as Flower's messages.
//
// Both can be kept in a file: the server delivers a message once, and a reply is made once and sent again bit for bit.
//
//   Incoming request = ...;                                     // Connection::Pull
//   WriteFile(path, request.ToBytes());
//   WISP_ASSIGN_OR_RETURN(const Reply reply, Reply::Make(request, record, connection.Now()));
//   WriteFile(path, reply.ToBytes());                           // later: Reply::Parse(ReadFile(path))
#ifndef WISP_RUNTIME_FLEET_FLOWER_MESSAGES_H_
#define WISP_RUNTIME_FLEET_FLOWER_MESSAGES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/fleet/flower/config_record.h"
#include "runtime/fleet/flower/wire.h"

namespace wisp::fleet::flower {

inline constexpr uint64_t kServerNode = 1;  // the node id of Flower's SuperLink

struct Metadata {
  uint64_t run_id = 0;
  std::string message_id;  // the id of the message's object
  uint64_t src_node_id = 0, dst_node_id = 0;
  std::string reply_to_message_id, group_id;
  double ttl = 0;  // seconds
  std::string message_type;
  double created_at = 0;  // seconds since 1970
  std::optional<uint64_t> src_task_id, dst_task_id;

  double expires_at() const { return created_at + ttl; }
  bool operator==(const Metadata&) const = default;
};

WireWriter EncodeMetadata(const Metadata& metadata);
Result<Metadata> DecodeMetadata(std::string_view bytes);

// A request, before its objects are downloaded.
struct Incoming {
  Metadata metadata;
  std::string record_dict_id, record_id;  // the objects below the message

  // Reads the answer to pull-messages; empty if there was no message. kUnsupported: the message is not for wisp and
  // may be skipped. Checks all but the node that it is for.
  static Result<std::optional<Incoming>> FromAnswer(std::string_view answer);

  std::string ToBytes() const;
  static Result<Incoming> Parse(std::string_view bytes);
};

class Reply {
 public:
  struct Object {
    std::string id, content;
  };

  // `now` is the server's time. kCancelled: the request's time is over. Only whole seconds of `now` leave the device,
  // because more would tell how long it worked.
  static Result<Reply> Make(const Incoming& request, const ConfigRecord& record, double now);

  // Everything is checked: what is read is what ToBytes() wrote, to the bit.
  static Result<Reply> Parse(std::string_view bytes);
  std::string ToBytes() const;

  const Metadata& metadata() const { return metadata_; }
  // Children first, which is the order of sending.
  std::span<const Object> objects() const { return objects_; }
  // The body of push-messages.
  std::string PushRequest() const;

 private:
  Reply() = default;

  Metadata metadata_;
  std::array<Object, 3> objects_;  // ConfigRecord, RecordDict, Message
};

}  // namespace wisp::fleet::flower

#endif  // WISP_RUNTIME_FLEET_FLOWER_MESSAGES_H_
