// A training record, and those that pass at once.
#ifndef WISP_RUNTIME_LAYERS_RECORD_H_
#define WISP_RUNTIME_LAYERS_RECORD_H_

#include <algorithm>
#include <cstddef>
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

// The number of positions that have a target.
inline size_t NumTargets(const Record& record) {
  return static_cast<size_t>(
      std::count_if(record.targets.begin(), record.targets.end(), [](int32_t id) { return id >= 0; }));
}

// Records that pass through at once, one to as many as the graph takes, of max_rows rows together.
using Batch = std::span<const Record>;

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECORD_H_
