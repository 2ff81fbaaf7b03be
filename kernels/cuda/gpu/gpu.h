// The GPU that this process uses, and its one stream: what is launched and copied runs in the order of the calls,
// whatever thread of the host makes them.
#ifndef WISP_KERNELS_CUDA_GPU_GPU_H_
#define WISP_KERNELS_CUDA_GPU_GPU_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/module/module.h"

namespace wisp::kernels::cuda {

// The first device that the driver shows (CUDA_VISIBLE_DEVICES chooses). Null, or a sentence why there is none. Call
// before anything else of this folder; once is enough.
const char* OpenGpu();
DeviceFacts FactsOfGpu();
void LimitMemory(uint64_t bytes);

// For tests: from now on a kernel has run when its launch returns. Memory that host and device share, or null.
void RunAtOnce();
void* AllocateShared(size_t bytes);

cudaStream_t Stream();

// Of a launch: what it failed with, and where RunAtOnce was asked for, what the kernel failed with.
void NoteLaunch();

// Keeps in mind that something failed. From then on Wait returns false: nothing that was computed can be trusted.
void Note(cudaError_t error);

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_GPU_GPU_H_
