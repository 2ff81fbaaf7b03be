#ifndef WISP_TOOLS_LAB_BENCH_MEMORY_BANDWIDTH_H_
#define WISP_TOOLS_LAB_BENCH_MEMORY_BANDWIDTH_H_

#include <cstddef>

namespace wisp::tools {

struct MemoryBandwidth {
  double gb_per_s;          // the best of the passes
  size_t bytes;             // the three arrays together
  size_t last_cache_bytes;  // 0: the system does not say
};

// Runs a = b + s c on one thread, with stores that bypass the caches: 12 bytes for each element. The arrays together
// are twice as large as the last cache, but at most an eighth of the machine's memory. Takes about a second.
MemoryBandwidth MeasureMemoryBandwidth();

// Returns the GB/s, in the best of the passes, at which `threads` threads together read one such array each.
double MeasureReadBandwidth(size_t threads);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_BENCH_MEMORY_BANDWIDTH_H_
