// Replaces the global allocator of a test program by one that counts. Exactly one unit of the program includes it.
#ifndef WISP_TESTS_UNIT_CORE_COUNTING_ALLOCATOR_H_
#define WISP_TESTS_UNIT_CORE_COUNTING_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace wisp::test {

inline std::atomic<size_t> num_allocations{0};
inline std::atomic<size_t> allocated_bytes{0};   // all requested bytes, also those freed since
inline std::atomic<bool> no_memory{false};       // true: every allocation fails
inline std::atomic<size_t> too_large{SIZE_MAX};  // bytes: an allocation of this size or more fails

#if defined(_WIN32)
inline void* Take(size_t size, size_t alignment) { return _aligned_malloc(size, alignment); }
inline void Free(void* p) { _aligned_free(p); }
#else
inline void* Take(size_t size, size_t alignment) {
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
inline void Free(void* p) { std::free(p); }
#endif

inline void* CountedNew(size_t size, size_t alignment) {
  ++num_allocations;
  allocated_bytes += size;
  void* p = no_memory || size >= too_large ? nullptr : Take(size, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace wisp::test

void* operator new(size_t size) { return wisp::test::CountedNew(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return wisp::test::CountedNew(size, static_cast<size_t>(alignment));
}
void operator delete(void* p) noexcept { wisp::test::Free(p); }
void operator delete(void* p, size_t) noexcept { wisp::test::Free(p); }
void operator delete(void* p, std::align_val_t) noexcept { wisp::test::Free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { wisp::test::Free(p); }

#endif  // WISP_TESTS_UNIT_CORE_COUNTING_ALLOCATOR_H_
