// Which items have learned in a run.
#ifndef WISP_RUNTIME_TRAIN_RUN_UNTRAINED_ITEMS_H_
#define WISP_RUNTIME_TRAIN_RUN_UNTRAINED_ITEMS_H_

#include <vector>

#include "runtime/model/model_file.h"
#include "runtime/train/run/job.h"

namespace wisp {

// Of the untrained items of `base`, which the run of `result` began with, those that have not learned in it either. An
// item has learned where the run passed over its records once, and the item's row in what it released is another than
// before: rows that only noise moved are taken back where rows are shrunk (shrink_rows.h), and some methods leave rows
// out. Both are public: the number of steps, and released weights.
std::vector<int32_t> StillUntrained(const ModelFile& base, const Architecture& trained, const JobResult& result);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_UNTRAINED_ITEMS_H_
