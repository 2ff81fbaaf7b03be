// Memory that both host and device access (MemoryKind::kManaged): copies into and out of it.
#ifndef WISP_KERNELS_CUDA_SHARED_MEMORY_H_
#define WISP_KERNELS_CUDA_SHARED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {

// The host copies the bytes after everything launched has run: until then the device may access them, and Orin forbids
// the host to touch them. False if the device has failed; the bytes are then not touched.
inline bool CopyByHost(void* to, const void* from, size_t bytes) {
  if (!Wait()) return false;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return true;
}

// Excludes these pages from core dumps, because a sum without noise may lie there during a step. A discrete GPU's
// memory is in no dump either. Rounds to whole pages, so that nothing remains. This is a hint; nothing depends on it.
inline void ExcludeFromDumps(void* memory, size_t bytes) {
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
