// Which records a graph can be trained on.
#ifndef WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_
#define WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_

#include <span>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/layers/graph.h"

namespace wisp {

// Whether a private run can be given the record: of 1 to max_length inputs that the model has, and as many targets, or
// one of its classes.
bool IsTrainable(const Architecture& architecture, const Record& record);

// kInvalidData: a sentence about the first record that is not. Not for private runs, which leave such records out: a
// refusal would tell of them.
Status CheckRecords(const Architecture& architecture, std::span<const Record> records);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_
