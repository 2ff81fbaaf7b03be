// How lists grow whose need is not known ahead, so that what they take can be bounded ahead all the same.
//
//   MakeRoom(list, needed, most);                  // capacity for `needed` elements
//   // no capacity made so is above it while no need is above needed_at_most
//   size_t bound = MostRoom(needed_at_most, most);
#ifndef WISP_RUNTIME_CORE_ROOM_H_
#define WISP_RUNTIME_CORE_ROOM_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wisp {

// Room for `needed` where there is room for `have`: half as much again as there was, so that a step seldom asks the
// system, and never above `most`. needed <= most.
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

// `list` empty, with room for `size` elements and no more: what it held is given back first.
template <class T>
void ReallocateEmpty(std::vector<T>& list, size_t size) {
  list = std::vector<T>();
  list.reserve(size);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_ROOM_H_
