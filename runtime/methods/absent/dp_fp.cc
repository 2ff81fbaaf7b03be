// A build without runtime/methods/dp_fp: CheckBuilt refuses it, so nothing trains by these.
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasDpFp = false;

Status CheckHead(const Architecture&, const TrainingOptions&) { return OkStatus(); }

std::unique_ptr<StepPart> MakeHeadStep(StepContext&) { return nullptr; }

void AddHeadMemory(const Graph&, size_t, const TrainingOptions&, TrainingMemory&) {}

PrivacyPlan::Part HeadPart(const Architecture&, const TrainingOptions&) { return {}; }

const std::string& ExplainPaperMode() {
  static const std::string none;
  return none;
}

std::string DescribeDpFp(const Architecture&, const TrainingOptions&, uint64_t) { return {}; }

std::unique_ptr<HeadNoise> MakeHeadNoise(const Graph&, const TrainingOptions&) { return nullptr; }

size_t PlanHeadNoise(const Graph&, const TrainingOptions&) { return 0; }

}  // namespace wisp
