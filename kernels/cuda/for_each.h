// One thread for each number.
#ifndef WISP_KERNELS_CUDA_FOR_EACH_H_
#define WISP_KERNELS_CUDA_FOR_EACH_H_

#include "kernels/cuda/device_code.h"
#include "kernels/kernels.h"

namespace wisp::kernels::cuda {

template <class F>
__global__ void CallForEach(size_t n, F f) {
  for (size_t i = GlobalThread(); i < n; i += AllThreads()) f(i);
}

// Calls f(0) ... f(n - 1), in no order. `f` is copied to the device, so it must capture by value.
template <class F>
void ForEach(size_t n, const F& f) {
  constexpr unsigned kThreads = 256;
  if (n > 0) Launch<CallForEach<F>>({.blocks = BlocksFor(n, kThreads), .threads = kThreads}, n, f);
}

// Calls f(row, column) for a matrix.
template <class F>
void ForEachElement(size_t rows, size_t columns, const F& f) {
  ForEach(rows * columns, [=] __device__(size_t i) {
    const Split at = SplitBy(i, columns);
    f(at.quotient, at.rest);
  });
}

__device__ inline void Put(float& to, float value, Store store) { to = store == Store::kAdd ? to + value : value; }

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_FOR_EACH_H_
