// The host's memory as a Device sees it.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "kernels/device.h"

namespace wisp::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};  // one cache line, one AVX-512 register

// Rows of a large table are then found without a walk of the page table each (DP-AdaFEST over 1e7 items). A hint;
// nothing depends on it.
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

#if defined(__linux__) && !defined(__ANDROID__)     // there the heap may be tagged, and pages would lose their tags
constexpr size_t kGivenBackFrom = size_t{1} << 20;  // less is cleared in less time than its pages take to come

// Zeroes whole pages by giving them back: each comes again as zeros when it is first touched. Room that is planned for
// the longest text then costs what the text at hand takes of it. False where the pages are not such, or are locked.
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

// `stream`: a HostAllocator, or null. What an app's allocator gives may be memory of any kind.
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
