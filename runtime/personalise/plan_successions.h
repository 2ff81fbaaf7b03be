// The releases of successions in a plan (runtime/train/successions.h). Internal to runtime/personalise/deployment.cc.
#ifndef WISP_RUNTIME_PERSONALISE_PLAN_SUCCESSIONS_H_
#define WISP_RUNTIME_PERSONALISE_PLAN_SUCCESSIONS_H_

#include <vector>

#include "runtime/personalise/deployment.h"

namespace wisp {

// Finds the noise with which all releases alone cost their share of epsilon at `delta`, and returns their charge. Empty
// without releases.
Result<std::vector<privacy::ChargeRequest>> PlanSuccessions(const Architecture& grown, double delta,
                                                            DeploymentSettings& settings);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLAN_SUCCESSIONS_H_
