// Functions of one number that several ops share.
#ifndef WISP_KERNELS_CUDA_NORMAL_H_
#define WISP_KERNELS_CUDA_NORMAL_H_

#include "kernels/cuda/device_code.h"

namespace wisp::kernels::cuda {

// The normal distribution function, without cancellation for small values.
__device__ inline float NormalCdf(float x) { return 0.5f * erfcf(-0.707106781f * x); }
__device__ inline float NormalDensity(float x) { return 0.398942280f * expf(-0.5f * x * x); }

// 1 / (1 + exp(-x)), without computing the exponential of a large number.
__device__ inline float Logistic(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_NORMAL_H_
