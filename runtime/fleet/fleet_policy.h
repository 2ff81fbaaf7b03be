// The policy of a fleet's device: what it lets any server do, whatever a plan asks. It is a file of the app,
// policy.json, and comes with it; nothing that a server sends changes it.
//
//   WISP_ASSIGN_OR_RETURN(const FleetPolicy policy, FleetPolicy::FromText(text, "policy.json"));
//   WISP_RETURN_IF_ERROR(policy.Allows(plan));
#ifndef WISP_RUNTIME_FLEET_FLEET_POLICY_H_
#define WISP_RUNTIME_FLEET_FLEET_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/fleet/plan_fields.h"

namespace wisp::fleet {

struct FleetPolicy {
  std::string server;  // https://host:port/path; http only for this machine
  // The operator's public key, PEM, which vouches for plans and weights. Empty: only the server's certificate does, and
  // the statement says so.
  std::string operator_key;
  uint32_t takes_part = 0;      // the most participations of this device, in all plans together
  double noise_multiplier = 0;  // the smallest
  double clipping_norm = 0;     // the largest
  double cohort = 0;            // the smallest that a plan declares
  double delta = 0;             // the largest
  SetOf<FleetPlan::Method> methods;
  SetOf<FleetPlan::Part> parts;
  uint32_t local_steps = 0;      // the most
  uint64_t most_bytes_up = 0;    // of an update
  uint64_t most_bytes_down = 0;  // of the weights of a round
  bool evaluates = false;        // whether the device answers when it is asked to evaluate
  // Privacy of each record on the device against everybody, the server too: an update is then the change of a private
  // run on these records. The promise holds for all participations together. 0: no such promise, and no other number.
  double records_epsilon = 0, records_delta = 0;
  uint32_t records_public = 0;  // the declared number of records of a device
  uint32_t records_batch = 0;   // the records that are expected in a step

  bool protects_records() const { return records_epsilon > 0; }

  // A sentence for statements: whose word a device takes for plans and weights.
  std::string ExplainTrust() const;

  // kPrivacyRefused, with a sentence that names the first thing that the policy does not allow, and what it allows.
  Status Allows(const FleetPlan& plan) const;

  // Flat JSON as that of FleetPlan, in which "operator_key" may be missing.
  Status Check(const std::string& source = "the policy") const;
  std::string ToText() const;
  static Result<FleetPolicy> FromText(std::string_view text, const std::string& source);
  static constexpr size_t kMostTextBytes = 1 << 14;
};

// The tightest policy that allows the plan, without a promise for records.
FleetPolicy MakePolicy(const FleetPlan& plan, const std::string& server);

// Checks an address that devices send updates to. kInvalidArgument begins with `whose` ("--server").
Status CheckServer(const std::string& url, const std::string& whose);

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_POLICY_H_
