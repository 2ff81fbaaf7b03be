// Built for speed: its loop is what is measured.
// Measures the bytes that one thread moves between memory and registers in a second. This is the roofline of data that
// is read once and written once.
#include "tools/lab/bench/memory_bandwidth.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/lab/bench/memory_bandwidth.cc"
#include "kernels/simd/targets.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/core/threads.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::tools::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// n is a multiple of 64.
void Triad(float* a, const float* b, const float* c, size_t n) {
  const hn::ScalableTag<float> d;
  const auto s = hn::Set(d, 0.5f);
  for (size_t i = 0; i < n; i += hn::Lanes(d))
    hn::Stream(hn::MulAdd(s, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
  hwy::FlushStream();
}

// Sums a to make the reads necessary; nobody uses the sum. n is a multiple of 64. Two streams read a tenth more than
// one (Zen 5), and eight partial sums keep additions from waiting for each other.
float ReadAll(const float* a, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t half = n / 2 / 64 * 64;
  hn::Vec<decltype(d)> sums[8];
  for (auto& sum : sums) sum = hn::Zero(d);
  const auto add = [&](const float* from, size_t first) HWY_ATTR {
    for (size_t v = 0; v < 4; ++v) sums[first + v] = hn::Add(sums[first + v], hn::Load(d, from + v * hn::Lanes(d)));
  };
  for (size_t i = 0; i < half; i += 4 * hn::Lanes(d)) {
    add(a + i, 0);
    add(a + half + i, 4);
  }
  for (size_t i = 2 * half; i < n; i += hn::Lanes(d)) sums[0] = hn::Add(sums[0], hn::Load(d, a + i));
  for (size_t v = 1; v < 8; ++v) sums[0] = hn::Add(sums[0], sums[v]);
  return hn::GetLane(hn::SumOfLanes(d, sums[0]));
}

}  // namespace wisp::tools::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::tools {
namespace {

HWY_EXPORT(Triad);
HWY_EXPORT(ReadAll);

constexpr size_t kPasses = 5;
constexpr size_t kUnknownCache = size_t{32} << 20;  // assumed where the system does not say

size_t LastCacheBytes() {
#ifdef _SC_LEVEL4_CACHE_SIZE
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = sysconf(level); bytes > 0) return static_cast<size_t>(bytes);
  }
#endif
  return 0;
}

// Returns the floats of an array that is twice as large as the last cache, but at most an eighth of the memory; a
// multiple of 64.
size_t FloatsBeyondCaches(size_t last_cache_bytes) {
  const size_t memory = static_cast<size_t>(std::max(1L, sysconf(_SC_PHYS_PAGES))) *
                        static_cast<size_t>(std::max(1L, sysconf(_SC_PAGESIZE)));
  const size_t cache = last_cache_bytes == 0 ? kUnknownCache : last_cache_bytes;
  return std::max<size_t>(1, std::min(2 * cache, memory / 8) / (64 * sizeof(float))) * 64;
}

// Memory that was never written is one page of zeros, mapped again and again, which a cache holds. So this writes it.
AlignedArray<float> MakeWritten(size_t n) {
  AlignedArray<float> array(n);
  std::fill_n(array.data(), n, 1.0f);
  return array;
}

}  // namespace

MemoryBandwidth MeasureMemoryBandwidth() {
  MemoryBandwidth result{.gb_per_s = 0, .bytes = 0, .last_cache_bytes = LastCacheBytes()};
  const size_t n = std::max<size_t>(1, FloatsBeyondCaches(result.last_cache_bytes) / (3 * 64)) * 64;
  const AlignedArray<float> a = MakeWritten(n), b = MakeWritten(n), c = MakeWritten(n);
  result.bytes = 3 * n * sizeof(float);
  for (size_t pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    HWY_DYNAMIC_DISPATCH(Triad)(a.data(), b.data(), c.data(), n);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.gb_per_s = std::max(result.gb_per_s, static_cast<double>(result.bytes) / seconds / 1e9);
  }
  return result;
}

double MeasureReadBandwidth(size_t threads) {
  Workers workers(threads);
  std::vector<AlignedArray<float>> arrays(workers.size());
  const size_t n = FloatsBeyondCaches(LastCacheBytes());
  workers.Run([&](size_t w) { arrays[w] = MakeWritten(n); });
  std::vector<float> sums(workers.size());
  double best = 0;
  for (size_t pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    workers.Run([&](size_t w) { sums[w] = HWY_DYNAMIC_DISPATCH(ReadAll)(arrays[w].data(), n); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(workers.size() * n * sizeof(float)) / seconds / 1e9);
  }
  return best;
}

}  // namespace wisp::tools
#endif
