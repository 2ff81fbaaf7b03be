// The releases of a plan beside its steps: the weight of the output bias (runtime/train/bias_weight.h) and successions
// (runtime/train/successions.h). Internal to runtime/personalise/deployment.cc.
#ifndef WISP_RUNTIME_PERSONALISE_PLAN_RELEASES_H_
#define WISP_RUNTIME_PERSONALISE_PLAN_RELEASES_H_

#include <span>
#include <vector>

#include "runtime/personalise/deployment.h"

namespace wisp {

// kInvalidArgument for a share of epsilon that is out of range.
Status CheckReleases(const DeploymentSettings& settings);

// Finds the noise with which all releases of a kind alone cost their share of epsilon at `delta`, and returns their
// charges, one for each kind. Empty without releases.
Result<std::vector<privacy::ChargeRequest>> PlanReleases(const Architecture& grown, double delta,
                                                         DeploymentSettings& settings);

// Fills in the releases of `left` by what the ledger charged.
void CountReleasesLeft(std::span<const privacy::LedgerEntry> entries, const DeploymentSettings& settings,
                       DeploymentLeft& left);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLAN_RELEASES_H_
