// One product, computed by all contenders in turns: first checked, then timed.
//
// Time is the calling thread's processor time, so that what other programs take of a busy machine does not count. What
// they do to its clock and caches does: therefore contenders take turns in short batches, and ratios are formed within
// a round.
#ifndef WISP_TOOLS_BENCH_PEERS_MEASURE_H_
#define WISP_TOOLS_BENCH_PEERS_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/peers/contender.h"

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
  // max |out - ours| / sum |a b| over the elements, ours against sums in double; in units of 2^-24.
  double error = 0;
  bool agrees = false;  // error within the bound of kernels.h for each of the two; what does not agree is not timed
  bool packs_ahead = false;
  Spread gflops, percent_of_peak;
  Spread pack_us;         // zero without packs_ahead
  Spread ours_over_this;  // of the speeds, round by round
};

struct Cell {
  Shape shape;
  double peak_gflops = 0;          // the best of the rounds
  std::vector<Measured> measured;  // ours first

  // The fastest peer by ours_over_this; null where none agrees, or ours does not. `same_work`: only those that pack
  // ahead no more than ours.
  const Measured* Best(bool same_work) const;
};

Cell MeasureCell(const Shape& shape, uint32_t rounds);

// Processor time of all threads but this one, in seconds: shows a library that did not stay on one.
double OtherThreadsSeconds();

}  // namespace wisp::bench

#endif  // WISP_TOOLS_BENCH_PEERS_MEASURE_H_
