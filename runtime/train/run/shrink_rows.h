// Shrinks rows of item tables that moved no further than noise alone would have moved them: James and Stein's
// positive-part shrinkage, row by row, of what a private run changed.
//
// In a large catalogue most items are in few records or none. Their rows move nevertheless, by the noise of every step,
// and among very many of them some always end up high in a ranking. A row of d numbers that saw only noise has moved by
// d tau^2 in the mean, in squared length. Here tau^2 = sum over steps of rate^2, because Adam moves a coordinate whose
// gradient is noise by about its rate (noise_variance.h). What a row moved beyond that is signal; so its change is
// multiplied by max(0, 1 - d tau^2 / moved^2).
//
// It reads released values only, so it costs no privacy. docs/gains.md has what it gains, and where it costs more than
// it gains.
#ifndef WISP_RUNTIME_TRAIN_RUN_SHRINK_ROWS_H_
#define WISP_RUNTIME_TRAIN_RUN_SHRINK_ROWS_H_

#include <cstdint>
#include <span>

#include "runtime/core/architecture.h"
#include "runtime/train/optimizer.h"

namespace wisp {

// tau^2 after steps [0, num_steps) of a run with this schedule of rates, whose optimizer must be Adam. Noise really
// moves rows that far within 15 % at a constant rate, and a third further at a falling one, because Adam's first steps
// are larger.
double ComputeNoiseVariance(const OptimizerOptions& optimizer, uint64_t num_steps, uint64_t planned_steps);

// `start` and `weights`, in the flat layout of `architecture`, are the weights before and after the run.
void ShrinkRows(const Architecture& architecture, std::span<const float> start, double variance_of_noise,
                std::span<float> weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_SHRINK_ROWS_H_
