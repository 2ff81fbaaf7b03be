// What a kernel is written in: CUDA, or, without nvcc, ordinary C++ that an emulator on the host runs.
//
//   __global__ void ScaleRows(const float* x, float* y, size_t rows) {
//     __shared__ Shared<float, 256> row;
//     ...
//     __syncthreads();
//   }
//   Launch(ScaleRows, {.blocks = 12, .threads = 256}, x, y, rows);
//
// Kernels take their arguments by value. They use what is below and no more of CUDA: thread and block indices along x
// and y, __syncthreads, shuffles and votes of whole warps, and the functions of this file. So every kernel runs under
// the emulator (emulate/emulate.h), which finds divergent barriers, accesses out of bounds and races in shared memory.
#ifndef WISP_KERNELS_CUDA_DEVICE_CODE_H_
#define WISP_KERNELS_CUDA_DEVICE_CODE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/program.h"

#ifdef __CUDACC__
#include "kernels/cuda/gpu/gpu.h"
#else
#include "kernels/cuda/emulate/emulate.h"
#endif

namespace wisp::kernels::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// How many blocks, along x and y, of how many threads.
struct Grid {
  unsigned blocks = 1, blocks_y = 1, threads = 256;
};

#ifdef __CUDACC__

// Before a loop whose arrays shall stay in registers.
#define WISP_UNROLL _Pragma("unroll")

// An array that the threads of a block share. Its contents are undefined when a block begins.
template <class T, unsigned kSize>
struct Shared {
  T values[kSize];
  __device__ T& operator[](unsigned i) { return values[i]; }
};

// Runs behind all that was launched before.
template <class... Parameters, class... Arguments>
void Launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
  FlushProgram();
  kernel<<<dim3(grid.blocks, grid.blocks_y), grid.threads, 0, Stream()>>>(arguments...);
  NoteLaunch();
}

// An argument that is read where the launch has put it: not copied, whatever its size.
#define WISP_IN_PLACE(Type) const __grid_constant__ Type

// How many blocks run at the same time, so that they can wait for each other: 0 where this device cannot say.
template <class Argument>
unsigned BlocksTogether(void (*kernel)(Argument), unsigned threads) {
  return BlocksAtOnce(reinterpret_cast<const void*>(kernel), threads);
}

// As Launch, of at most so many blocks.
template <class Parameter, class Argument>
void LaunchTogether(void (*kernel)(Parameter), unsigned blocks, unsigned threads, const Argument& argument) {
  void* arguments[] = {const_cast<Argument*>(&argument)};
  Note(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads), arguments, 0,
                                   Stream()));
  NoteLaunch();
}

#else

#define WISP_UNROLL
#define WISP_IN_PLACE(Type) const Type&

template <class Argument>
unsigned BlocksTogether(void (*)(Argument), unsigned) {
  return emulate::kBlocksTogether;
}

template <class Parameter, class Argument>
void LaunchTogether(void (*kernel)(Parameter), unsigned blocks, unsigned threads, const Argument& argument) {
  emulate::RunTogether(blocks, threads, [&] { kernel(argument); });
}

template <class T, unsigned kSize>
using Shared = emulate::Shared<T, kSize>;

template <class... Parameters, class... Arguments>
void Launch(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
  FlushProgram();
  (emulate::CheckArgument(arguments), ...);
  emulate::Run({.x = grid.blocks, .y = grid.blocks_y}, grid.threads, [&] { kernel(arguments...); });
}

#endif

// ---- Indices. -------------------------------------------------------------------------------------------------------
__device__ inline size_t GlobalThread() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline size_t AllThreads() { return size_t{gridDim.x} * blockDim.x; }
__device__ inline unsigned Lane() { return threadIdx.x % kWarp; }
__device__ inline unsigned WarpOfBlock() { return threadIdx.x / kWarp; }

// Whole numbers: their order does not matter.
__device__ inline void AtomicAdd(int64_t* to, int64_t n) {
#ifdef __CUDACC__
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(n));
#else
  *to += n;  // one thread runs at a time
#endif
}

// ---- Sums and largest values over a warp, in a fixed order: every lane gets the result. All lanes must call. --------
template <class T>
__device__ inline T WarpSum(T value) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

template <class T>
__device__ inline T WarpMax(T value) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kWholeWarp, value, step);
    value = value < other ? other : value;
  }
  return value;
}

// The sum over a block of `kThreads`, in a fixed order; every thread gets it. `scratch` is free again after the next
// barrier. All threads must call.
template <unsigned kThreads, class T>
__device__ inline T BlockSum(T value, Shared<T, kThreads / kWarp>& scratch) {
  value = WarpSum(value);
  if (Lane() == 0) scratch[WarpOfBlock()] = value;
  __syncthreads();
  T sum = scratch[0];
  for (unsigned w = 1; w < kThreads / kWarp; ++w) sum += scratch[w];
  return sum;
}

// How many blocks of `threads` it takes to have one thread for each of n, at most `most`: for kernels that take
// strides. Others ask for kAllBlocks.
inline constexpr size_t kAllBlocks = (size_t{1} << 31) - 1;
inline unsigned BlocksFor(size_t n, unsigned threads, size_t most = 1 << 16) {
  const size_t blocks = (n + threads - 1) / threads;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_DEVICE_CODE_H_
