// What makes the tests of kernels/cuda run on a GPU: its module in place of the emulated table, and one memory for both
// sides. Linked into the programs gpu_*.
//
// The op suite hands ops the memory of its own vectors. So here everything that a test allocates lies in memory that
// the GPU reaches too, and kernels have run when an op returns. WISP_CUDA_MODULE names the module; by default it is
// libwisp_cuda.so beside the program. The emulator's module passes as well: it ends where an op gets any other memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/cuda/cuda.h"
#include "kernels/module/module.h"

namespace {

using wisp::kernels::KernelModule;

constexpr size_t kArenaBytes = size_t{8} << 30, kAlignment = 64, kClasses = 48;
constexpr int kSkipped = 77;

struct Arena {
  char *begin = nullptr, *next = nullptr, *end = nullptr;
  void* free[kClasses] = {};  // of blocks of 2^i bytes: lists
  const KernelModule* module = nullptr;
  bool opening = false;
  std::recursive_mutex mutex;
};

Arena& TheArena() {
  static Arena arena;
  return arena;
}

// While this runs, memory is the host's.
void OpenOnce(Arena& arena) {
  arena.opening = true;
  const char* file = std::getenv("WISP_CUDA_MODULE");
  const wisp::kernels::OpenedModule opened =
      wisp::kernels::OpenModule({.name = "cuda", .file = file != nullptr ? file : ""});
  if (opened.module == nullptr) {
    std::fprintf(stderr, "skipped: %s\n", opened.why.c_str());
    std::_Exit(kSkipped);
  }
  arena.module = opened.module;
  arena.module->run_at_once();
  arena.begin = arena.next = static_cast<char*>(arena.module->allocate_shared(kArenaBytes));
  if (arena.begin == nullptr) {
    std::fprintf(stderr, "the device shares no memory with the host: its op suite cannot run\n");
    std::_Exit(1);
  }
  arena.end = arena.begin + kArenaBytes;
  arena.opening = false;
}

Arena& OpenArena() {
  Arena& arena = TheArena();
  if (arena.module == nullptr && !arena.opening) OpenOnce(arena);
  return arena;
}

// Blocks of powers of two, their class in front of them; freed ones are used again.
void* Allocate(size_t bytes) {
  Arena& arena = TheArena();
  const std::lock_guard lock(arena.mutex);
  OpenArena();
  if (arena.opening) return std::malloc(bytes);
  size_t size_class = 7;
  while ((size_t{1} << size_class) < bytes + kAlignment) ++size_class;
  if (void* block = arena.free[size_class]) {
    std::memcpy(&arena.free[size_class], block, sizeof(void*));
    return block;
  }
  const size_t size = size_t{1} << size_class;
  if (arena.next + size > arena.end) throw std::bad_alloc();
  char* block = arena.next + kAlignment;
  std::memcpy(arena.next, &size_class, sizeof(size_class));
  arena.next += size;
  return block;
}

void Release(void* block) {
  Arena& arena = TheArena();
  if (block < arena.begin || block >= arena.end) return std::free(block);
  const std::lock_guard lock(arena.mutex);
  size_t size_class;
  std::memcpy(&size_class, static_cast<char*>(block) - kAlignment, sizeof(size_class));
  std::memcpy(block, &arena.free[size_class], sizeof(void*));
  arena.free[size_class] = block;
}

const KernelModule& TheModule() {
  Arena& arena = TheArena();
  const std::lock_guard lock(arena.mutex);
  return *OpenArena().module;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* block) noexcept { Release(block); }
void operator delete[](void* block) noexcept { Release(block); }
void operator delete(void* block, size_t) noexcept { Release(block); }
void operator delete[](void* block, size_t) noexcept { Release(block); }

namespace wisp::kernels::cuda {

const OpTable& Ops() { return TheModule().ops(); }
const MemoryTable& DeviceMemory() { return TheModule().memory(); }
size_t AllocatedBytes() { return TheModule().allocated(); }

}  // namespace wisp::kernels::cuda
