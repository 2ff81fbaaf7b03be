// Compares how far each layer of a personalised model has moved from its start with how far noise alone would have
// moved it.
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_REPORT_LAYERS_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_REPORT_LAYERS_H_

#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/personalise/deployment.h"

namespace wisp::tools {

// The root mean square of the change of a layer's weights, and of the change that noise alone would have made
// (ComputeNoiseVariance). It uses released values and public constants only.
struct LayerChange {
  std::string name;  // "block 1, attention"
  double moved = 0, by_noise = 0;
};

// `start` and `weights` have the flat layout of `architecture`; `steps` steps lie between them.
std::vector<LayerChange> LayerChanges(const Architecture& architecture, std::span<const float> start,
                                      std::span<const float> weights, const DeploymentSettings& settings,
                                      uint64_t steps);

// Compares the candidate beside `output` with the model that its training began with; empty if there is no candidate.
Result<std::vector<LayerChange>> CompareCandidate(const std::string& base_path, const std::string& output,
                                                  const DeploymentSettings& settings);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_REPORT_LAYERS_H_
