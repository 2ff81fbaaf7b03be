// The server's part of a fleet: whom a round asks, the exact sum of what they send, its noise, and the next model. It
// knows no network; ports/python/wisp/fleet does.
//
//   WISP_ASSIGN_OR_RETURN(const auto server, FleetServer::Open({.plan = plan, .base = &base, .folder = "films"}));
//   while (!server->done()) {
//     WISP_RETURN_IF_ERROR(server->BeginRound());              // charges, at the first round of a block
//     ... send server->weights() to nodes for which server->Asks(node) ...
//     if (server->Add(node, update) != kAdded) ...             // an absence
//     WISP_RETURN_IF_ERROR(server->EndRound());                // noise, step, and the round is durable
//     while (server->evaluation_due()) { BeginEvaluation, Asks, AddGain, EndEvaluation }
//   }
//
// Whom a round asks. The rounds are cut into blocks (FleetPlan), and in each block each training device is asked in
// exactly one round, which a keyed hash of its number draws. The key is secret, never saved, and drawn anew in each
// process: a device that is asked a second time in a block refuses, and one that is not asked at all is absent.
//
// Sensitivity and cost.
//   bound    UpdateGrid::Within, on every update, in integers. A node adds once a round at most. Sums are divided by
//            the plan's cohort, a constant
//   noise    one discrete Gaussian a coordinate, by privacy::NoiseProcess, before anything leaves EndRound
//   charges  BeginRound charges a block, random allocation of z, at its first round; evaluations likewise, of devices
//            that never train, in a ledger of their own
//   crash    what a round released is durable before EndRound returns, and nobody sees it earlier. An evaluation is
//            marked as done before its result is returned, so that it is never drawn twice. A round that was
//            begun and not ended released nothing; it runs again, on the same charge, with the devices that still may
//   absence  a device that is absent for reasons of its own only lowers the probability that it takes part, so the
//            figure stays a bound (docs/algorithms.md, section 17)
#ifndef WISP_RUNTIME_FLEET_SERVER_FLEET_SERVER_H_
#define WISP_RUNTIME_FLEET_SERVER_FLEET_SERVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "runtime/fleet/fleet_plan.h"
#include "runtime/fleet/round_model.h"
#include "runtime/fleet/update_grid.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/evaluation_rule.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/optimizer.h"

namespace wisp::fleet {

struct FleetServerOptions {
  FleetPlan plan;
  const ModelFile* base = nullptr;  // must outlive the server
  // Folder of the fleet's files: fleet.checkpoint, fleet.ledger, evaluators.ledger. It must exist.
  std::string folder;
  // Set: noise and the choice of devices repeat, and there is NO guarantee. For tests and simulations.
  std::optional<uint64_t> reproducible_seed = {};
};

enum class Added { kAdded, kNotAsked, kTwice, kOutOfBound };

// The noised sums of what devices found when they compared the model of a round with the base.
struct FleetEvaluation {
  uint32_t round = 0;  // the rounds that the evaluated model has learned from
  Evaluation sums;     // of gains in NDCG@10 / kGainScale
  // The mean gain of a device in NDCG@10, over the devices that were expected, and the deviation of its noise.
  double mean_gain = 0, deviation = 0;
  Verdict verdict;  // of all evaluations of the plan together, 5 % may err
};

class FleetServer {
 public:
  // Begins, or resumes from the folder. kInvalidArgument: plan and base do not fit. kInvalidData: the folder's files
  // belong to another plan. kPrivacyRefused: the plan was not paid for (another ledger, or an earlier budget).
  static Result<std::unique_ptr<FleetServer>> Open(const FleetServerOptions& options);

  const FleetPlan& plan() const { return plan_; }
  uint32_t round() const { return round_; }  // of the next round, from 0
  bool done() const { return round_ == plan_.rounds; }
  // The model that the next round starts from, as it travels.
  const std::string& weights() const { return wire_; }
  const RoundModel& model() const { return model_; }

  Status BeginRound();
  // True if the round, or the evaluation, that was begun asks this node.
  bool Asks(uint64_t node_id) const;
  Added Add(uint64_t node_id, std::string_view update);
  Status EndRound();

  bool evaluation_due() const { return due_.has_value(); }
  Status BeginEvaluation();
  // `gain`: DeviceGain of fleet_gain.h as it travels.
  Added AddGain(uint64_t node_id, std::string_view gain);
  Result<FleetEvaluation> EndEvaluation();

  // Writes the model of now. Its provenance says what the fleet's budget says.
  Status WriteModel(const std::string& path) const;
  // The figures of the fleet so far at the plan's delta, for readers of the models. kNothing before the first round.
  Result<privacy::LedgerFigures> GetFigures() const;

 private:
  FleetServer(const FleetServerOptions& options, RoundModel model, privacy::Ledger rounds,
              std::optional<privacy::Ledger> evaluations, std::vector<privacy::RandomStream> streams);
  std::string CheckpointPath() const { return folder_ + "/fleet.checkpoint"; }
  Status Restore();
  Status Save() const;
  Status ChargeBlock(privacy::Ledger& ledger, uint32_t block, bool evaluation);
  bool IsAllocated(uint64_t node_id, uint32_t block, uint32_t length, uint32_t place, bool evaluation) const;

  FleetPlan plan_;
  Sha256Hash plan_hash_;
  std::string folder_;
  std::optional<uint64_t> seed_;
  RoundModel model_;
  UpdateGrid grid_;
  privacy::Ledger rounds_;
  std::optional<privacy::Ledger> evaluations_;
  privacy::RandomStream noise_;
  privacy::RandomStream::Key allocation_;
  std::vector<float> held_;
  Optimizer optimizer_;
  std::string wire_;
  uint32_t round_ = 0;
  std::optional<uint32_t> due_;  // the evaluation that is due
  uint32_t evaluated_ = 0;       // evaluations that are done
  enum class Open { kNothing, kRound, kEvaluation } open_ = Open::kNothing;
  std::vector<int64_t> sum_;
  std::unordered_set<uint64_t> added_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_SERVER_FLEET_SERVER_H_
