// Finds the items that have not been trained by a run.
#ifndef WISP_RUNTIME_TRAIN_RUN_UNTRAINED_ITEMS_H_
#define WISP_RUNTIME_TRAIN_RUN_UNTRAINED_ITEMS_H_

#include <vector>

#include "runtime/model/model_file.h"
#include "runtime/train/run/job.h"

namespace wisp {

// The untrained items of `base`, from which the run of `result` started, that this run has not trained either. An item
// is trained if the run passed over its records once and its row in the released weights has changed. Rows that only
// noise moved were restored (shrink_changes.h), and some methods leave rows out. Both facts are public: the number of
// steps, and released weights.
std::vector<int32_t> StillUntrained(const ModelFile& base, const Architecture& trained, const JobResult& result);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_UNTRAINED_ITEMS_H_
