// Float16 numbers on the device.
#ifndef WISP_KERNELS_CUDA_HALF_H_
#define WISP_KERNELS_CUDA_HALF_H_

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include "kernels/cuda/device_code.h"
#include "kernels/half.h"

namespace wisp::kernels::cuda {

__device__ inline float AsFloat(Half h) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(h.bits));
#else
  return ToFloat(h);
#endif
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_HALF_H_
