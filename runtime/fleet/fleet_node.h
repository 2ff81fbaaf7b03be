// A node of a fleet: it joins a server of Flower, asks for work, does what its policy allows, and sends the answer.
//
//   WISP_ASSIGN_OR_RETURN(const auto node, FleetNode::Open(std::move(device), transport, "fleet.reply"));
//   WISP_ASSIGN_OR_RETURN(const FleetNode::Progress progress, node->Work(60));   // again later, also after a crash
//
// The order of an answer, which no crash changes:
//
//   1. the server delivers a request, which it does once; PATH.request has it
//   2. its objects are fetched, and the whole reply is made and stored in PATH
//   3. the server hears that the request arrived; PATH.request is removed
//   4. the participation is charged; where records are protected, before step 2 computes (fleet_device.h)
//   5. the first byte of the reply leaves, and at last the server has all of it; PATH is removed
//
// A process that is killed in between goes on with the files: a stored request is fetched again, a stored reply is sent
// bit for bit and charged if it was not yet. A reply that was not charged before its time was over is an absence. One
// that was charged and then came too late stays charged: participations charged are at least the replies that arrived,
// and each reply that arrived was charged. PATH.node has the node's number at the server, for the same key and server.
// A request that is answered with an absence takes the same calls whatever the reason is.
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
  // `reply_path` is the file of an unfinished reply. `transport` must outlive the node. `ask_seconds`: the mean time
  // between two questions for work while nothing is to do; 0: 30. A question costs Flower's server 10 ms or more, so N
  // nodes must not ask faster than every N / 33 seconds.
  static std::unique_ptr<FleetNode> Open(std::unique_ptr<FleetDevice> device, Transport& transport,
                                         std::string reply_path, double ask_seconds = 0);

  struct Progress {
    uint32_t answers = 0;         // that the server has got in this call
    uint32_t participations = 0;  // of this device, in all
    double wait_seconds = 0;      // after which the app should call again: half to one and a half of ask_seconds
  };
  // Works for about so many seconds; 0: until nothing is left to do now. Called from one thread at a time. kIo: the
  // server cannot be reached, or a file cannot be written; call again later. Other errors need somebody: the ledger
  // fails, the server refuses this node. Whatever the error, the next call goes on where this one stopped.
  // `say` gets a sentence about everything that happened, for the device's own log. `wait` pauses for so many seconds
  // and returns false to stop; without it the call never waits.
  Result<Progress> Work(double seconds, const std::function<void(const std::string&)>& say,
                        const std::function<bool(double)>& wait = {});

 private:
  using Say = std::function<void(const std::string&)>;

  FleetNode(std::unique_ptr<FleetDevice> device, Transport& transport, std::string reply_path, double ask_seconds);
  // Makes the node count as online. It joins anew if the server does not know it any more.
  Status Join();
  // Joins after a call was refused. True if the server had forgotten the node, which then has another number.
  Result<bool> WasForgotten();
  // Sends the stored reply, if there is one.
  Status SendReply(const Say& say);
  // Goes on with the stored request, or asks for one, and answers it. False if the server has no request.
  Result<bool> Answer(const Say& say);
  Result<std::optional<flower::Incoming>> LoadRequest(const Say& say) const;
  Result<std::optional<flower::Incoming>> PullRequest(const Say& say);
  // Tells the server that the request arrived, and forgets it.
  Status Confirm(const flower::Incoming& request);
  // An error only if the device's ledger fails.
  Result<FleetDevice::Taken> Take(const flower::ConfigRecord& record);

  std::unique_ptr<FleetDevice> device_;
  Transport& transport_;
  flower::Connection connection_;
  std::string path_, request_path_, node_path_;
  std::string policy_hash_, node_owner_;  // of the policy; of the server and the key
  double ask_seconds_;
  std::optional<uint64_t> node_id_;
  uint64_t stored_id_ = 0;  // in the file; 0: none
  double heard_ = 0;        // when the server last heard that the node is online
  uint32_t answers_ = 0;    // in this call of Work
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_NODE_H_
