// The table of ops that run on a GPU.
#ifndef WISP_KERNELS_CUDA_CUDA_H_
#define WISP_KERNELS_CUDA_CUDA_H_

#include "kernels/device.h"

namespace wisp::kernels::cuda {

// Every pointer in its arguments is to memory that the device accesses, except where kernels/kernels.h says host
// memory. Ops run one after another, in the order of the calls. An op that returns numbers waits for them.
const OpTable& Ops(Arithmetic arithmetic);
inline const OpTable& Ops() { return Ops(Arithmetic::kFloat32); }

// The memory that these ops access. The host accesses it only by copies.
const MemoryTable& DeviceMemory();
// Bytes of this memory that are allocated now.
size_t AllocatedBytes();

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_CUDA_H_
