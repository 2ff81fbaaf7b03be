#include "kernels/cuda/emulate/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/memory_kinds.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/results.h"
#include "kernels/cuda/shared_memory.h"

namespace wisp::kernels::cuda {
namespace emulate {
namespace {

constexpr size_t kPage = 4096, kAlignment = 64;

struct Range {
  const void* begin = nullptr;
  size_t bytes = 0;

  bool Holds(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(begin) <= bytes; }
};

// Every allocation has pages of its own and ends at their end. The page after them is never accessible.
struct Pages {
  std::map<void*, size_t> bytes;  // bytes in whole pages, by the first page
  size_t total = 0;
  uint64_t limit = 0;
  int open = 0;  // nesting depth
  bool integrated = false;
  MemoryKind kind = MemoryKind::kDevice;
  Range results, arena, scratch;  // host memory that is shared
  std::vector<std::byte> hidden;  // the results while they are hidden
  std::vector<Range> shared;      // shared by MemoryTable::share

  bool IsShared(uintptr_t address) const {
    const auto holds = [address](const Range& range) { return range.Holds(address); };
    return holds(results) || holds(arena) || holds(scratch) || std::any_of(shared.begin(), shared.end(), holds);
  }

  bool OnDevice(uintptr_t address) const {
    const auto after = bytes.upper_bound(reinterpret_cast<void*>(address));
    if (after == bytes.begin()) return false;
    const auto& [first, size] = *std::prev(after);
    return address - reinterpret_cast<uintptr_t>(first) <= size;  // an argument may point to the end
  }

  void Protect(int protection) {
    for (const auto& [memory, size] : bytes) {
      if (mprotect(memory, size, protection) != 0) throw std::bad_alloc();
    }
  }
};

Pages& ThePages() {
  static Pages pages;
  return pages;
}

void* Allocate(void*, size_t size) {
  Pages& pages = ThePages();
  if (pages.limit > 0 && pages.total + size > pages.limit) throw std::bad_alloc();
  const size_t whole = (size + kPage - 1) / kPage * kPage;
  // The system zeroes the pages.
  void* first = mmap(nullptr, whole + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (first == MAP_FAILED) throw std::bad_alloc();
  if (pages.kind == MemoryKind::kManaged) ExcludeFromDumps(first, whole);
  pages.bytes[first] = whole;
  pages.total += size;
  return static_cast<std::byte*>(first) + whole - (size + kAlignment - 1) / kAlignment * kAlignment;
}

void Release(void*, void* memory, size_t size) {
  FlushProgram();
  Pages& pages = ThePages();
  void* first = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory) / kPage * kPage);
  munmap(first, pages.bytes.at(first) + kPage);
  pages.bytes.erase(first);
  pages.total -= size;
}

void Copy(void* to, const void* from, size_t size) {
  const OpenMemory open;
  if (size > 0) std::memcpy(to, from, size);
}

void CopyIn(void*, void* to, const void* from, size_t size) {
  if (!CopyInWithProgram(to, from, size)) Copy(to, from, size);
}

void CopyOut(void*, void* to, const void* from, size_t size) {
  if (!CopyOutWithProgram(to, from, size)) Copy(to, from, size);
}

void CopyInWhereShared(void*, void* to, const void* from, size_t size) {
  if (!CopyInWithProgram(to, from, size)) (void)CopyByHost(to, from, size);
}

void CopyOutWhereShared(void*, void* to, const void* from, size_t size) {
  if (!CopyOutWithProgram(to, from, size)) (void)CopyByHost(to, from, size);
}

// Like the driver, shares only whole pages that nobody else has shared.
const void* Share(void*, const void* host, size_t size) {
  const auto first = [](const Range& r) { return reinterpret_cast<uintptr_t>(r.begin) / kPage; };
  const auto last = [](const Range& r) { return (reinterpret_cast<uintptr_t>(r.begin) + r.bytes - 1) / kPage; };
  const Range wanted = {host, size};
  for (const Range& r : ThePages().shared) {
    if (first(wanted) <= last(r) && first(r) <= last(wanted)) return nullptr;
  }
  ThePages().shared.push_back(wanted);
  return host;
}

void Unshare(void*, const void* host, size_t size) {
  FlushProgram();
  std::vector<Range>& shared = ThePages().shared;
  const auto it = std::find_if(shared.begin(), shared.end(),
                               [&](const Range& range) { return range.begin == host && range.bytes == size; });
  if (it != shared.end()) shared.erase(it);
}

bool WaitForAll(void*) {
  FlushProgram();
  return Wait();
}

const char* NoFailure(void*) { return ""; }

}  // namespace

const char* PlayIntegrated(bool integrated) {
  const MemoryFacts facts = {.integrated = integrated, .managed = true};
  const MemoryChoice choice = ChooseMemory(facts, std::getenv(kMemoryVariable));
  ThePages().integrated = integrated;
  ThePages().kind = choice.kind;
  return choice.why;
}

bool IsIntegrated() { return ThePages().integrated; }
bool IsManaged() { return ThePages().kind == MemoryKind::kManaged; }

void OpenToHost() {
  if (IsManaged()) ThePages().Protect(PROT_READ | PROT_WRITE);
}

OpenMemory::OpenMemory() {
  if (ThePages().open++ == 0) ThePages().Protect(PROT_READ | PROT_WRITE);
}
OpenMemory::~OpenMemory() {
  if (--ThePages().open == 0) ThePages().Protect(PROT_NONE);
}

void LimitMemory(uint64_t bytes) { ThePages().limit = bytes; }

void* AllocateShared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ThePages().arena = {memory, bytes};
  return memory;
}

