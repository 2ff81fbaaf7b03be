// The plan of a fleet: many devices that train one model together, and show nobody what one of them holds. It is
// public, and the same for all devices. `wisp fleet plan` makes it, the server follows it, and a device checks it
// against its own policy (fleet_policy.h) before it does anything. fleet_budget.h has its noise and its costs.
//
//   WISP_ASSIGN_OR_RETURN(const FleetPlan plan, FleetPlan::FromText(text, "plan.json"));
//   if (IsEvaluator(plan, plan.hash(), node_id)) ...
//
// The rounds are cut into takes_part blocks of equal length. In each block a device that trains takes part in exactly
// one round, which the server draws in secret. So it takes part takes_part times at most, by construction, and can
// check that itself: one participation a block. A share of the devices evaluates and never trains, once a block at most
// too. Rounds, blocks and evaluations are counted from 0.
#ifndef WISP_RUNTIME_FLEET_FLEET_PLAN_H_
#define WISP_RUNTIME_FLEET_FLEET_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/fleet/sha256.h"
#include "runtime/train/optimizer.h"

namespace wisp::fleet {

struct FleetPlan {
  // The weights that train.
  enum class Part { kAll, kBlocks, kAdapter };
  static constexpr const char* kPartNames[] = {"all", "blocks", "adapter"};
  // kGradient: a device sends the clipped gradient of its record. kLocal: it takes steps of gradient descent on its own
  // record, and sends the clipped difference.
  enum class Method { kGradient, kLocal };
  static constexpr const char* kMethodNames[] = {"gradient", "local"};

  std::string name;               // for people and ledgers: "films"
  uint64_t base_hash = 0;         // ModelFile::content_hash() of the base; 0: not bound to a model yet
  uint64_t num_weights = 331520;  // d, the weights that train
  Part part = Part::kAll;
  uint32_t adapter_rank = 0;  // kAdapter: rows of each of its matrices; else 0
  uint64_t devices = 0;       // N as the operator declares it, a public number
  uint32_t rounds = 0;        // T
  uint32_t takes_part = 1;    // k, the most participations of a device; k divides T
  double evaluators = 0;      // the share of devices that evaluates and never trains
  uint32_t evaluations = 0;   // spread evenly over the rounds; k divides their number
  Method method = Method::kGradient;
  uint32_t local_steps = 0;  // kLocal
  double local_learning_rate = 0;
  double clipping_norm = 1;     // C, of an update
  uint32_t bits = 8;            // of a number of an update on its way: 8, 16 or 32
  uint32_t weight_bits = 16;    // of a weight on its way: 16 or 32
  double noise_multiplier = 0;  // z, of the sum of a round, in clipping norms
  double epsilon = 0;           // the promise to each device, without amplification, over all of its participations
  double delta = 1e-5;
  uint32_t round_seconds = 3600;  // the deadline of a round
  OptimizerOptions optimizer;     // of the server

  // kInvalidArgument or kPrivacyRefused, with a sentence that begins with `source` and names the field, its value and
  // what is allowed. It does not compute what the plan costs: CheckBudget (fleet_budget.h) does.
  Status Check(const std::string& source = "the plan") const;

  // Flat JSON, with a newline at its end. FromText reads it back to the same plan, and refuses a field that is missing,
  // unknown, twice or out of its range; `source` begins the sentence. Layout does not matter.
  std::string ToText() const;
  static Result<FleetPlan> FromText(std::string_view text, const std::string& source);
  // SHA-256 of ToText(): the plan's name in messages, signatures and ledgers.
  Sha256Hash hash() const;

  static constexpr size_t kMostTextBytes = 1 << 14;

  // n: the training devices that are expected in a round. Sums are divided by it whoever comes.
  // cohort_of_evaluation: the same for an evaluation; 0 without evaluations.
  double cohort() const;
  double cohort_of_evaluation() const;
  uint32_t rounds_per_block() const { return rounds / takes_part; }
  uint32_t BlockOf(uint32_t round) const { return round / rounds_per_block(); }
  // The number of the evaluation that follows a round. It lies in the round's block.
  std::optional<uint32_t> EvaluationAfter(uint32_t round) const;

  // K, a power of two: the whole number that stands for the clipping norm in an update on its way. 2^30, the step of
  // the noise's grid, is a multiple of it.
  uint64_t steps_per_clip() const;
  uint64_t bytes_of_update() const { return num_weights * (bits / 8); }
  uint64_t bytes_of_weights() const { return num_weights * (weight_bits / 8); }

  bool operator==(const FleetPlan& other) const { return ToText() == other.ToText(); }
};

const char* GetName(FleetPlan::Part part);
const char* GetName(FleetPlan::Method method);

// The role follows from a hash of the plan and the server's number of the device: nobody chooses it, and everybody can
// check it.
bool IsEvaluator(const FleetPlan& plan, const Sha256Hash& plan_hash, uint64_t node_id);

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_PLAN_H_
