// The language of kernels: CUDA or, without nvcc, ordinary C++ that an emulator on the host runs.
//
//   __global__ void ScaleRows(const float* x, float* y, size_t rows) {
//     __shared__ Shared<float, 256> row;
//     ...
//     __syncthreads();
//   }
//   Launch<ScaleRows>({.blocks = 12, .threads = 256}, x, y, rows);
//
// Kernels take their arguments by value. They use only what this file declares: thread and block indices along x and y,
// __syncthreads, shuffles and votes of whole warps, and the functions below. So every kernel also runs in the emulator
// (emulate/emulate.h), which finds divergent barriers, accesses out of bounds and races in shared memory.
#ifndef WISP_KERNELS_CUDA_DEVICE_CODE_H_
#define WISP_KERNELS_CUDA_DEVICE_CODE_H_

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "kernels/cuda/program.h"

#ifdef __CUDACC__
#include "kernels/cuda/gpu/gpu.h"
#else
#include "kernels/cuda/emulate/emulate.h"
#endif

namespace wisp::kernels::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// The number of blocks along x and y, and of threads in a block.
struct Grid {
  unsigned blocks = 1, blocks_y = 1, threads = 256;
};

#ifdef __CUDACC__

// Put it before a loop whose arrays must stay in registers.
#define WISP_UNROLL _Pragma("unroll")

// An array that the threads of a block share. Its contents are undefined when a block begins.
template <class T, unsigned kSize>
struct alignas(16) Shared {
  T values[kSize];
  __device__ T& operator[](unsigned i) { return values[i]; }
};

// Every kernel that a launch below names is known before anything runs, so that all are loaded when the GPU is opened.
template <auto kKernel>
inline const bool kIsKnown = KnowKernel(reinterpret_cast<const void*>(kKernel));

template <class... Parameters, class... Arguments>
void LaunchKernel(void (*kernel)(Parameters...), const Grid& grid, const Arguments&... arguments) {
  std::tuple<Parameters...> values(arguments...);
  const OnGpu on_gpu;
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {const_cast<void*>(static_cast<const void*>(&value))...};
        Note(cudaLaunchKernel(kernel, dim3(grid.blocks, grid.blocks_y), dim3(grid.threads), addresses, 0, Stream()));
      },
      values);
  NoteLaunch();
}

// Launches a kernel, which runs after everything that was launched before.
template <auto kKernel, class... Arguments>
void Launch(const Grid& grid, const Arguments&... arguments) {
  (void)kIsKnown<kKernel>;
  FlushProgram();
  LaunchKernel(kKernel, grid, arguments...);
}

// An argument that is read where the launch stores it. It is not copied, whatever its size.
#define WISP_IN_PLACE(Type) const __grid_constant__ Type

// The number of blocks that can run at the same time and wait for each other; 0 if the device does not support it.
template <auto kKernel>
unsigned BlocksTogether(unsigned threads) {
  return BlocksAtOnce(reinterpret_cast<const void*>(kKernel), threads);
}

// Launches at most this many blocks, which may wait for each other. False if the device refuses such a launch: then
// nothing was launched, and nothing has failed. It never refuses a single block, which waits for no other: there
// kernels must not call GridBarrier.
template <auto kKernel, class Argument>
bool LaunchTogether(unsigned blocks, unsigned threads, const Argument& argument) {
  (void)kIsKnown<kKernel>;
  void* arguments[] = {const_cast<Argument*>(&argument)};
  const OnGpu on_gpu;
  const cudaError_t error =
      blocks == 1 ? cudaLaunchKernel(kKernel, dim3(blocks), dim3(threads), arguments, 0, Stream())
                  : cudaLaunchCooperativeKernel(kKernel, dim3(blocks), dim3(threads), arguments, 0, Stream());
  if (blocks > 1 && IsRefusal(error)) return ClearIfFailed(error);
  Note(error);
  NoteLaunch();
  return true;
}

#else

#define WISP_UNROLL
#define WISP_IN_PLACE(Type) const Type&

template <auto kKernel>
unsigned BlocksTogether(unsigned) {
  return emulate::kBlocksTogether;
}

using emulate::CountProcessors;

template <class... Parameters, class... Arguments>
void AddParametersOf(void (*kernel)(Parameters...), const Arguments&... arguments) {
  (emulate::AddParameter<std::remove_cvref_t<Parameters>>(reinterpret_cast<const void*>(kernel), arguments), ...);
}

template <auto kKernel, class Argument>
bool LaunchTogether(unsigned blocks, unsigned threads, const Argument& argument) {
  if (blocks > 1 && emulate::RefusesTogether()) return false;
  AddParametersOf(kKernel, argument);
  emulate::RunTogether(blocks, threads, [&] { kKernel(argument); });
  return true;
}

