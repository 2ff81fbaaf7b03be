#include "kernels/pages.h"

#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <cstring>

namespace wisp::kernels {

void AdviseLargePages(void* bytes, size_t size) {
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

void ExcludeFromDumps(const void* bytes, size_t size) {
#ifdef MADV_DONTDUMP
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(bytes);
  if (size < page) return;
  const uintptr_t begin = at / page * page, end = (at + size + page - 1) / page * page;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTDUMP);
#else
  (void)bytes;
  (void)size;
#endif
}

#if defined(__linux__) && !defined(__ANDROID__)  // on Android the heap may be tagged, and pages would lose their tags
namespace {

constexpr size_t kGivenBackFrom = size_t{1} << 20;  // smaller areas are cleared faster than new pages arrive

// False if the pages are of another kind or locked.
bool GiveBack(std::byte* begin, std::byte* end) {
  volatile std::byte& sample = *begin;
  sample = std::byte{1};
  return madvise(begin, static_cast<size_t>(end - begin), MADV_DONTNEED) == 0 && sample == std::byte{0};
}

}  // namespace

void ClearPages(void* bytes, size_t size) {
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
void ClearPages(void* bytes, size_t size) { std::memset(bytes, 0, size); }
#endif

}  // namespace wisp::kernels
