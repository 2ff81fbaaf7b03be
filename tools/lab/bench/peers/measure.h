// Measures one product, computed by all contenders in turns: first checked, then timed.
//
// Time is the calling thread's processor time, so that other programs on a busy machine do not count. They still affect
// its clock and caches. Therefore contenders take turns in short batches, and ratios are formed within a round.
#ifndef WISP_TOOLS_LAB_BENCH_PEERS_MEASURE_H_
#define WISP_TOOLS_LAB_BENCH_PEERS_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/lab/bench/peers/contender.h"

namespace wisp::bench {

struct Spread {
  double low = 0, median = 0, high = 0;  // quartiles
};

struct Shape {
  const char* name;
  size_t rows, n, k;
  Orientation orientation;

  double gflop() const { return 2e-9 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k); }
};

struct Measured {
  std::string contender, implementation;
  // max |out - reference| / sum |a b| over the elements, in units of 2^-24. The peers are compared with ours, and ours
  // with sums in double.
  double error = 0;
  bool agrees = false;  // error is within the bound of kernels.h; otherwise the contender is not timed
  bool packs_ahead = false;
  Spread gflops, percent_of_peak;
  Spread pack_us;         // zero without packs_ahead
  Spread ours_over_this;  // ratio of the speeds, round by round
};

struct Cell {
  Shape shape;
  double peak_gflops = 0;          // the best of the rounds
  std::vector<Measured> measured;  // ours first

  // Returns the fastest peer by ours_over_this; null if no peer agrees, or if ours does not. `same_work`: only peers
  // that pack ahead no more than ours.
  const Measured* Best(bool same_work) const;
};

Cell MeasureCell(const Shape& shape, uint32_t rounds);

// Returns the processor time of all threads but this one, in seconds. It reveals a library that used other threads.
double OtherThreadsSeconds();

}  // namespace wisp::bench

#endif  // WISP_TOOLS_LAB_BENCH_PEERS_MEASURE_H_
