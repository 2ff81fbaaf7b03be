// The gains to expect with other numbers of people and other epsilons than a plan's. Noise is scaled from the plan's by
// Gaussian differential privacy (Dong, Roth and Su, arXiv:1905.02383, corollary 2.13; Bu, Dong, Long and Su,
// arXiv:1911.11607, for steps that sample), because a calibration of each takes half a second.
//
//   for (const GainAt& at : ForecastGains(architecture, request, deployment.settings))
//     if (at.forecast.is_near) printf("%u %g\n", at.people, at.forecast.lowest());
#ifndef WISP_RUNTIME_PERSONALISE_GAIN_TABLE_H_
#define WISP_RUNTIME_PERSONALISE_GAIN_TABLE_H_

#include <cstdint>
#include <vector>

#include "runtime/personalise/expected_gain.h"
#include "runtime/personalise/forecast.h"

namespace wisp {

struct GainAt {
  uint32_t people = 0;
  double epsilon = 0;
  GainForecast forecast;
};
// A quarter, as many and four times as many people, each with epsilon 1, 2, 4, 8 and the requested one. `planned` are
// the settings of the request, with their noise.
std::vector<GainAt> ForecastGains(const Architecture& architecture, const DeploymentRequest& request,
                                  const DeploymentSettings& planned);

// About the settings that PlanDeployment would find for `other`, which differs from the request of `planned` in people
// and epsilon.
DeploymentSettings ScalePlan(const Architecture& architecture, const DeploymentRequest& other,
                             const DeploymentSettings& planned);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_GAIN_TABLE_H_
