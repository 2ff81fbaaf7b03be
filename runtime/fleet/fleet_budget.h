// The noise that a fleet's plan needs, and the two figures of what it costs a device. No other file of the fleet makes
// a mechanism or a noise multiplier (tests/structure.sh).
//
//   WISP_ASSIGN_OR_RETURN(const FleetPlan plan, MakePlan({.name = "films", .devices = 100'000, .rounds = 100,
//                                                         .epsilon = 3, .delta = 1e-6}));
//   WISP_ASSIGN_OR_RETURN(const FleetCost cost, CostOf(plan));   // cost.device <= 3
//
// A participation is one update, or one gain of an evaluation: the server adds up what has at most the clipping norm,
// and releases the sum with Gaussian noise of noise_multiplier clipping norms. The unit is a device with all of its
// data. Both figures include the price of discrete noise (exact_sum.h).
#ifndef WISP_RUNTIME_FLEET_FLEET_BUDGET_H_
#define WISP_RUNTIME_FLEET_FLEET_BUDGET_H_

#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::fleet {

// A plan whose noise_multiplier is the smallest one of four digits that keeps the promise of epsilon at delta to each
// device: takes_part Gaussians. The noise of `goal` is not read. kPrivacyRefused if no noise keeps it.
Result<FleetPlan> MakePlan(FleetPlan goal);
// MakePlan for a promise to devices against readers alone (FleetCost::readers). The plan's own epsilon follows from the
// noise; that of `goal` is not read.
Result<FleetPlan> MakePlanForReaders(FleetPlan goal, double epsilon);

struct FleetCost {
  // For each device, whoever looks and whatever they know, as long as the server adds the noise: at most takes_part
  // Gaussians.
  double device = 0;
  // For each device that trains, against those who see every model and do not learn in which rounds it took part: in
  // each block one round of many. The draw of the server has to be secret.
  double readers = 0;
  // Against the same readers, for each device that evaluates; 0 without evaluations.
  double readers_of_evaluations = 0;
};
// Epsilons at the plan's delta. Takes up to a second with many rounds.
Result<FleetCost> CostOf(const FleetPlan& plan);

// kPrivacyRefused if the plan's noise does not keep the promise of its epsilon and delta. The plan must pass Check().
Status CheckBudget(const FleetPlan& plan);

// Some participations of one device: what its ledger plans and charges. `num_weights` numbers of noise are drawn for
// each.
struct Participations {
  double noise_multiplier = 0;
  uint64_t num_weights = 0;
  uint64_t count = 1;
};
Result<privacy::ChargeRequest> ChargeFor(const Participations& participations, const std::string& run,
                                         const std::string& purpose);
// The charge of the server for `blocks` blocks of a plan: for rounds of training, or for evaluations, which have a
// ledger of their own because other devices take part in them.
enum class Role { kTrains, kEvaluates };
Result<privacy::ChargeRequest> BlockCharge(const FleetPlan& plan, Role role, uint32_t blocks);

// Epsilon of so many participations at a delta.
Result<double> EpsilonOf(const Participations& participations, double delta);

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_BUDGET_H_
