// The part of a history that a model reads: one rule for recommending, batches, evaluation and the choice of
// candidates.
#ifndef WISP_RUNTIME_MODEL_HISTORY_WINDOW_H_
#define WISP_RUNTIME_MODEL_HISTORY_WINDOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

// The last `max_length` trained items of `history`. Items of `untrained` (ModelFile::untrained, ascending) are skipped,
// as if the model did not have them. Empty for a user without known history. `room` stores the items if some are
// skipped; it must live as long as the result.
inline std::span<const int32_t> HistoryWindow(std::span<const int32_t> history, std::span<const int32_t> untrained,
                                              size_t max_length, std::vector<int32_t>& room) {
  const auto end = history.last(std::min(history.size(), max_length));
  if (untrained.empty()) return end;
  const auto is_untrained = [&](int32_t id) { return std::binary_search(untrained.begin(), untrained.end(), id); };
  if (std::none_of(end.begin(), end.end(), is_untrained)) return end;
  room.clear();
  for (size_t i = history.size(); i > 0 && room.size() < max_length; --i) {
    if (!is_untrained(history[i - 1])) room.push_back(history[i - 1]);
  }
  std::reverse(room.begin(), room.end());
  return room;
}

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_HISTORY_WINDOW_H_
