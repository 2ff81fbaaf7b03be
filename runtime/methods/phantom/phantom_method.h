// DP-SGD by Phantom Clipping: every trained weight is summed and released (docs/algorithms.md, section 2).
#ifndef WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_METHOD_H_
#define WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_METHOD_H_

#include <memory>

#include "runtime/train/sum_method.h"

namespace wisp {

std::unique_ptr<GradientMethod> MakePhantomMethod(const MethodSetup& setup);
MethodBytes PlanPhantomMethod(const Graph& graph, const TrainedSet& trained, size_t num_records,
                              const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_METHOD_H_
