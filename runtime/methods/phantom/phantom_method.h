// DP-SGD by Phantom Clipping: every trained weight is summed and released (docs/algorithms.md, section 2).
#ifndef WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_METHOD_H_
#define WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_METHOD_H_

#include <memory>

#include "runtime/train/sum_method.h"

namespace wisp {

std::unique_ptr<GradientMethod> MakePhantomMethod(const MethodSetup& setup);
// The Gradients of one worker, for a sum that the caller owns. What the arguments refer to must outlive them.
OwnedGradients MakePhantomGradients(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options,
                                    const ClipRule& clip, size_t worker, GridGradientSum& sum);
MethodBytes PlanPhantomMethod(const Graph& graph, const TrainedSet& trained, size_t num_records,
                              const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_METHOD_H_
