#include "runtime/fleet/fleet_budget.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/decimal.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/kinds/random_allocation.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/gain_sums.h"

namespace wisp::fleet {

using privacy::Mechanism;

namespace {

// The price of discrete noise in so many sums. The grid's steps are those of a clipping norm, whatever that is.
double Slack(double noise_multiplier, uint64_t num_weights, uint64_t sums) {
  const privacy::ExactGrid grid(1, num_weights);
  return privacy::DiscretisationLoss(
      {.sigma_in_steps = grid.sigma_in_steps(noise_multiplier), .num_coordinates = num_weights, .num_steps = sums});
}

Result<Mechanism> ByItself(double noise_multiplier, uint64_t count) {
  return Mechanism::Gaussian({.noise_multiplier = noise_multiplier, .count = count});
}

// One of `rounds` / `blocks` rounds in each block.
Result<Mechanism> Hidden(double noise_multiplier, uint64_t rounds, uint64_t blocks) {
  return privacy::RandomAllocation(
      {.noise_multiplier = noise_multiplier, .epoch_steps = rounds / blocks, .epochs = blocks});
}

Result<double> EpsilonWith(const Mechanism& mechanism, double slack, double delta) {
  WISP_ASSIGN_OR_RETURN(const privacy::Delta at, privacy::Delta::Create(delta));
  privacy::Composition composition;
  composition.Add(mechanism, privacy::NoiseKind::kSecure, slack);
  return composition.Epsilon(at);
}

// The least noise that random allocation accounts for.
constexpr double kLeastNoise = 0.1;

// The number that EpsilonText shows: four digits, and never less than the noise that was found.
double RoundedUp(double noise_multiplier) {
  const std::string text = privacy::EpsilonText(noise_multiplier, 4);
  double rounded = noise_multiplier;
  (void)ReadDecimal(text.data(), text.data() + text.size(), rounded);
  return std::max({rounded, noise_multiplier, kLeastNoise});
}

}  // namespace

Result<double> EpsilonOf(const Participations& p, double delta) {
  WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, ByItself(p.noise_multiplier, p.count));
  return EpsilonWith(mechanism, Slack(p.noise_multiplier, p.num_weights, p.count), delta);
}

Result<privacy::ChargeRequest> ChargeFor(const Participations& p, const std::string& run, const std::string& purpose) {
  WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, ByItself(p.noise_multiplier, p.count));
  return privacy::ChargeRequest{.mechanism = mechanism,
                                .run = run,
                                .purpose = purpose,
                                .loss_slack = Slack(p.noise_multiplier, p.num_weights, p.count)};
}

Result<privacy::ChargeRequest> BlockCharge(const FleetPlan& plan, Role role, uint32_t blocks) {
  const bool trains = role == Role::kTrains;
  const uint64_t sums = (trains ? plan.rounds : plan.evaluations) / plan.takes_part * blocks;
  WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, Hidden(plan.noise_multiplier, sums, blocks));
  const double slack =
      trains ? Slack(plan.noise_multiplier, plan.num_weights, sums)
             : privacy::DiscretisationLoss(
                   {.sigma_in_steps = GainSigma(plan.noise_multiplier), .num_coordinates = 2, .num_steps = sums});
  return privacy::ChargeRequest{.mechanism = mechanism,
                                .run = plan.name,
                                .purpose = trains ? "rounds of a fleet" : "evaluations of a fleet",
                                .loss_slack = slack};
}

Result<FleetPlan> MakePlan(FleetPlan plan) {
  // Everything but the noise is checked before the search, with a noise that is allowed.
  plan.noise_multiplier = 1;
  WISP_RETURN_IF_ERROR(plan.Check());
  double slack = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    // The claim of exact_sum.h read backwards: what remains of the target beside the slack.
    WISP_ASSIGN_OR_RETURN(
        const privacy::EpsilonDelta target,
        privacy::EpsilonDelta::Create(plan.epsilon - 2.2 * slack, plan.delta * (1 - 1e-6) * std::exp(-1.1 * slack)));
    const auto mechanisms = [&plan](double noise_multiplier) -> Result<std::vector<Mechanism>> {
      WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, ByItself(noise_multiplier, plan.takes_part));
      return std::vector<Mechanism>{mechanism};
    };
    WISP_ASSIGN_OR_RETURN(
        const privacy::Calibration found,
        privacy::CalibrateNoise({.target = target, .steps = plan.takes_part, .mechanisms = mechanisms}));
    plan.noise_multiplier = RoundedUp(found.noise_multiplier);
    WISP_RETURN_IF_ERROR(plan.Check());
    if (CheckBudget(plan).ok()) return plan;
    slack = 1.01 * Slack(plan.noise_multiplier, plan.num_weights, plan.takes_part) + 1e-9;
  }
  return PrivacyRefused("epsilon ", privacy::DoubleText(plan.epsilon),
                        " cannot be met: the integer grid of the noise alone costs ", privacy::EpsilonText(2 * slack));
}

