// RGP as a method: it releases projections onto carriers, which then become a gradient of the weights. The host makes a
// step's carriers, from weights that were already released.
#ifndef WISP_RUNTIME_METHODS_RGP_RGP_METHOD_H_
#define WISP_RUNTIME_METHODS_RGP_RGP_METHOD_H_

#include <memory>

#include "runtime/train/sum_method.h"

namespace wisp {

std::unique_ptr<GradientMethod> MakeRgpMethod(const MethodSetup& setup);
MethodBytes PlanRgpMethod(const Graph& graph, const TrainedSet& trained, size_t num_records,
                          const TrainingOptions& options);
bool TrainsByRgp(const ParameterSpec& parameter, const TrainingOptions& options);
Status CheckRgp(const Architecture& architecture, const TrainingOptions& options);
// The most values that a step releases.
uint64_t NumReleasedByRgp(const Architecture& architecture, const TrainingOptions& options);
// Floats of a record's released values on a device.
size_t RgpRowFloats(const Architecture& architecture, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_RGP_RGP_METHOD_H_
