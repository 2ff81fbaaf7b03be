// The GPU's memory, and the host's that it reads and writes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gpu/gpu.h"
#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {
namespace {

std::atomic<uint64_t> g_allocated = 0, g_limit = 0;  // bytes; limit 0: none

// Pinned memory through which bytes go in: the caller's are read before the call returns, and the GPU fetches them when
// it comes to it. Full, it is waited for. What has arrived is wiped: it may be the noise of a private step.
struct Staging {
  static constexpr size_t kBytes = size_t{4} << 20, kAlignment = 256;
  char* bytes = nullptr;
  size_t used = 0;
  std::mutex mutex;

  // The mutex is held: nothing is staged meanwhile.
  void Arrive() {
    Note(cudaStreamSynchronize(Stream()));
    std::memset(bytes, 0, used);
    used = 0;
  }
};

Staging& TheStaging() {
  static Staging staging;
  return staging;
}

// Of the limit; false where it would pass it.
bool Take(size_t bytes) {
  const uint64_t after = g_allocated += bytes, limit = g_limit;
  if (limit == 0 || after <= limit) return true;
  g_allocated -= bytes;
  return false;
}

void* Allocate(void*, size_t bytes) {
  (void)Stream();  // this thread's device
  if (!Take(bytes)) throw std::bad_alloc();
  void* memory = nullptr;
  if (!Forgive(cudaMalloc(&memory, std::max<size_t>(bytes, 1)))) {
    g_allocated -= bytes;
    throw std::bad_alloc();
  }
  if (bytes > 0) Note(cudaMemsetAsync(memory, 0, bytes, Stream()));
  NoteLaunch();
  return memory;
}

// Waits by itself until nothing uses it.
void Release(void*, void* memory, size_t bytes) {
  (void)Stream();
  Note(cudaFree(memory));
  g_allocated -= bytes;
}

void CopyIn(void*, void* to, const void* from, size_t bytes) {
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
  if (bytes == 0) return;
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Stream());
  if (error == cudaSuccess) error = cudaStreamSynchronize(Stream());
  Note(error);
  if (error != cudaSuccess) std::memset(to, 0, bytes);
}

bool WaitForAll(void*) { return Wait(); }
const char* FirstFailure(void*) { return Failure(); }

// Pinned memory of the host that kernels write: of one thread.
struct Pinned {
  double* numbers = nullptr;
  size_t count = 0;
  ~Pinned() { (void)cudaFreeHost(numbers); }
};

}  // namespace

void WaitForStaged() {
  Staging& staging = TheStaging();
  const std::lock_guard lock(staging.mutex);
  staging.Arrive();
}

cudaError_t OpenMemory() {
  return cudaHostAlloc(reinterpret_cast<void**>(&TheStaging().bytes), Staging::kBytes, cudaHostAllocDefault);
}

void LimitMemory(uint64_t bytes) { g_limit = bytes; }

size_t AllocatedBytes() { return g_allocated; }

void* AllocateShared(size_t bytes) {
  void* memory = nullptr;
  return Forgive(cudaMallocManaged(&memory, bytes)) ? memory : nullptr;
}

double* Results(size_t count) {
  static thread_local Pinned pinned;
  if (count <= pinned.count) return pinned.numbers;
  (void)Stream();
  (void)Forgive(cudaFreeHost(pinned.numbers));
  pinned.numbers = nullptr;
  pinned.count = 0;
  void* numbers = nullptr;
  const cudaError_t error = cudaHostAlloc(&numbers, count * sizeof(double), cudaHostAllocMapped);
  Note(error);  // whoever asked cannot go on without
  if (!Forgive(error)) return nullptr;
  pinned.numbers = static_cast<double*>(numbers);
  pinned.count = count;
  return pinned.numbers;
}

const MemoryTable& DeviceMemory() {
  static constexpr MemoryTable kTable = {.allocate = Allocate,
                                         .release = Release,
                                         .copy_in = CopyIn,
                                         .copy_out = CopyOut,
                                         .wait = WaitForAll,
                                         .failure = FirstFailure};
  return kTable;
}

}  // namespace wisp::kernels::cuda
