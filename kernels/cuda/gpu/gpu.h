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

// memory.cc: of all memory that DeviceMemory() gives out. 0: no limit.
void LimitMemory(uint64_t bytes);
// Before the rest of it: the kind of memory of all that is allocated (memory_kinds.h). Null, or a sentence.
const char* ChooseMemoryOfGpu(const cudaDeviceProp& properties);
bool IsManaged();
cudaError_t OpenMemory();
// Until the stream has run, and what went in with it has arrived.
void WaitForStaged();

// For tests: from now on what a call asks for has run when it returns. Memory that host and device share, or null.
void RunAtOnce();
void* AllocateShared(size_t bytes);

cudaStream_t Stream();

// Keeps in mind that something failed. From then on Wait returns false: nothing that was computed can be trusted.
void Note(cudaError_t error);
// Of a launch or a copy: what it failed with, and where RunAtOnce was asked for, what came of it.
void NoteLaunch();
// What failed first, in words; empty while nothing has.
const char* Failure();

// Of this kernel, by blocks of so many threads, on the whole GPU; 0 where its blocks could not wait for each other.
unsigned BlocksAtOnce(const void* kernel, unsigned threads);

// Whether a call succeeded whose failure spoils nothing: it is then forgotten, or the next launch would be blamed.
bool Forgive(cudaError_t error);

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_GPU_GPU_H_
