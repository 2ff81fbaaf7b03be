// Memory that the host and the device both reach (MemoryKind::kManaged): how bytes go in and out of it.
#ifndef WISP_KERNELS_CUDA_SHARED_MEMORY_H_
#define WISP_KERNELS_CUDA_SHARED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {

// By the host itself, when all that was launched has run: until then the device may read or write the bytes, and Orin
// allows no touch of them. False where the device has failed: then they are not touched at all.
inline bool CopyByHost(void* to, const void* from, size_t bytes) {
  if (!Wait()) return false;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return true;
}

// A dump of the process does not have these pages: a sum without noise may lie there while a step runs, as it may in a
// GPU's own memory, which no dump has. Whole pages, so that nothing of them is left; a hint, nothing depends on it.
inline void LeaveOutOfDumps(void* memory, size_t bytes) {
#ifdef MADV_DONTDUMP
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes + page - 1) / page * page;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTDUMP);
#else
  (void)memory;
  (void)bytes;
#endif
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_SHARED_MEMORY_H_
