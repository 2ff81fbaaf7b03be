// The GPU's memory, and host memory that the GPU accesses. memory_kinds.h explains the kinds.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gpu/gpu.h"
#include "kernels/cuda/memory_kinds.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/results.h"
#include "kernels/cuda/shared_memory.h"

namespace wisp::kernels::cuda {
namespace {

std::atomic<uint64_t> g_allocated = 0, g_limit = 0;  // in bytes; limit 0: no limit
MemoryChoice g_choice;                               // set once, before anything is allocated
float* g_scratch = nullptr;                          // set once, too

// Pinned memory through which bytes enter device memory. The caller's bytes are read before the call returns; the GPU
// fetches them later. If it is full, the caller waits. Bytes that have arrived are wiped, because they may be the noise
// of a private step.
struct Staging {
  static constexpr size_t kBytes = size_t{4} << 20, kAlignment = 256;
  char* bytes = nullptr;
  size_t used = 0;
  std::mutex mutex;

  // The mutex is held, so nothing is staged meanwhile.
  void Arrive() {
    Note(cudaStreamSynchronize(Stream()));
    if (used > 0) std::memset(bytes, 0, used);
    used = 0;
  }
};

Staging& TheStaging() {
  static Staging staging;
  return staging;
}

// Counts the bytes against the limit. False if they exceed it.
bool Take(size_t bytes) {
  const uint64_t after = g_allocated += bytes, limit = g_limit;
  if (limit == 0 || after <= limit) return true;
  g_allocated -= bytes;
  return false;
}

cudaError_t AllocateManaged(void** memory, size_t bytes) {
  const cudaError_t error = cudaMallocManaged(memory, bytes);
  if (error != cudaSuccess) return error;
  ExcludeFromDumps(*memory, bytes);
  if (g_choice.of_stream) Note(cudaStreamAttachMemAsync(Stream(), *memory, 0, cudaMemAttachSingle));
  return cudaSuccess;
}

void* Allocate(void*, size_t bytes) {
  if (!Take(bytes)) throw std::bad_alloc();
  void* memory = nullptr;
  const size_t at_least = std::max<size_t>(bytes, 1);
  if (!ClearIfFailed(IsManaged() ? AllocateManaged(&memory, at_least) : cudaMalloc(&memory, at_least))) {
    g_allocated -= bytes;
    throw std::bad_alloc();
  }
  if (bytes > 0) Note(cudaMemsetAsync(memory, 0, bytes, Stream()));
  NoteLaunch();
  return memory;
}

// Waits until nothing uses the memory.
void Release(void*, void* memory, size_t bytes) {
  FlushProgram();
  Note(cudaFree(memory));
  g_allocated -= bytes;
}

void CopyIn(void*, void* to, const void* from, size_t bytes) {
  if (CopyInWithProgram(to, from, bytes)) return;
  Staging& staging = TheStaging();
  const std::lock_guard lock(staging.mutex);
  for (size_t done = 0; done < bytes;) {
    if (staging.used >= Staging::kBytes) staging.Arrive();
    const size_t n = std::min(bytes - done, Staging::kBytes - staging.used);
    char* staged = staging.bytes + staging.used;
    std::memcpy(staged, static_cast<const char*>(from) + done, n);
    Note(cudaMemcpyAsync(static_cast<char*>(to) + done, staged, n, cudaMemcpyHostToDevice, Stream()));
    staging.used += (n + Staging::kAlignment - 1) / Staging::kAlignment * Staging::kAlignment;
    done += n;
  }
  NoteLaunch();
}

void CopyOut(void*, void* to, const void* from, size_t bytes) {
  if (bytes == 0 || CopyOutWithProgram(to, from, bytes)) return;
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Stream());
  if (error == cudaSuccess) error = cudaStreamSynchronize(Stream());
  Note(error);
  if (error != cudaSuccess) std::memset(to, 0, bytes);
}

void CopyInByHost(void*, void* to, const void* from, size_t bytes) {
  if (!CopyInWithProgram(to, from, bytes)) (void)CopyByHost(to, from, bytes);
}

void CopyOutByHost(void*, void* to, const void* from, size_t bytes) {
  if (CopyOutWithProgram(to, from, bytes)) return;
  if (!CopyByHost(to, from, bytes) && bytes > 0) std::memset(to, 0, bytes);
}

// Whole pages, because the driver accepts only these.
struct PageRange {
  PageRange(const void* host, size_t bytes) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(host);
    offset = at % page;
    begin = reinterpret_cast<void*>(at - offset);
    size = (offset + bytes + page - 1) / page * page;
  }
  void* begin;
  size_t offset, size;
};

