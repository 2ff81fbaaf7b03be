#include "runtime/core/arena.h"

#include <sys/mman.h>

namespace wisp {

void AdviseHugePages(void* bytes, size_t size) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes) + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(bytes) + size) / kHugePage * kHugePage;
  if (end > begin + 8 * kHugePage) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)bytes;
  (void)size;
#endif
}

}  // namespace wisp