float* ScratchForKernels() {
  static std::vector<float> scratch(kScratchFloats);
  ThePages().scratch = {scratch.data(), scratch.size() * sizeof(float)};
  return scratch.data();
}

void ShareWithKernels(void* memory, size_t bytes) {
  ThePages().hidden.clear();
  ThePages().results = {memory, bytes};
}

void HideResults() {
  const Range& results = ThePages().results;
  if (results.bytes == 0) return;
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(results.begin));
  ThePages().hidden.assign(begin, begin + results.bytes);
  std::memset(begin, 0xff, results.bytes);
}

void ShowResults() {
  std::vector<std::byte>& hidden = ThePages().hidden;
  if (hidden.empty()) return;
  std::memcpy(const_cast<void*>(ThePages().results.begin), hidden.data(), hidden.size());
  hidden.clear();
}

namespace {

bool IsMapped(uintptr_t address) {
  unsigned char resident;
  return mincore(reinterpret_cast<void*>(address / kPage * kPage), 1, &resident) == 0;
}

}  // namespace

// Looks for aligned words with bits in the upper half but not the highest bit: two floats rarely look like the address
// of a page.
bool HoldsHostAddress(const void* argument, size_t bytes) {
  const Pages& pages = ThePages();
  if (pages.bytes.empty() && pages.arena.bytes == 0) return false;
  for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
    uintptr_t word;
    std::memcpy(&word, static_cast<const std::byte*>(argument) + at, sizeof(word));
    if (word >> 32 == 0 || word >> 47 != 0 || pages.OnDevice(word)) continue;
    if (pages.IsShared(word)) continue;
    if (IsMapped(word)) return true;
  }
  return false;
}

}  // namespace emulate

size_t AllocatedBytes() { return emulate::ThePages().total; }

const MemoryTable& DeviceMemory() {
  static constexpr MemoryTable kDevice = {.allocate = emulate::Allocate,
                                          .release = emulate::Release,
                                          .copy_in = emulate::CopyIn,
                                          .copy_out = emulate::CopyOut,
                                          .wait = emulate::WaitForAll,
                                          .failure = emulate::NoFailure,
                                          .gather = Gather,
                                          .share = nullptr,
                                          .unshare = nullptr};
  static constexpr MemoryTable kManaged = {.allocate = emulate::Allocate,
                                           .release = emulate::Release,
                                           .copy_in = emulate::CopyInWhereShared,
                                           .copy_out = emulate::CopyOutWhereShared,
                                           .wait = emulate::WaitForAll,
                                           .failure = emulate::NoFailure,
                                           .gather = Gather,
                                           .share = emulate::Share,
                                           .unshare = emulate::Unshare};
  return emulate::IsManaged() ? kManaged : kDevice;
}

}  // namespace wisp::kernels::cuda