// Read-only pages, as of a mapped file, are registered as read-only if the driver supports it.
const void* ShareWithGpu(void*, const void* host, size_t bytes) {
  int knows_read_only = 0;
  (void)ClearIfFailed(cudaDeviceGetAttribute(&knows_read_only, cudaDevAttrHostRegisterReadOnlySupported, 0));
  const PageRange range(host, bytes);
  const unsigned flags = cudaHostRegisterMapped | (knows_read_only != 0 ? cudaHostRegisterReadOnly : 0u);
  if (!ClearIfFailed(cudaHostRegister(range.begin, range.size, flags))) return nullptr;
  void* there = nullptr;
  if (ClearIfFailed(cudaHostGetDevicePointer(&there, range.begin, 0))) return static_cast<char*>(there) + range.offset;
  (void)ClearIfFailed(cudaHostUnregister(range.begin));
  return nullptr;
}

// Waits until nothing reads the bytes.
void UnshareWithGpu(void*, const void* host, size_t bytes) {
  FlushProgram();
  Note(cudaStreamSynchronize(Stream()));
  (void)ClearIfFailed(cudaHostUnregister(PageRange(host, bytes).begin));
}

bool WaitForAll(void*) {
  FlushProgram();
  return Wait();
}
const char* FirstFailure(void*) { return Failure(); }

// Pinned host memory that kernels write. One thread uses it.
struct Pinned {
  double* numbers = nullptr;
  size_t count = 0;
  ~Pinned() { Free(); }

  // A thread that has nothing here makes no call of CUDA when it ends.
  void Free() {
    if (numbers == nullptr) return;
    const OnGpu on_gpu;
    (void)ClearIfFailed(cudaFreeHost(numbers));
    numbers = nullptr;
    count = 0;
  }
};

}  // namespace

void WaitForStaged() {
  const OnGpu on_gpu;
  Staging& staging = TheStaging();
  const std::lock_guard lock(staging.mutex);
  staging.Arrive();
}

const char* ChooseGpuMemory(const cudaDeviceProp& properties) {
  g_choice = ChooseMemory({.integrated = properties.integrated != 0,
                           .managed = properties.managedMemory != 0,
                           .concurrent = properties.concurrentManagedAccess != 0},
                          std::getenv(kMemoryVariable));
  return g_choice.why;
}

bool IsManaged() { return g_choice.kind == MemoryKind::kManaged; }

cudaError_t OpenMemory() {
  constexpr size_t kBytes = kScratchFloats * sizeof(float);
  cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&g_scratch), kBytes);
  if (error == cudaSuccess) error = cudaMemsetAsync(g_scratch, 0, kBytes, Stream());
  if (error != cudaSuccess || IsManaged()) return error;  // managed memory is not staged
  return cudaHostAlloc(reinterpret_cast<void**>(&TheStaging().bytes), Staging::kBytes, cudaHostAllocDefault);
}

void LimitMemory(uint64_t bytes) { g_limit = bytes; }

size_t AllocatedBytes() { return g_allocated; }

void* AllocateShared(size_t bytes) {
  void* memory = nullptr;
  return ClearIfFailed(cudaMallocManaged(&memory, bytes)) ? memory : nullptr;
}

float* Scratch() { return g_scratch; }

double* Results(size_t count) {
  static thread_local Pinned pinned;
  if (count <= pinned.count) return pinned.numbers;
  pinned.Free();
  const OnGpu on_gpu;
  void* numbers = nullptr;
  const cudaError_t error = cudaHostAlloc(&numbers, count * sizeof(double), cudaHostAllocMapped);
  Note(error);  // the caller cannot continue without it
  if (!ClearIfFailed(error)) return nullptr;
  pinned.numbers = static_cast<double*>(numbers);
  pinned.count = count;
  return pinned.numbers;
}

const MemoryTable& DeviceMemory() {
  static constexpr MemoryTable kDevice = {.allocate = MadeOnGpu<Allocate>::Call,
                                          .release = MadeOnGpu<Release>::Call,
                                          .copy_in = MadeOnGpu<CopyIn>::Call,
                                          .copy_out = MadeOnGpu<CopyOut>::Call,
                                          .wait = MadeOnGpu<WaitForAll>::Call,
                                          .failure = FirstFailure,
                                          .gather = MadeOnGpu<Gather>::Call,
                                          .share = nullptr,
                                          .unshare = nullptr};
  static constexpr MemoryTable kManaged = {.allocate = MadeOnGpu<Allocate>::Call,
                                           .release = MadeOnGpu<Release>::Call,
                                           .copy_in = MadeOnGpu<CopyInByHost>::Call,
                                           .copy_out = MadeOnGpu<CopyOutByHost>::Call,
                                           .wait = MadeOnGpu<WaitForAll>::Call,
                                           .failure = FirstFailure,
                                           .gather = MadeOnGpu<Gather>::Call,
                                           .share = MadeOnGpu<ShareWithGpu>::Call,
                                           .unshare = MadeOnGpu<UnshareWithGpu>::Call};
  return IsManaged() ? kManaged : kDevice;
}

}  // namespace wisp::kernels::cuda
