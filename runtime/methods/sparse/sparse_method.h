// DP-FEST, DP-AdaFEST(+), and every method with a sampled softmax: the item table is summed, noised and updated by
// rows. step_rows.h selects them. Other rows get neither gradient nor noise nor an optimizer step; all of this depends
// on the released set alone. On the host nothing in an AdaFEST step loops over the table. On a device memory for the
// largest set is reserved before the run, so that no charged step can fail for lack of it.
#ifndef WISP_RUNTIME_METHODS_SPARSE_SPARSE_METHOD_H_
#define WISP_RUNTIME_METHODS_SPARSE_SPARSE_METHOD_H_

#include <memory>

#include "runtime/train/sum_method.h"

namespace wisp {

std::unique_ptr<GradientMethod> MakeSparseMethod(const MethodSetup& setup);
MethodBytes PlanSparseMethod(const Graph& graph, const TrainedSet& trained, size_t num_records,
                             const TrainingOptions& options);
Status CheckSparse(const Architecture& architecture, const TrainingOptions& options);
// The most coordinates that FEST releases in a step.
uint64_t NumReleasedByFest(const Architecture& architecture, const TrainingOptions& options);
// Floats of a record's gradient on a device.
size_t SparseRowFloats(const Architecture& architecture, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_SPARSE_SPARSE_METHOD_H_
