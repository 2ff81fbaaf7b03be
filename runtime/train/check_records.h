// Checks which records a graph can be trained on.
#ifndef WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_
#define WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_

#include <span>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/layers/graph.h"

namespace wisp {

// Both functions refuse a record of more inputs than `longest`, which is LongestRecord (options.h).

// True if a private run can use the record: it has 1 to `longest` inputs that the model knows, and as many targets or
// one of the model's classes.
bool IsTrainable(const Architecture& architecture, const Record& record, uint32_t longest);

// kInvalidData names the first record that is not trainable. Private runs must not call this: a refusal would reveal
// that such a record exists, so they leave it out instead.
Status CheckRecords(const Architecture& architecture, std::span<const Record> records, uint32_t longest);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CHECK_RECORDS_H_
