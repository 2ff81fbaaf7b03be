// Which records a graph can be trained on.
#ifndef WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_
#define WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_

#include <span>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/layers/graph.h"

namespace wisp {

// Both: of no more inputs than `longest`, which is LongestRecord (options.h).

// Whether a private run can be given the record: of 1 to `longest` inputs that the model has, and as many targets, or
// one of its classes.
bool IsTrainable(const Architecture& architecture, const Record& record, uint32_t longest);

// kInvalidData: a sentence about the first record that is not. Not for private runs, which leave such records out: a
// refusal would tell of them.
Status CheckRecords(const Architecture& architecture, std::span<const Record> records, uint32_t longest);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_
