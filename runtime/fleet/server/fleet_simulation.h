// Many devices of a fleet in one process, for trying plans: the workers of real devices (round_worker.h), without
// ledgers, messages and files. For equal node numbers and seeds, the updates are those of real devices, bit for bit.
//
//   FleetSimulation fleet(policy, base, sequences, num_threads);   // device i holds the sequence of user i
//   fleet.Answer(request, nodes, [&](uint64_t node, std::string_view update) { ... });
#ifndef WISP_RUNTIME_FLEET_SERVER_FLEET_SIMULATION_H_
#define WISP_RUNTIME_FLEET_SERVER_FLEET_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/data/sequences.h"
#include "runtime/fleet/round_worker.h"

namespace wisp::fleet {

class FleetSimulation {
 public:
  // nodes[i] is the server's number of the device that holds user i. What the arguments refer to must outlive this.
  FleetSimulation(const FleetPolicy& policy, const ModelFile& base, const data::Sequences& sequences,
                  std::span<const uint64_t> nodes, size_t num_threads);

  // One message to these nodes. updates[i] is what nodes[i] sends; empty: it is absent, or unknown. Returns why the
  // last absent one was absent.
  std::string Answer(const RoundRequest& request, std::span<const uint64_t> nodes, std::vector<std::string>& updates);

 private:
  struct Device {
    size_t user = 0;
    std::vector<Participation> participations;
  };
  const data::Sequences& sequences_;
  std::unordered_map<uint64_t, Device> devices_;
  Workers workers_;
  std::vector<std::unique_ptr<RoundWorker>> of_workers_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_SERVER_FLEET_SIMULATION_H_
