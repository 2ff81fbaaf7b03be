// Growth of lists whose size is not known in advance, by a rule that still bounds their capacity in advance.
//   ReserveCapacity(list, needed, most);                  // capacity for `needed` elements
//   // while needed <= needed_at_most, ReserveCapacity makes no capacity above this bound
//   size_t bound = MostCapacity(needed_at_most, most);
#ifndef WISP_RUNTIME_CORE_CAPACITY_H_
#define WISP_RUNTIME_CORE_CAPACITY_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wisp {

// The capacity to grow to for `needed` elements, from a capacity of `have`. It grows by half, so that a step seldom
// allocates, and never above `most`. Needs needed <= most.
inline size_t GrownCapacity(size_t have, size_t needed, size_t most) {
  return needed <= have ? have : std::max(needed, std::min(most, have + have / 2));
}

inline size_t MostCapacity(size_t needed_at_most, size_t most) {
  return std::min(most, needed_at_most + needed_at_most / 2);
}

template <class T>
void ReserveCapacity(std::vector<T>& list, size_t needed, size_t most) {
  if (needed > list.capacity()) list.reserve(GrownCapacity(list.capacity(), needed, most));
}

// Empties `list` and gives it capacity for exactly `size` elements. The old memory is freed first.
template <class T>
void ReallocateEmpty(std::vector<T>& list, size_t size) {
  list = std::vector<T>();
  list.reserve(size);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_CAPACITY_H_
