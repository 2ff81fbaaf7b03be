// The noise of a run's released sums: how much each step gets, and which mechanisms that makes. It is the only place
// where noise is drawn for the sum of a training step, and the only one that says what a step's noise costs.
//
//   const std::unique_ptr<NoiseProcess> noise = MakeNoiseProcess({.multiplier = 1.1});
//   noise->Begin(step);                                          // one thread
//   noise->Add(step, grid, first, sum, stream);                  // any threads, each range of the sum once
#ifndef WISP_RUNTIME_PRIVACY_NOISE_NOISE_PROCESS_H_
#define WISP_RUNTIME_PRIVACY_NOISE_NOISE_PROCESS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

struct NoiseOptions {
  double multiplier = 0;  // standard deviation over the clipping norm
};

class NoiseProcess {
 public:
  virtual ~NoiseProcess() = default;
  // Begins a step, before any Add of it. One thread. `noise` is the stream of that thread.
  virtual void Begin(uint64_t /*step*/, RandomStream& /*noise*/) {}
  // Adds the step's noise to coordinates [first, first + sum.size()) of the sum, in steps of the grid.
  virtual void Add(uint64_t step, const ExactGrid& grid, uint64_t first, std::span<int64_t> sum,
                   RandomStream& noise) const = 0;
};

std::unique_ptr<NoiseProcess> MakeNoiseProcess(const NoiseOptions& options);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_NOISE_PROCESS_H_
