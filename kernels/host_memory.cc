// The host's memory as a Device sees it.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "kernels/device.h"

namespace wisp::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};  // one cache line, one AVX-512 register

// Rows of a large table are then found without a walk of the page table each (DP-AdaFEST over 1e7 items). A hint;
// nothing depends on it.
void AdviseHugePages(void* bytes, size_t size) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes) + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(bytes) + size) / kHugePage * kHugePage;
  if (end > begin + 8 * kHugePage) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)bytes;
  (void)size;
#endif
}

void* FromApp(const HostAllocator& app, size_t bytes) {
  void* memory = app.allocate(app.data, bytes, static_cast<size_t>(kAlignment));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// `stream`: a HostAllocator, or null.
void* Allocate(void* stream, size_t bytes) {
  void* memory =
      stream == nullptr ? ::operator new(bytes, kAlignment) : FromApp(*static_cast<HostAllocator*>(stream), bytes);
  AdviseHugePages(memory, bytes);
  return std::memset(memory, 0, bytes);
}

void Release(void* stream, void* memory, size_t bytes) {
  if (stream == nullptr) return ::operator delete(memory, kAlignment);
  const auto& app = *static_cast<HostAllocator*>(stream);
  app.release(app.data, memory, bytes);
}

void Copy(void*, void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

bool Wait(void*) { return true; }

const char* NoFailure(void*) { return ""; }

constexpr MemoryTable kHost = {
    .allocate = Allocate, .release = Release, .copy_in = Copy, .copy_out = Copy, .wait = Wait, .failure = NoFailure};

}  // namespace

Memory::Memory() : table(&kHost) {}

Memory HostMemory(const HostAllocator& allocator) { return {kHost, const_cast<HostAllocator*>(&allocator)}; }

}  // namespace wisp::kernels
