// Device memory that the host cannot access: its pages are accessible only while a kernel runs or bytes are copied. A
// host access without a copy ends the process where it happens.
#ifndef WISP_KERNELS_CUDA_EMULATE_MEMORY_H_
#define WISP_KERNELS_CUDA_EMULATE_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels::cuda::emulate {

// Makes the device share the host's memory (kernels/cuda/memory_kinds.h), or not. If its memory is managed, the host
// may access it after waiting, until the next kernel starts, as on Orin. Call it before anything is allocated. Returns
// null, or a message if WISP_CUDA_MEMORY asks for something impossible.
const char* PlayIntegrated(bool integrated);
bool IsIntegrated();
bool IsManaged();

// Says that everything launched has run.
void OpenToHost();

// While one of these lives, the memory is accessible.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// Allocates host memory that kernels may access beside device memory. From then on they may access no other host
// memory.
void* AllocateShared(size_t bytes);

// Refuses allocations beyond this many bytes together; 0: no limit.
void LimitMemory(uint64_t bytes);

// kScratchFloats zeros that kernels may access beside device memory.
float* ScratchForKernels();

// Names the memory for results, in place of the one named before.
void ShareWithKernels(void* memory, size_t bytes);
// Fills the memory for results with NaN until ShowResults, so that a host which does not wait reads nothing else.
void HideResults();
void ShowResults();

// True if any bytes of a kernel's argument are the address of host memory that is not shared. While nothing is
// allocated on the device or shared, all memory counts as the device's, so that the op suite can run.
bool HoldsHostAddress(const void* argument, size_t bytes);

}  // namespace wisp::kernels::cuda::emulate

#endif  // WISP_KERNELS_CUDA_EMULATE_MEMORY_H_
