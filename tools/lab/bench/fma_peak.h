#ifndef WISP_TOOLS_LAB_BENCH_FMA_PEAK_H_
#define WISP_TOOLS_LAB_BENCH_FMA_PEAK_H_

namespace wisp::tools {

// Returns the GFLOP/s of one thread over about 10 microseconds. Take the best or the median of many.
double FmaProbe();

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_BENCH_FMA_PEAK_H_
