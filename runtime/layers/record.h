// A training record, and batches of records.
#ifndef WISP_RUNTIME_LAYERS_RECORD_H_
#define WISP_RUNTIME_LAYERS_RECORD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wisp {

// inputs: 1 to max_length items. With a next-item head there is one target for each input: position t sees inputs[0..t]
// and predicts targets[t]. -1 is padding (leading entries of `inputs`) or "no target here". With a classes head there
// is one target, the class, and no padding. The spans must stay valid until the record is finished.
struct Record {
  std::span<const int32_t> inputs;
  std::span<const int32_t> targets;
};

// The number of positions that have a target.
inline size_t NumTargets(const Record& record) {
  return static_cast<size_t>(
      std::count_if(record.targets.begin(), record.targets.end(), [](int32_t id) { return id >= 0; }));
}

// Records that pass together: 1 to as many as the graph takes, with at most max_rows rows together.
using Batch = std::span<const Record>;

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECORD_H_
