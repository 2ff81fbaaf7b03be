// The answer of a device to a server that it does not trust: an update, a gain, or nothing. FleetDevice adds a device's
// ledger and log to it; FleetSimulation runs many devices with one worker a thread.
//
//   RoundWorker worker(policy, base, verify);
//   WISP_ASSIGN_OR_RETURN(const RoundWorker::Task task, worker.Accept(request, node_id, participations));
//   if (task.why_absent.empty()) send worker.Compute(task, node_id, sequences)
//
// All that a device does follows from its policy and from public numbers: the plan, its role, the round, and how often
// it took part. Whatever else a server asks is an absence, which looks the same for all reasons. What the device holds
// decides nothing: without records it sends zeros.
#ifndef WISP_RUNTIME_FLEET_ROUND_WORKER_H_
#define WISP_RUNTIME_FLEET_ROUND_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/data/sequences.h"
#include "runtime/fleet/device_update.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/fleet/fleet_policy.h"
#include "runtime/model/model_file.h"

namespace wisp::fleet {

// kKeep: the model of the fleet for the device to keep; there is no answer.
enum class TaskKind { kTrain, kEvaluate, kKeep };
inline constexpr std::pair<const char*, TaskKind> kTaskNames[] = {
    {"train", TaskKind::kTrain}, {"evaluate", TaskKind::kEvaluate}, {"keep", TaskKind::kKeep}};
const char* GetName(TaskKind kind);

struct RoundRequest {
  std::string_view plan, task;
  int64_t round = 0;  // of an evaluation: the rounds before it
  std::string_view weights, signature;
};

// A device takes part once in a block of a plan, in one role.
struct Participation {
  std::string plan;  // the plan's hash in hex, its first 16 digits
  uint32_t block = 0, round = 0;

  // "0123456789abcdef 3 17", and back; nullopt for another text, or one with something behind it that is no blank.
  std::string ToText() const;
  static std::optional<Participation> Parse(std::string_view text);
  bool operator==(const Participation&) const = default;
};

// The text that an operator signs for a round.
std::string TextToSign(const RoundRequest& request);

class RoundWorker {
 public:
  // Checks an operator's signature, in DER, of a text.
  using Verify = std::function<Status(const std::string& key_pem, std::string_view text, std::string_view signature)>;

  // `base` must outlive the worker. `verify` is needed if the policy names a key.
  RoundWorker(FleetPolicy policy, const ModelFile& base, Verify verify = {});

  struct Task {
    std::string why_absent;  // not empty: an absence, and why, for the device's own log; nothing else is set
    TaskKind kind = TaskKind::kTrain;
    Participation participation;
  };
  // Decides whether the node takes part, and takes plan and weights of the request. `before`: all its participations.
  Task Accept(const RoundRequest& request, uint64_t node_id, std::span<const Participation> before);
  struct Answer {
    std::string update;          // or a gain, as it travels
    std::string why_zeros = {};  // not empty: the private run was refused, and why, for the device's own log
  };
  // The answer of a device with these sequences. `records` is the ledger of its records, which a policy that protects
  // them needs, and only that. If their run is refused, zeros are sent: an absence would be no public fact. kIo: the
  // ledger cannot be charged.
  Result<Answer> Compute(const Task& task, uint64_t node_id, const data::Sequences& sequences,
                         privacy::Ledger* records = nullptr);

  const FleetPolicy& policy() const { return policy_; }
  const FleetPlan& plan() const { return plan_; }  // the newest one that was taken
  // The model of the newest request, and the weights that it holds.
  const RoundModel& model() const { return update_->model(); }
  std::span<const float> held() { return update_->held(); }
  // The mean gain of this model over the base for the newest events of the sequences, in steps (fleet_gain.h).
  int64_t FindGain(const data::Sequences& sequences, int64_t* square = nullptr);

 private:
  Status TakePlan(std::string_view text);
  Result<Answer> ComputePrivately(const Task& task, uint64_t seed, const data::Sequences& sequences,
                                  privacy::Ledger& records);
  std::string FindReason(const RoundRequest& request, uint64_t node_id, std::span<const Participation> before,
                         Task& task);

  FleetPolicy policy_;
  const ModelFile* base_;
  Verify verify_;
  std::string plan_text_, weights_;
  FleetPlan plan_;
  Sha256Hash plan_hash_{};
  std::unique_ptr<DeviceUpdate> update_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_ROUND_WORKER_H_
