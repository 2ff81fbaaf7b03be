// A device's memory that the host cannot touch: pages that nothing may read or write but while a kernel runs or bytes
// are copied. What the host does to it without a copy ends the process, where it happens.
#ifndef WISP_KERNELS_CUDA_EMULATE_MEMORY_H_
#define WISP_KERNELS_CUDA_EMULATE_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels::cuda::emulate {

// From now on the device is one that shares the host's memory (kernels/cuda/memory_kinds.h), or none again. Where its
// memory is managed the host may touch it once it has waited, until the next kernel starts, as on Orin. Before anything
// is allocated. Null, or a sentence: what WISP_CUDA_MEMORY asks for cannot be.
const char* PlayIntegrated(bool integrated);
bool IsIntegrated();
bool IsManaged();

// All that was launched has run.
void OpenToHost();

// While one of these lives, the memory may be read and written.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// Memory of the host that kernels may use beside the device's. From then on they may use no other.
void* AllocateShared(size_t bytes);

// Allocations beyond so many bytes together are refused; 0: none.
void LimitMemory(uint64_t bytes);

// Results, in place of those that were named before.
void ShareWithKernels(const void* memory, size_t bytes);

// Whether a kernel's argument holds the address of host memory that is not shared, anywhere in its bytes. Where nothing
// is allocated on the device, nor shared, all memory counts as its own: so the op suite runs.
bool HoldsHostAddress(const void* argument, size_t bytes);

}  // namespace wisp::kernels::cuda::emulate

#endif  // WISP_KERNELS_CUDA_EMULATE_MEMORY_H_
