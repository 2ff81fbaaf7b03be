// A build without runtime/methods/rgp: CheckBuilt refuses it, so nothing trains by these.
#include "runtime/methods/rgp/rgp_method.h"
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasRgp = false;

Status CheckRgp(const Architecture&, const TrainingOptions&) { return OkStatus(); }

std::unique_ptr<GradientMethod> MakeRgpMethod(const MethodSetup&) { return nullptr; }

MethodBytes PlanRgpMethod(const Graph&, const TrainedSet&, size_t, const TrainingOptions&) { return {}; }

bool TrainsByRgp(const ParameterSpec&, const TrainingOptions&) { return true; }

uint64_t NumReleasedByRgp(const Architecture&, const TrainingOptions&) { return 0; }

size_t RgpRowFloats(const Architecture&, const TrainingOptions&) { return 0; }

}  // namespace wisp
