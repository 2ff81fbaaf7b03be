// What training will hold, to the byte, before anything is made: what an app asks before it starts a run on a phone.
//
//   WISP_ASSIGN_OR_RETURN(TrainingMemory memory, PlanTrainingMemory(model.architecture(), num_records, options));
//   if (memory.total() > allowed) ...
//
// Each figure is what is asked of the system, paddings included. Memory does not depend on the batch: a worker has one record
// in hand. Not counted: the objects themselves, less than 2 KB for each tensor and 8 KB for each worker; threads' stacks; the records, which
// are the caller's; the ledger; the variances of Re-Attention as printed (4 bytes an item).
#ifndef WISP_RUNTIME_TRAIN_MEMORY_H_
#define WISP_RUNTIME_TRAIN_MEMORY_H_

#include <cstddef>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"

namespace wisp {

struct TrainingOptions;

struct TrainingMemory {
  size_t weights = 0;           // and their average, where there is one
  size_t packed_weights = 0;    // in the order in which products read them
  size_t optimizer_state = 0;
  size_t gradient_sums = 0;     // and what else a method releases: carriers, rows, maps
  size_t negatives = 0;         // of a sampled softmax
  size_t activations = 0;       // of the workers' records, forward and backward
  size_t record_gradients = 0;  // what the gradient method keeps of the workers' records
  size_t lists = 0;             // which records a step takes, and who
  size_t total() const {
    return weights + packed_weights + optimizer_state + gradient_sums + negatives + activations + record_gradients + lists;
  }
};

// Equal to Trainer::memory() of a trainer of these options and so many records. Allocates none of it and reads no weights.
// Ordinary and phantom training with the full softmax; kUnsupported for what grows with the rows that are selected, and for
// rgp: there Trainer::memory() says it before the first step.
Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_MEMORY_H_