template <class T, unsigned kSize>
using Shared = emulate::Shared<T, kSize>;

template <auto kKernel, class... Arguments>
void Launch(const Grid& grid, const Arguments&... arguments) {
  FlushProgram();
  AddParametersOf(kKernel, arguments...);
  (emulate::CheckArgument(arguments), ...);
  emulate::Run({.x = grid.blocks, .y = grid.blocks_y}, grid.threads, [&] { kKernel(arguments...); });
}

#endif

// ---- Indices. -------------------------------------------------------------------------------------------------------
__device__ inline size_t GlobalThread() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline size_t AllThreads() { return size_t{gridDim.x} * blockDim.x; }

// i / n and i % n, as of a row and a column. A GPU takes some twenty instructions for a division of 32 bits and a
// hundred for one of 64, so only numbers that need 64 bits pay for them.
struct Split {
  size_t quotient, rest;
};
__device__ inline Split SplitBy(size_t i, size_t n) {
  if ((i | n) >> 32 != 0) return {i / n, i % n};
  const auto quotient = static_cast<uint32_t>(i) / static_cast<uint32_t>(n);
  return {quotient, static_cast<uint32_t>(i) - quotient * static_cast<uint32_t>(n)};
}

__device__ inline unsigned Lane() { return threadIdx.x % kWarp; }
__device__ inline unsigned WarpInBlock() { return threadIdx.x / kWarp; }

// ---- Vectors: kCount neighbours in one access, 1, 2 or 4. The first one's address must be a multiple of their bytes,
// in shared memory its index of kCount. ------------------------------------------------------------------------------
template <unsigned kCount>
__device__ inline bool IsAligned(const float* at, size_t ld) {
  return reinterpret_cast<uintptr_t>(at) % (kCount * sizeof(float)) == 0 && ld % kCount == 0;
}

#ifdef __CUDACC__
template <unsigned kCount>
__device__ inline void LoadVector(float* to, const float* from) {
  if constexpr (kCount == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else if constexpr (kCount == 2) {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x, to[1] = v.y;
  } else {
    to[0] = from[0];
  }
}
template <unsigned kCount>
__device__ inline void StoreVector(float* to, const float* from) {
  if constexpr (kCount == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  } else if constexpr (kCount == 2) {
    *reinterpret_cast<float2*>(to) = make_float2(from[0], from[1]);
  } else {
    to[0] = from[0];
  }
}
template <unsigned kCount, unsigned kSize>
__device__ inline void LoadVector(float* to, Shared<float, kSize>& from, unsigned first) {
  LoadVector<kCount>(to, from.values + first);
}
template <unsigned kCount, unsigned kSize>
__device__ inline void StoreVector(Shared<float, kSize>& to, unsigned first, const float* from) {
  StoreVector<kCount>(to.values + first, from);
}
#else
using emulate::LoadVector;
using emulate::StoreVector;
#endif

// Tells the compiler what it forgets where pointers change in a struct: that they point to global memory. Generic loads
// look the kind of memory up each time.
template <class... Pointers>
__device__ inline void AreGlobal(Pointers... pointers) {
#ifdef __CUDACC__
  (__builtin_assume(__isGlobal(pointers)), ...);
#else
  ((void)pointers, ...);
#endif
}

// The place of the lowest bit that is set; there must be one.
__device__ inline unsigned LowestBit(unsigned bits) {
#ifdef __CUDACC__
  return static_cast<unsigned>(__ffs(static_cast<int>(bits))) - 1;
#else
  return static_cast<unsigned>(__builtin_ctz(bits));
#endif
}

// Adding whole numbers gives the same result in any order.
__device__ inline void AtomicAdd(int64_t* to, int64_t n) {
#ifdef __CUDACC__
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(n));
#else
  __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
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

// The sum over a block of `kThreads`, in a fixed order; every thread gets it. `scratch` may be reused after the next
// barrier. All threads must call.
template <unsigned kThreads, class T>
__device__ inline T BlockSum(T value, Shared<T, kThreads / kWarp>& scratch) {
  value = WarpSum(value);
  if (Lane() == 0) scratch[WarpInBlock()] = value;
  __syncthreads();
  T sum = scratch[0];
  for (unsigned w = 1; w < kThreads / kWarp; ++w) sum += scratch[w];
  return sum;
}

// The number of blocks of `threads` that gives each of n elements a thread, but at most `most`, for kernels that use
// strides. Other kernels pass kAllBlocks.
inline constexpr size_t kAllBlocks = (size_t{1} << 31) - 1;
inline unsigned BlocksFor(size_t n, unsigned threads, size_t most = 1 << 16) {
  const size_t blocks = (n + threads - 1) / threads;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_DEVICE_CODE_H_
