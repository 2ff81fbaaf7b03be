#include "runtime/train/records.h"

#include <algorithm>

namespace wisp {

RecordSet MakeRecords(const data::Sequences& sequences, uint32_t max_length, HoldOut hold_out) {
  RecordSet set;
  const size_t held = hold_out == HoldOut::kNothing ? 0 : hold_out == HoldOut::kTest ? 1 : 2;
  for (size_t u = 0; u < sequences.num_users(); ++u) {
    const std::span<const int32_t> items = sequences.User(u);
    // A user too short to give up items for testing trains with all of them and is not tested.
    const size_t give = items.size() > held + 1 ? held : 0;
    const std::span<const int32_t> train = items.first(items.size() - give);
    if (give >= 1) set.test.push_back({items.first(items.size() - 1), items.back()});
    if (give == 2) set.validation.push_back({items.first(items.size() - 2), items[items.size() - 2]});
    if (train.size() < 2) {
      ++set.too_short;
      continue;
    }
    const std::span<const int32_t> window = train.last(std::min<size_t>(train.size(), size_t{max_length} + 1));
    set.records.push_back({window.first(window.size() - 1), window.last(window.size() - 1)});
  }
  return set;
}

}  // namespace wisp
