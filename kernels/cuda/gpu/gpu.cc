#include "kernels/cuda/gpu/gpu.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {
namespace {

struct Gpu {
  cudaStream_t stream = nullptr;
  std::atomic<bool> failed = false, runs_at_once = false;
  std::atomic<uint64_t> allocated = 0, limit = 0;  // bytes; limit 0: none
};

Gpu& TheGpu() {
  static Gpu gpu;
  return gpu;
}

const char* Why(const char* what, cudaError_t error) {
  static char sentence[256];
  std::snprintf(sentence, sizeof sentence, "%s: %s", what, cudaGetErrorString(error));
  return sentence;
}

const char* OpenOnce() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) return Why("there is no NVIDIA driver with a GPU", counted);
  if (count == 0) return "the NVIDIA driver shows no GPU";
  if (const cudaError_t error = cudaSetDevice(0)) return Why("the GPU cannot be used", error);
  const cudaError_t error = cudaStreamCreateWithFlags(&TheGpu().stream, cudaStreamNonBlocking);
  return error == cudaSuccess ? nullptr : Why("the GPU cannot be used", error);
}

}  // namespace

const char* OpenGpu() {
  static const char* const why = OpenOnce();
  return why;
}

DeviceFacts FactsOfGpu() {
  DeviceFacts facts;
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return facts;
  std::snprintf(facts.name, sizeof facts.name, "%s", properties.name);
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    facts.free_bytes = free;
    facts.total_bytes = total;
  }
  facts.cache_bytes = static_cast<uint64_t>(properties.l2CacheSize);
  facts.processors = static_cast<uint32_t>(properties.multiProcessorCount);
  facts.version = static_cast<uint32_t>(properties.major * 10 + properties.minor);
  facts.shares_memory = properties.integrated != 0;
  return facts;
}

void LimitMemory(uint64_t bytes) { TheGpu().limit = bytes; }

cudaStream_t Stream() { return TheGpu().stream; }

void RunAtOnce() { TheGpu().runs_at_once = true; }

void* AllocateShared(size_t bytes) {
  void* memory = nullptr;
  return cudaMallocManaged(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

size_t AllocatedBytes() { return TheGpu().allocated; }

void NoteLaunch() {
  Note(cudaGetLastError());
  if (TheGpu().runs_at_once) Note(cudaStreamSynchronize(Stream()));
}

void Note(cudaError_t error) {
  if (error != cudaSuccess) TheGpu().failed = true;
}

bool Wait() {
  Note(cudaStreamSynchronize(Stream()));
  return !TheGpu().failed;
}

namespace {

// Pinned memory of the host that kernels write: of one thread.
struct Pinned {
  double* numbers = nullptr;
  size_t count = 0;
  ~Pinned() { (void)cudaFreeHost(numbers); }
};

}  // namespace

double* Results(size_t count) {
  static thread_local Pinned pinned;
  if (count <= pinned.count) return pinned.numbers;
  (void)cudaFreeHost(pinned.numbers);
  pinned = Pinned();
  void* numbers = nullptr;
  const cudaError_t error = cudaHostAlloc(&numbers, count * sizeof(double), cudaHostAllocMapped);
  Note(error);
  if (error != cudaSuccess) return nullptr;
  pinned.numbers = static_cast<double*>(numbers);
  pinned.count = count;
  return pinned.numbers;
}

namespace {

// Of the limit; false where it would pass it.
bool Take(size_t bytes) {
  Gpu& gpu = TheGpu();
  const uint64_t after = gpu.allocated += bytes;
  if (gpu.limit == 0 || after <= gpu.limit) return true;
  gpu.allocated -= bytes;
  return false;
}

void* Allocate(void*, size_t bytes) {
  if (!Take(bytes)) throw std::bad_alloc();
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
    (void)cudaGetLastError();  // there is no memory; nothing else failed
    TheGpu().allocated -= bytes;
    throw std::bad_alloc();
  }
  Note(cudaMemsetAsync(memory, 0, bytes, Stream()));
  return memory;
}

// Waits by itself until nothing uses it.
void Release(void*, void* memory, size_t bytes) {
  Note(cudaFree(memory));
  TheGpu().allocated -= bytes;
}

// The host's bytes are read when the call returns.
void CopyIn(void*, void* to, const void* from, size_t bytes) {
  if (bytes > 0) Note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, Stream()));
}

void CopyOut(void*, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Stream());
  Note(error);
  Note(cudaStreamSynchronize(Stream()));
  if (error != cudaSuccess) std::memset(to, 0, bytes);  // never what stood there before
}

bool WaitForAll(void*) { return Wait(); }

}  // namespace

const MemoryTable& DeviceMemory() {
  static constexpr MemoryTable kTable = {
      .allocate = Allocate, .release = Release, .copy_in = CopyIn, .copy_out = CopyOut, .wait = WaitForAll};
  return kTable;
}

}  // namespace wisp::kernels::cuda
