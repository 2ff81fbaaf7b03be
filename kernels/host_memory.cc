// Implements the memory of a Device that is the host itself.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "kernels/device.h"

namespace wisp::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};  // one cache line, one AVX-512 register

// With large pages, reading a row of a large table needs no page table walk (DP-AdaFEST over 1e7 items). This is a
// hint; nothing depends on it.
void AdviseHugePages(void*, void* bytes, size_t size) {
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

#if defined(__linux__) && !defined(__ANDROID__)  // on Android the heap may be tagged, and pages would lose their tags
constexpr size_t kGivenBackFrom = size_t{1} << 20;  // smaller areas are cleared faster than new pages arrive

// Zeroes whole pages by returning them to the system: each comes back as zeros when it is touched. So space planned for
// the longest text costs only what the current text uses. False if the pages are of another kind or locked.
bool GiveBack(std::byte* begin, std::byte* end) {
  volatile std::byte& sample = *begin;
  sample = std::byte{1};
  return madvise(begin, static_cast<size_t>(end - begin), MADV_DONTNEED) == 0 && sample == std::byte{0};
}

void Clear(void* bytes, size_t size) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(bytes);
  auto* const first = static_cast<std::byte*>(bytes);
  std::byte* const begin = first + ((at + page - 1) / page * page - at);
  std::byte* const end = first + size - (at + size) % page;
  if (size < kGivenBackFrom || !GiveBack(begin, end)) {
    std::memset(bytes, 0, size);
    return;
  }
  std::memset(first, 0, static_cast<size_t>(begin - first));
  std::memset(end, 0, static_cast<size_t>(first + size - end));
}
#else
void Clear(void* bytes, size_t size) { std::memset(bytes, 0, size); }
#endif

void* FromApp(const HostAllocator& app, size_t bytes) {
  void* memory = app.allocate(app.data, bytes, static_cast<size_t>(kAlignment));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// `stream` is a HostAllocator or null. An app's allocator may return memory of any kind.
void* Allocate(void* stream, size_t bytes) {
  if (stream != nullptr) return std::memset(FromApp(*static_cast<HostAllocator*>(stream), bytes), 0, bytes);
  void* memory = ::operator new(bytes, kAlignment);
  Clear(memory, bytes);
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
                               .use_whole = AdviseHugePages};

}  // namespace

Memory::Memory() : table(&kHost) {}

Memory HostMemory(const HostAllocator& allocator) { return {kHost, const_cast<HostAllocator*>(&allocator)}; }

}  // namespace wisp::kernels
