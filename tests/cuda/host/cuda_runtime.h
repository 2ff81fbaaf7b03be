// A stand-in for CUDA's runtime, so that kernels/cuda/gpu is compiled and tested without nvcc and without a GPU. It has
// two devices, of which ours is the first, and loads a kernel when it is first needed. It notes every call that is made
// while another device is current, and runs a kernel at its launch, once.
#ifndef WISP_TESTS_CUDA_HOST_CUDA_RUNTIME_H_
#define WISP_TESTS_CUDA_HOST_CUDA_RUNTIME_H_

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__ static
#define __device__
#define __host__
#define __grid_constant__

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
};
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrHostRegisterReadOnlySupported = 113
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum : unsigned {
  cudaStreamNonBlocking = 1,
  cudaHostAllocDefault = 0,
  cudaHostAllocMapped = 2,
  cudaHostRegisterMapped = 2,
  cudaHostRegisterReadOnly = 8,
  cudaMemAttachSingle = 4
};
struct cudaDeviceProp {
  char name[256];
  int integrated, managedMemory, concurrentManagedAccess, l2CacheSize, multiProcessorCount, major, minor;
};
struct cudaFuncAttributes {
  int numRegs;
};
struct FakeStream {
  int device;
};
using cudaStream_t = FakeStream*;
struct dim3 {
  dim3(unsigned along_x = 1, unsigned along_y = 1) : x(along_x), y(along_y) {}
  unsigned x, y;
};
inline const dim3 blockIdx(0, 0), threadIdx(0, 0), blockDim(1), gridDim(1);
inline void __syncthreads() {}
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline bool __isGlobal(const void*) { return true; }
#ifndef __clang__
#define __builtin_assume(condition) static_cast<void>(condition)
#endif
unsigned long long atomicAdd(unsigned long long* to, unsigned long long n);

namespace fake {

struct Cuda {
  bool integrated = false;
  bool is_full = false;                        // no kernel can be loaded any more
  std::map<std::string, cudaError_t> refused;  // calls that fail, by name
  std::set<const void*> loaded;
  std::vector<std::string> on_wrong_device;
  int num_switches = 0;
};
inline Cuda g_cuda;
inline thread_local int g_device = 0;
inline thread_local cudaError_t g_last = cudaSuccess;

inline cudaError_t Fail(cudaError_t error) {
  if (error != cudaSuccess) g_last = error;
  return error;
}
inline cudaError_t Answer(const char* call) {
  const auto refused = g_cuda.refused.find(call);
  return Fail(refused == g_cuda.refused.end() ? cudaSuccess : refused->second);
}
// A call for the current device.
inline cudaError_t Call(const char* call) {
  if (g_device != 0) g_cuda.on_wrong_device.emplace_back(call);
  return Answer(call);
}
inline cudaError_t Load(const void* kernel) {
  if (g_cuda.is_full && g_cuda.loaded.count(kernel) == 0) return Fail(cudaErrorMemoryAllocation);
  g_cuda.loaded.insert(kernel);
  return cudaSuccess;
}
inline cudaError_t Allocate(const char* call, void** memory, size_t bytes) {
  const cudaError_t error = Call(call);
  if (error == cudaSuccess) *memory = std::calloc(bytes, 1);
  return error;
}
template <class... Parameters, size_t... kIndices>
void Run(void (*kernel)(Parameters...), void** arguments, std::index_sequence<kIndices...>) {
  kernel(*static_cast<Parameters*>(arguments[kIndices])...);
}
template <class... Parameters>
cudaError_t Launch(const char* call, void (*kernel)(Parameters...), void** arguments, cudaStream_t stream) {
  cudaError_t error = Call(call);
  if (error == cudaSuccess && (stream == nullptr || stream->device != g_device)) error = Fail(cudaErrorInvalidDevice);
  if (error == cudaSuccess) error = Load(reinterpret_cast<const void*>(kernel));
  if (error == cudaSuccess) Run(kernel, arguments, std::index_sequence_for<Parameters...>());
  return error;
}

}  // namespace fake

// These have no device.
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 2, fake::Answer("cudaGetDeviceCount"); }
inline cudaError_t cudaGetDevice(int* device) { return *device = fake::g_device, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) {
  ++fake::g_cuda.num_switches;
  fake::g_device = device;
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() { return std::exchange(fake::g_last, cudaSuccess); }
inline const char* cudaGetErrorString(cudaError_t) { return "the fake failed"; }

// These are for the current device.
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {"fake", fake::g_cuda.integrated, 1, 0, 1 << 20, 4, 9, 0};
  return fake::Call("cudaGetDeviceProperties");
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  return *value = 4, fake::Call("cudaDeviceGetAttribute");
}
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return *free = *total = 1 << 30, fake::Call("cudaMemGetInfo");
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = new FakeStream{fake::g_device}, fake::Call("cudaStreamCreateWithFlags");
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return fake::Call("cudaStreamSynchronize"); }
inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) {
  return fake::Call("cudaStreamAttachMemAsync");
}
inline cudaError_t cudaMalloc(void** memory, size_t bytes) { return fake::Allocate("cudaMalloc", memory, bytes); }
inline cudaError_t cudaMallocManaged(void** memory, size_t bytes) {
  return fake::Allocate("cudaMallocManaged", memory, bytes);
}
inline cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return fake::Allocate("cudaHostAlloc", memory, bytes);
}
inline cudaError_t cudaFree(void* memory) { return std::free(memory), fake::Call("cudaFree"); }
inline cudaError_t cudaFreeHost(void* memory) { return std::free(memory), fake::Call("cudaFreeHost"); }
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  return std::memset(to, value, bytes), fake::Call("cudaMemsetAsync");
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return std::memcpy(to, from, bytes), fake::Call("cudaMemcpyAsync");
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), fake::Call("cudaMemcpy");
}
inline cudaError_t cudaHostRegister(void*, size_t, unsigned) { return fake::Call("cudaHostRegister"); }
inline cudaError_t cudaHostUnregister(void*) { return fake::Call("cudaHostUnregister"); }
inline cudaError_t cudaHostGetDevicePointer(void** there, void* host, unsigned) {
  return *there = host, fake::Call("cudaHostGetDevicePointer");
}
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void* kernel) {
  const cudaError_t error = fake::Call("cudaFuncGetAttributes");
  return error == cudaSuccess ? fake::Load(kernel) : error;
}
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  return *blocks = 2, fake::Call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}
template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3, dim3, void** arguments, size_t, cudaStream_t stream) {
  return fake::Launch("cudaLaunchKernel", kernel, arguments, stream);
}
template <class... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3, dim3, void** arguments, size_t,
                                        cudaStream_t stream) {
  return fake::Launch("cudaLaunchCooperativeKernel", kernel, arguments, stream);
}
// NOLINTEND(bugprone-reserved-identifier)

#endif  // WISP_TESTS_CUDA_HOST_CUDA_RUNTIME_H_
