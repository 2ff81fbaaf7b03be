// The bytes that one thread moves between memory and registers in a second: the roof of what is read once and written
// once.
#include "tools/wisp/bench/memory_bandwidth.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/wisp/bench/memory_bandwidth.cc"
#include "kernels/simd/targets.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/core/arena.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::tools::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// n: a multiple of 64.
void Triad(float* a, const float* b, const float* c, size_t n) {
  const hn::ScalableTag<float> d;
  const auto s = hn::Set(d, 0.5f);
  for (size_t i = 0; i < n; i += hn::Lanes(d))
    hn::Stream(hn::MulAdd(s, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
  hwy::FlushStream();
}

}  // namespace wisp::tools::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::tools {
namespace {

HWY_EXPORT(Triad);

constexpr size_t kPasses = 5;
constexpr size_t kUnknownCache = size_t{32} << 20;  // taken where the system does not say

size_t LastCacheBytes() {
#ifdef _SC_LEVEL4_CACHE_SIZE
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = sysconf(level); bytes > 0) return static_cast<size_t>(bytes);
  }
#endif
  return 0;
}

}  // namespace

MemoryBandwidth MeasureMemoryBandwidth() {
  MemoryBandwidth result{.gb_per_s = 0, .bytes = 0, .last_cache_bytes = LastCacheBytes()};
  const size_t memory = static_cast<size_t>(std::max(1L, sysconf(_SC_PHYS_PAGES))) *
                        static_cast<size_t>(std::max(1L, sysconf(_SC_PAGESIZE)));
  const size_t cache = result.last_cache_bytes == 0 ? kUnknownCache : result.last_cache_bytes;
  const size_t n = std::max<size_t>(1, std::min(2 * cache, memory / 8) / (3 * 64 * sizeof(float))) * 64;
  const AlignedArray<float> a(n), b(n), c(n);
  result.bytes = 3 * n * sizeof(float);
  for (size_t pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    HWY_DYNAMIC_DISPATCH(Triad)(a.data(), b.data(), c.data(), n);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.gb_per_s = std::max(result.gb_per_s, static_cast<double>(result.bytes) / seconds / 1e9);
  }
  return result;
}

}  // namespace wisp::tools
#endif
