#ifndef WISP_TOOLS_WISP_BENCH_MEMORY_BANDWIDTH_H_
#define WISP_TOOLS_WISP_BENCH_MEMORY_BANDWIDTH_H_

#include <cstddef>

namespace wisp::tools {

struct MemoryBandwidth {
  double gb_per_s;          // the best of the passes
  size_t bytes;             // of the three arrays together
  size_t last_cache_bytes;  // 0: the system does not say
};

// a = b + s c over arrays that are together twice as large as the last cache, but at most an eighth of the machine's
// memory, on one thread, with stores that pass by the caches: 12 bytes for each element. Takes about a second.
MemoryBandwidth MeasureMemoryBandwidth();

// GB/s at which so many threads read an array of their own together, each so large; the best of the passes.
double MeasureReadBandwidth(size_t threads);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_BENCH_MEMORY_BANDWIDTH_H_
