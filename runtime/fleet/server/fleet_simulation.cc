#include "runtime/fleet/server/fleet_simulation.h"

namespace wisp::fleet {

FleetSimulation::FleetSimulation(const FleetPolicy& policy, const ModelFile& base, const data::Sequences& sequences,
                                 std::span<const uint64_t> nodes, size_t num_threads)
    : sequences_(sequences), workers_(num_threads) {
  for (size_t user = 0; user < std::min(nodes.size(), sequences.num_users()); ++user) devices_[nodes[user]].user = user;
  for (size_t w = 0; w < workers_.size(); ++w) of_workers_.push_back(std::make_unique<RoundWorker>(policy, base));
}

std::string FleetSimulation::Answer(const RoundRequest& request, std::span<const uint64_t> nodes,
                                    std::vector<std::string>& updates) {
  updates.assign(nodes.size(), {});
  std::vector<std::string> why(workers_.size());
  workers_.Run([&](size_t w) {
    for (size_t i = w; i < nodes.size(); i += workers_.size()) {
      const auto found = devices_.find(nodes[i]);
      if (found == devices_.end()) continue;
      Device& device = found->second;
      const RoundWorker::Task task = of_workers_[w]->Accept(request, nodes[i], device.participations);
      if (!task.why_absent.empty()) why[w] = task.why_absent;
      if (!task.why_absent.empty() || task.kind == TaskKind::kKeep) continue;
      data::Sequences own;
      const std::span<const int32_t> items = sequences_.User(device.user);
      own.items.assign(items.begin(), items.end());
      own.offsets = {0, items.size()};
      Result<RoundWorker::Answer> computed = of_workers_[w]->Compute(task, nodes[i], own);
      if (!computed.ok()) why[w] = computed.status().message();
      if (!computed.ok()) continue;
      updates[i] = std::move(computed->update);
      device.participations.push_back(task.participation);
    }
  });
  for (const std::string& reason : why) {
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace wisp::fleet
