// Runs the tests of kernels/cuda on a GPU: its module replaces the emulated table. It is linked into the programs
// gpu_*. WISP_CUDA_MODULE names the module; by default it is libwisp_cuda.so beside the program.
//
// The op suite hands ops the memory of its own vectors. So there (WISP_TEST_SHARES_MEMORY) everything that a test
// allocates lies in memory that the GPU reaches too, and an op has run when it returns. The host must not touch that
// memory while the GPU works (Jetson), so the op suite has one thread. Tests of graphs and runs keep the two memories
// apart, as programs do.
// The emulator's module passes as well: it ends if an op gets any other memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "gtest/gtest.h"
#include "kernels/cuda/cuda.h"
#include "kernels/module/module.h"
#include "tests/unit/one_file.h"

namespace {

using wisp::kernels::KernelModule;

constexpr size_t kArenaBytes = size_t{1} << 30, kAlignment = 64, kClasses = 48;
constexpr int kSkipped = 77;

struct Arena {
  char *begin = nullptr, *next = nullptr, *end = nullptr;
  void* free[kClasses] = {};  // free lists of blocks of 2^i bytes
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
#ifdef WISP_TEST_SHARES_MEMORY
  arena.module->run_at_once();
  arena.begin = arena.next = static_cast<char*>(arena.module->allocate_shared(kArenaBytes));
  if (arena.begin == nullptr) {
    std::fprintf(stderr, "the device shares no memory with the host: its op suite cannot run\n");
    std::_Exit(1);
  }
  arena.end = arena.begin + kArenaBytes;
#endif
  arena.opening = false;
}

Arena& OpenArena() {
  Arena& arena = TheArena();
  if (arena.module == nullptr && !arena.opening) OpenOnce(arena);
  return arena;
}

const KernelModule& TheModule() {
  Arena& arena = TheArena();
  const std::lock_guard lock(arena.mutex);
  return *OpenArena().module;
}

#ifdef WISP_TEST_SHARES_MEMORY

// Blocks have the size of powers of two, with their class in front of them; freed ones are used again.
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

#endif

}  // namespace

#ifdef WISP_TEST_SHARES_MEMORY
void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* block) noexcept { Release(block); }
void operator delete[](void* block) noexcept { Release(block); }
void operator delete(void* block, size_t) noexcept { Release(block); }
void operator delete[](void* block, size_t) noexcept { Release(block); }
#endif

// Nothing is destroyed at the end, because the driver may be gone before.
int main(int argc, char** argv) {
  (void)TheModule();
  ::testing::InitGoogleTest(&argc, argv);
  wisp::test::KeepOneFile(argv[0]);
  const int result = RUN_ALL_TESTS();
  std::fflush(nullptr);
  std::_Exit(result);
}

namespace wisp::kernels::cuda {

const OpTable& Ops(Arithmetic arithmetic) { return TheModule().ops(arithmetic); }
const MemoryTable& DeviceMemory() { return TheModule().memory(); }
size_t AllocatedBytes() { return TheModule().allocated(); }

}  // namespace wisp::kernels::cuda
