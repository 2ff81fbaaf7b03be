// A build without runtime/methods/sparse: CheckBuilt refuses it, so nothing trains by these.
#include "runtime/methods/sparse/sparse_method.h"
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasSparse = false;

Status CheckSparse(const Architecture&, const TrainingOptions&) { return OkStatus(); }

std::unique_ptr<GradientMethod> MakeSparseMethod(const MethodSetup&) { return nullptr; }

MethodBytes PlanSparseMethod(const Graph&, const TrainedSet&, size_t, const TrainingOptions&) { return {}; }

uint64_t NumReleasedByFest(const Architecture&, const TrainingOptions&) { return 0; }

size_t SparseRowFloats(const Architecture&, const TrainingOptions&) { return 0; }

}  // namespace wisp
