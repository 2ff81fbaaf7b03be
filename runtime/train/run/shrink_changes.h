// Takes back what noise alone did to weights in a private run with Adam.
//
// Adam moves a weight whose gradient is noise by about its rate (noise_variance.h): d such weights move by d tau^2 in
// the mean, in squared length. In a large catalogue most items are in few records or none, and among very many rows of
// noise some always end up high in a ranking.
//
// - ShrinkChanges: James and Stein's positive-part shrinkage of each parameter, and of each row of item tables. What a
//   group of d weights moved is multiplied by max(0, 1 - d tau^2 / moved^2). A row is kept only if it moved further
//   than one of as many rows of noise does by chance.
// - RestoreRows: rows of items that the start did not know go back to the start if noise could have moved them so far
//   by chance. Such an item stays untrained (untrained_items.h).
//
// Both read released values only, so they cost no privacy. docs/papers/what-helps.md has what they gain.
#ifndef WISP_RUNTIME_TRAIN_RUN_SHRINK_CHANGES_H_
#define WISP_RUNTIME_TRAIN_RUN_SHRINK_CHANGES_H_

#include <cstdint>
#include <span>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/train/options.h"

namespace wisp {

// OK if it is known how far noise moves the weights of a run: a private one with Adam and noise of one size, which
// holds all weights and starts from a model's. Else a sentence that says so.
Status CheckNoiseIsKnown(const TrainingOptions& options, std::span<const float> start);

// tau^2 after steps [0, num_steps) of a run with this schedule of rates, whose optimizer must be Adam. The gradient of
// a step moves a weight in that step and, by momentum, in later ones. Noise really moves weights that far within 10 %.
double ComputeNoiseVariance(const OptimizerOptions& optimizer, uint64_t num_steps, uint64_t planned_steps);

// `start` and `weights`, in the flat layout of `architecture`, are the weights before and after the run.
void ShrinkChanges(const Architecture& architecture, std::span<const float> start, double variance_of_noise,
                   std::span<float> weights);

// Restores those rows of `items` that are no further from the start than the furthest of as many rows of noise, or of
// 20 if they are fewer.
void RestoreRows(const Architecture& architecture, std::span<const float> start, std::span<const int32_t> items,
                 double variance_of_noise, std::span<float> weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_SHRINK_CHANGES_H_
