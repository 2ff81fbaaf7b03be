// The noise of a run's released sums. It is the only place where noise is drawn for the sum of a training step. What it
// costs, the plan of the run says (runtime/train/privacy_plan.h), from the same NoiseOptions.
//
//   const std::unique_ptr<NoiseProcess> noise = MakeNoiseProcess({.multiplier = 1.1});
//   noise->Begin(stream);                                        // once a step, one thread
//   noise->Add(step, grid, first, sum, stream);                  // any threads, each range of the sum once
#ifndef WISP_RUNTIME_PRIVACY_NOISE_NOISE_PROCESS_H_
#define WISP_RUNTIME_PRIVACY_NOISE_NOISE_PROCESS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

struct NoiseOptions {
  double multiplier = 0;  // standard deviation over the clipping norm
  // The multiplier may follow a schedule: from `first_step` on it is `ratio` times `multiplier`. Ascending, the first
  // level at step 0. Empty: one level for all steps.
  struct Level {
    uint64_t first_step = 0;
    double ratio = 1;
  };
  std::vector<Level> levels = {};
  // Each step takes back this share of the noise of the step before, 0 <= lambda < 1 (correlated_noise.h); at most
  // num_steps steps. Ranges must then be the same in all steps, and the multiplier too.
  double lambda = 0;
  uint64_t num_steps = 0;

  double GetRatio(uint64_t step) const;
  double GetMultiplier(uint64_t step) const { return GetRatio(step) * multiplier; }
  // The standard deviation of a step's independent noise, in steps of the grid.
  uint64_t GetSigma(uint64_t step, const ExactGrid& grid) const;
};

class NoiseProcess {
 public:
  virtual ~NoiseProcess() = default;
  // Begins a step, before any Add of it. `noise` is the calling thread's stream.
  virtual void Begin(RandomStream& /*noise*/) {}
  // Adds the noise of step `step` to coordinates [first, first + sum.size()) of the sum, in steps of the grid.
  virtual void Add(uint64_t step, const ExactGrid& grid, uint64_t first, std::span<int64_t> sum,
                   RandomStream& noise) = 0;
};

std::unique_ptr<NoiseProcess> MakeNoiseProcess(const NoiseOptions& options);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_NOISE_PROCESS_H_