Result<FleetPlan> MakePlanForReaders(FleetPlan plan, double epsilon) {
  plan.noise_multiplier = plan.epsilon = 1;
  WISP_RETURN_IF_ERROR(plan.Check());
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(epsilon, plan.delta));
  const auto mechanisms = [&plan](double noise_multiplier) -> Result<std::vector<Mechanism>> {
    WISP_ASSIGN_OR_RETURN(const Mechanism mechanism,
                          Hidden(std::max(noise_multiplier, kLeastNoise), plan.rounds, plan.takes_part));
    return std::vector<Mechanism>{mechanism};
  };
  WISP_ASSIGN_OR_RETURN(
      const privacy::Calibration found,
      privacy::CalibrateNoise({.target = target, .steps = plan.takes_part, .mechanisms = mechanisms}));
  plan.noise_multiplier = RoundedUp(found.noise_multiplier);
  // The price of discrete noise may need a little more of it.
  for (int attempt = 0; attempt < 8; ++attempt) {
    WISP_ASSIGN_OR_RETURN(const FleetCost cost, CostOf(plan));
    plan.epsilon = RoundedUp(cost.device);
    if (cost.readers <= epsilon) return plan.Check().ok() ? Result<FleetPlan>(plan) : plan.Check();
    plan.noise_multiplier = RoundedUp(plan.noise_multiplier * 1.001);
  }
  return PrivacyRefused("epsilon ", privacy::DoubleText(epsilon), " for readers cannot be met with this many weights");
}

Result<FleetCost> CostOf(const FleetPlan& plan) {
  const double noise = plan.noise_multiplier;
  FleetCost cost;
  WISP_ASSIGN_OR_RETURN(
      cost.device,
      EpsilonOf({.noise_multiplier = noise, .num_weights = plan.num_weights, .count = plan.takes_part}, plan.delta));
  WISP_ASSIGN_OR_RETURN(const Mechanism training, Hidden(noise, plan.rounds, plan.takes_part));
  WISP_ASSIGN_OR_RETURN(cost.readers, EpsilonWith(training, Slack(noise, plan.num_weights, plan.rounds), plan.delta));
  // A bound on what the readers see is a bound on what less knowledge shows.
  cost.readers = std::min(cost.readers, cost.device);
  if (plan.evaluations == 0) return cost;
  WISP_ASSIGN_OR_RETURN(const Mechanism evaluating, Hidden(noise, plan.evaluations, plan.takes_part));
  WISP_ASSIGN_OR_RETURN(cost.readers_of_evaluations,
                        EpsilonWith(evaluating, Slack(noise, 1, plan.evaluations), plan.delta));
  cost.readers_of_evaluations = std::min(cost.readers_of_evaluations, cost.device);
  return cost;
}

Status CheckBudget(const FleetPlan& plan) {
  WISP_ASSIGN_OR_RETURN(
      const double epsilon,
      EpsilonOf({.noise_multiplier = plan.noise_multiplier, .num_weights = plan.num_weights, .count = plan.takes_part},
                plan.delta));
  if (epsilon <= plan.epsilon) return OkStatus();
  return PrivacyRefused("the plan ", plan.name, " promises epsilon ", privacy::DoubleText(plan.epsilon), " at delta ",
                        privacy::DoubleText(plan.delta), ", and ", Counted(plan.takes_part, "participation"),
                        " with its noise_multiplier ", privacy::DoubleText(plan.noise_multiplier), " cost ",
                        privacy::EpsilonText(epsilon));
}

}  // namespace wisp::fleet
