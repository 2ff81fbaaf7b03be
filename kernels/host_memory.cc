// Implements the memory of a Device that is the host itself.
#include <cstring>
#include <new>

#include "kernels/device.h"
#include "kernels/pages.h"

namespace wisp::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};  // one cache line, one AVX-512 register

void Advise(void*, void* bytes, size_t size) { AdviseLargePages(bytes, size); }

void* FromApp(const HostAllocator& app, size_t bytes) {
  void* memory = app.allocate(app.data, bytes, static_cast<size_t>(kAlignment));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// `stream` is a HostAllocator or null. An app's allocator may return memory of any kind.
void* Allocate(void* stream, size_t bytes) {
  if (stream != nullptr) return std::memset(FromApp(*static_cast<HostAllocator*>(stream), bytes), 0, bytes);
  void* memory = ::operator new(bytes, kAlignment);
  ClearPages(memory, bytes);
  ExcludeFromDumps(memory, bytes);
  return memory;
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

constexpr MemoryTable kHost = {.allocate = Allocate,
                               .release = Release,
                               .copy_in = Copy,
                               .copy_out = Copy,
                               .wait = Wait,
                               .failure = NoFailure,
                               .use_whole = Advise};

}  // namespace

Memory::Memory() : table(&kHost) {}

Memory HostMemory(const HostAllocator& allocator) { return {kHost, const_cast<HostAllocator*>(&allocator)}; }

}  // namespace wisp::kernels
