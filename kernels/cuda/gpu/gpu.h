// The GPU of this process and its single stream. Launches and copies run in the order of the calls, whatever host
// thread makes them.
#ifndef WISP_KERNELS_CUDA_GPU_GPU_H_
#define WISP_KERNELS_CUDA_GPU_GPU_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/module/module.h"

namespace wisp::kernels::cuda {

// Opens the first device that the driver lists (CUDA_VISIBLE_DEVICES selects). Returns null, or a message that says why
// that failed. Call it before anything else in this folder; once is enough.
const char* OpenGpu();
DeviceFacts GetGpuFacts();

// In memory.cc: limits all memory from DeviceMemory(). 0: no limit.
void LimitMemory(uint64_t bytes);
// Call it before other functions of memory.cc: chooses the kind of memory for all allocations (memory_kinds.h). Returns
// null, or a message.
const char* ChooseGpuMemory(const cudaDeviceProp& properties);
bool IsManaged();
cudaError_t OpenMemory();
// Waits until the stream has run and staged data has arrived.
void WaitForStaged();

// For tests: from now on, the work of a call has run when it returns. The next function returns memory that host and
// device share, or null.
void RunAtOnce();
void* AllocateShared(size_t bytes);

cudaStream_t Stream();

// While one of these lives, our GPU is the calling thread's current device. Afterwards the caller's is again, whatever
// it was. All calls of CUDA but those that name a device are made while one lives: an app may use other GPUs, and
// change the device of any thread at any time.
class OnGpu {
 public:
  OnGpu();
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int callers_;
};

// A function whose calls are made so, for tables.
template <auto kFunction>
struct MadeOnGpu;
template <class Result, class... Arguments, Result (*kFunction)(Arguments...)>
struct MadeOnGpu<kFunction> {
  static Result Call(Arguments... arguments) {
    const OnGpu on_gpu;
    return kFunction(arguments...);
  }
};

// Names a kernel that OpenGpu loads. CUDA would load it only before its first launch, which may be after privacy was
// charged, and fail there. Call it while the module is loaded. True.
bool KnowKernel(const void* kernel);

// Records a failure. From then on Wait returns false, because no result can be trusted.
void Note(cudaError_t error);
// Records the failure of a launch or a copy; after RunAtOnce also the failure of the work itself.
void NoteLaunch();
// The first failure, as text; empty if there was no failure.
const char* Failure();

// The number of multiprocessors.
unsigned CountProcessors();
// True if the device does not run so many blocks together, as in a share of a GPU (MPS). Nothing else is wrong.
bool IsRefusal(cudaError_t error);
// The number of blocks of this kernel, with `threads` each, that fit the whole GPU; 0 if its blocks cannot wait for
// each other.
unsigned BlocksAtOnce(const void* kernel, unsigned threads);

// True if the call succeeded. A failure here spoils nothing, so it is cleared; otherwise the next launch would report
// it.
bool ClearIfFailed(cudaError_t error);

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_GPU_GPU_H_
