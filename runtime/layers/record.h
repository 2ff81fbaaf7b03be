// A training record, and those that pass at once.
#ifndef WISP_RUNTIME_LAYERS_RECORD_H_
#define WISP_RUNTIME_LAYERS_RECORD_H_

#include <cstdint>
#include <span>

namespace wisp {

// inputs: 1 to max_length items. Next-item head: as many targets, position t sees inputs[0..t] and is asked for
// targets[t]; -1 is padding (leading entries of `inputs`) or "no target here". Head of classes: one target, the class,
// and no padding. Lifetime: until the record is finished.
struct Record {
  std::span<const int32_t> inputs;
  std::span<const int32_t> targets;
};

// Records that pass through at once, one to as many as the graph takes, of max_rows rows together.
using Batch = std::span<const Record>;

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECORD_H_
