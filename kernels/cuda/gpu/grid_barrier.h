// The barrier over all blocks of a cooperative launch. It is separate from gpu.h because its header declares names of
// its own.
#ifndef WISP_KERNELS_CUDA_GPU_GRID_BARRIER_H_
#define WISP_KERNELS_CUDA_GPU_GRID_BARRIER_H_

#include <cooperative_groups.h>

namespace wisp::kernels::cuda {

// Waits for all threads of the launch. Everything they wrote before is then visible to all.
__device__ inline void GridBarrier() { cooperative_groups::this_grid().sync(); }

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_GPU_GRID_BARRIER_H_
