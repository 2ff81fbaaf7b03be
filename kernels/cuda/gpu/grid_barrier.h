// The barrier over all blocks of a cooperative launch. Apart from gpu.h: the header it is made of declares names of its
// own.
#ifndef WISP_KERNELS_CUDA_GPU_GRID_BARRIER_H_
#define WISP_KERNELS_CUDA_GPU_GRID_BARRIER_H_

#include <cooperative_groups.h>

namespace wisp::kernels::cuda {

// Until all threads of the launch are there; what they wrote before, all of them see.
__device__ inline void GridBarrier() { cooperative_groups::this_grid().sync(); }

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_GPU_GRID_BARRIER_H_
