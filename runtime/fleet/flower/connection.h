// A node's calls of Flower's server, the SuperLink of flwr 1.40 and later: protobuf over HTTP, each call signed.
//
// Nothing is kept in files and nothing is tried again, but for one thing: if the server refuses the device's clock, the
// call is made once more with the server's. Callers decide by the code of an error what to do:
//
//   kIo               no answer, or the server is busy, or an object is not there yet: the same call may succeed later
//   kCancelled        the run is over or the request is gone: forget the request and the reply to it
//   kUnsupported      the message is not for wisp: skip it
//   kInvalidArgument  the server refuses the call: the device's key is not enrolled, or this is no such server
//   kInvalidData      the answer breaks the protocol, or more comes than is allowed
//
//   Connection connection(transport);
//   WISP_ASSIGN_OR_RETURN(node, connection.Join(1800, node));                          // keep it
//   WISP_ASSIGN_OR_RETURN(const std::optional<Incoming> request, connection.Pull());   // keep it: it comes once
//   WISP_ASSIGN_OR_RETURN(const ConfigRecord record, connection.Fetch(*request, most_bytes));
//   WISP_ASSIGN_OR_RETURN(const Reply reply, Reply::Make(*request, answer, connection.Now()));   // keep it
//   WISP_RETURN_IF_ERROR(connection.Confirm(*request));
//   WISP_ASSIGN_OR_RETURN(const Pushed pushed, connection.Push(reply));
#ifndef WISP_RUNTIME_FLEET_FLOWER_CONNECTION_H_
#define WISP_RUNTIME_FLEET_FLOWER_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/fleet/flower/config_record.h"
#include "runtime/fleet/flower/messages.h"
#include "runtime/fleet/transport.h"

namespace wisp::fleet::flower {

enum class Pushed {
  kStored,   // the server has the whole reply
  kRefused,  // it has it not, and does not want it: too late, or the fleet has already taken it out
};

class Connection {
 public:
  // The transport must outlive the connection.
  explicit Connection(Transport& transport) : transport_(transport) {}

  // Makes the node count as online for twice `heartbeat_seconds` (10 to 1800), and registers its key if the server does
  // not know it. Returns the node's id, which stays the same for a key: keep it, and give it as `known_node` after a
  // restart. Without it, a node that still counts as online cannot join again (kIo).
  Result<uint64_t> Join(double heartbeat_seconds, uint64_t known_node = 0);
  Status Heartbeat();
  // Takes the node offline. Unregister() removes it: its key gets another id next time. Both need Join().
  Status Leave();
  Status Unregister();

  // The next request for this node, or empty. The server gives each request once.
  Result<std::optional<Incoming>> Pull();
  // Downloads a request's record, of at most `most_bytes` as an object, and checks all hashes. Can be done again until
  // Confirm, which lets the server delete the objects: keep the record or the reply before.
  Result<ConfigRecord> Fetch(const Incoming& request, size_t most_bytes);
  Status Confirm(const Incoming& request);
  // Sends what the server lacks of a reply. Safe to do again after every error, also by another process, before Join().
  Result<Pushed> Push(const Reply& reply);

  // The server's time as far as it is known: the device's clock, corrected by the date of the last answer.
  double Now() const { return transport_.Now() + clock_offset_; }

 private:
  struct Pulled {
    bool found = false, available = false;
    std::string content;
  };

  Result<HttpReply> Send(std::string_view route, std::string_view body, size_t most_bytes);
  // The body of an answer with status 200; otherwise an error of the kinds above.
  Result<std::string> Call(std::string_view route, WireWriter request, size_t most_bytes);
  Result<Pulled> PullObject(const Metadata& of, uint64_t node, std::string_view id, size_t most_bytes);
  Result<std::string> Download(const Metadata& of, std::string_view id, size_t most_bytes);
  Status NeedsNode() const;

  Transport& transport_;
  uint64_t node_ = 0;  // 0 before Join()
  double heartbeat_seconds_ = 0;
  double clock_offset_ = 0;
  std::string signed_timestamp_, signature_;
};

}  // namespace wisp::fleet::flower

#endif  // WISP_RUNTIME_FLEET_FLOWER_CONNECTION_H_
