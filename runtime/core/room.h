// Growth of lists whose size is not known in advance, by a rule that still bounds their capacity in advance.
//   MakeRoom(list, needed, most);                  // capacity for `needed` elements
//   // while needed <= needed_at_most, MakeRoom makes no capacity above this bound
//   size_t bound = MostRoom(needed_at_most, most);
#ifndef WISP_RUNTIME_CORE_ROOM_H_
#define WISP_RUNTIME_CORE_ROOM_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wisp {

// The capacity to grow to for `needed` elements, from a capacity of `have`. It grows by half, so that a step seldom
// allocates, and never above `most`. Needs needed <= most.
inline size_t GrownRoom(size_t have, size_t needed, size_t most) {
  return needed <= have ? have : std::max(needed, std::min(most, have + have / 2));
}

inline size_t MostRoom(size_t needed_at_most, size_t most) {
  return std::min(most, needed_at_most + needed_at_most / 2);
}

template <class T>
void MakeRoom(std::vector<T>& list, size_t needed, size_t most) {
  if (needed > list.capacity()) list.reserve(GrownRoom(list.capacity(), needed, most));
}

// Empties `list` and gives it capacity for exactly `size` elements. The old memory is freed first.
template <class T>
void ReallocateEmpty(std::vector<T>& list, size_t size) {
  list = std::vector<T>();
  list.reserve(size);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_ROOM_H_
