// The table of ops that run on a GPU.
#ifndef WISP_KERNELS_CUDA_CUDA_H_
#define WISP_KERNELS_CUDA_CUDA_H_

#include "kernels/device.h"

namespace wisp::kernels::cuda {

// Every pointer of its arguments is to memory that the device reads and writes, but for what kernels/kernels.h says
// lies on the host. Ops run one after the other, in the order of the calls; those that return numbers have waited.
const OpTable& Ops(Arithmetic arithmetic);
inline const OpTable& Ops() { return Ops(Arithmetic::kFloat32); }

// The memory that these ops read and write. The host does not: it copies in and out.
const MemoryTable& DeviceMemory();
// Bytes of it that are allocated now.
size_t AllocatedBytes();

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_CUDA_H_
