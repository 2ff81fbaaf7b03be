// A node of a fleet: it joins a server of Flower, asks for work, does what its policy allows, and sends the answer.
//
//   WISP_ASSIGN_OR_RETURN(const auto node, FleetNode::Open(std::move(device), transport, "fleet.reply"));
//   WISP_ASSIGN_OR_RETURN(const FleetNode::Progress progress, node->Work(60));   // again later, also after a crash
//
// The order of an answer, which no crash changes: the whole reply is stored in a file; its participation is charged;
// its first byte leaves; the server has all of it; the file is removed. A process that is killed in between sends the
// stored reply again, bit for bit, and charges it if it was not charged yet. A request that was taken from the server
// and not answered before a crash is an absence.
#ifndef WISP_RUNTIME_FLEET_FLEET_NODE_H_
#define WISP_RUNTIME_FLEET_FLEET_NODE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/fleet/fleet_device.h"
#include "runtime/fleet/flower/connection.h"
#include "runtime/fleet/transport.h"

namespace wisp::fleet {

class FleetNode {
 public:
  // `reply_path` is the file of an unfinished reply. `transport` must outlive the node.
  static std::unique_ptr<FleetNode> Open(std::unique_ptr<FleetDevice> device, Transport& transport,
                                         std::string reply_path);

  struct Progress {
    uint32_t answers = 0;         // that the server has got in this call
    uint32_t participations = 0;  // of this device, in all
    double wait_seconds = 0;      // after which the app should call again
  };
  // Works for about so many seconds; 0: until nothing is left to do now. Called from one thread at a time. kIo: the
  // server cannot be reached; call again later. Other errors need somebody: the ledger fails, the key is not enrolled.
  // `say` gets a sentence about everything that happened, for the device's own log. `wait` pauses for so many seconds
  // and returns false to stop; without it the call never waits.
  Result<Progress> Work(double seconds, const std::function<void(const std::string&)>& say,
                        const std::function<bool(double)>& wait = {});

 private:
  using Say = std::function<void(const std::string&)>;

  FleetNode(std::unique_ptr<FleetDevice> device, Transport& transport, std::string reply_path)
      : device_(std::move(device)), transport_(transport), connection_(transport), path_(std::move(reply_path)) {}
  // Sends a stored reply, if there is one.
  Status Finish(const Say& say);
  // Asks once. True if there was a request.
  Result<bool> Ask(const Say& say);
  Status Join();

  std::unique_ptr<FleetDevice> device_;
  Transport& transport_;
  flower::Connection connection_;
  std::string path_;
  std::optional<uint64_t> node_id_;
  double heard_ = 0;      // when the server last heard from the node
  uint32_t answers_ = 0;  // in this call of Work
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_NODE_H_
