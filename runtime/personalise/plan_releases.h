// The releases of a plan beside its steps: the weight of the output bias (runtime/train/bias_weight.h), successions
// (runtime/train/successions.h) and evaluations. Internal to runtime/personalise.
//
// A release takes a share of the plan's budget, which is the square of the mu of one Gaussian mechanism that costs the
// plan's epsilon. These squares add up, so what is left is for the steps.
#ifndef WISP_RUNTIME_PERSONALISE_PLAN_RELEASES_H_
#define WISP_RUNTIME_PERSONALISE_PLAN_RELEASES_H_

#include <span>
#include <vector>

#include "runtime/personalise/deployment.h"

namespace wisp {

// kInvalidArgument for a share that is out of range.
Status CheckReleases(const DeploymentSettings& settings);

// The square of mu.
double ComputeBudget(const DeploymentSettings& settings);
// The noise multiplier with which so many releases together take that share of the budget.
double NoiseOfShare(const DeploymentSettings& settings, double share, uint64_t releases);
// The noise of an evaluation: no more than hides what chance does anyway, or what kMostOfEvaluations pays for.
double ComputeEvaluationNoise(const DeploymentSettings& settings);

// Fills in the noise of all releases, and returns their charges, one for each kind; evaluations come last. Empty
// without any.
Result<std::vector<privacy::ChargeRequest>> PlanReleases(const Architecture& grown, DeploymentSettings& settings);

// Fills in the releases of `left` by what the ledger charged.
void CountReleasesLeft(std::span<const privacy::LedgerEntry> entries, const DeploymentSettings& settings,
                       DeploymentLeft& left);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLAN_RELEASES_H_
