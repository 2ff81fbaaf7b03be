// A build without runtime/methods/re_attention: CheckBuilt refuses private training of a model that has it.
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasReAttention = false;

Status CheckUpdateObserver(const Architecture&, const TrainingOptions&) { return OkStatus(); }

bool FollowsUpdates(const Architecture&, const TrainingOptions&) { return false; }

std::unique_ptr<UpdateObserver> MakeUpdateObserver(const Graph&, const TrainedSet&, const TrainingOptions&,
                                                   std::span<const int32_t>) {
  return nullptr;
}

size_t PlanUpdateObserver(const Architecture&, const TrainingOptions&) { return 0; }

}  // namespace wisp
