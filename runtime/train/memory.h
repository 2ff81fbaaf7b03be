// Plans the bytes that training will hold, exactly, before anything is allocated: an app asks this before it starts a
// run on a phone.
//
//   WISP_ASSIGN_OR_RETURN(TrainingMemory memory, PlanTrainingMemory(model.architecture(), num_records, options));
//   if (memory.total() > allowed) ...
//
// Each figure is what is requested from the system, padding included.
//
// Memory does not depend on the batch, because a worker processes one record at a time. The exceptions are DP-AdaFEST
// and DP-AdaFEST+, which select rows by the batch (growth_at_most), and a classifier's lists (records_at_most). A run
// that trains only a classifier's head, or its last blocks, keeps what the layers below make of a record (states).
//
// Not counted: the objects themselves, less than 2 KB for each tensor, 8 KB for each worker and 10 KB more; threads'
// stacks; the records, which are the caller's; the ledger.
#ifndef WISP_RUNTIME_TRAIN_MEMORY_H_
#define WISP_RUNTIME_TRAIN_MEMORY_H_

#include <cstddef>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"

namespace wisp {

struct Architecture;
struct TrainingOptions;

// Memory for a random count is planned for a number that the count exceeds with a probability below this, or for the
// largest possible count.
inline constexpr double kSeldom = 1e-12;
// The smallest number that a binomial count exceeds with a probability below kSeldom: successes in `trials` trials,
// each with probability `chance`.
size_t BinomialUpperQuantile(size_t trials, double chance);

struct TrainingMemory {
  size_t weights = 0;         // and their moving average, if there is one
  size_t packed_weights = 0;  // matrices in the layout that products read
  size_t optimizer_state = 0;
  size_t gradient_sums = 0;     // and other released sums of a method: carriers, rows, maps
  size_t negatives = 0;         // rows of a sampled softmax
  size_t activations = 0;       // of the records in the workers' hands, forward and backward
  size_t record_gradients = 0;  // the gradient method's state of these records
  size_t variances = 0;         // Re-Attention's by the formula of its paper; other variances are part of the weights
  size_t states = 0;            // of frozen layers, if all that trains stands above them (state_cache.h)
  size_t lists = 0;             // records of a step, the worker of each, and rows that may be trained
  size_t total() const {
    return weights + packed_weights + optimizer_state + gradient_sums + negatives + activations + record_gradients +
           variances + states + lists;
  }

  // Bounds of a plan for DP-AdaFEST(+). They are 0 for all other methods (but records_at_most of a classifier), and 0
  // in a trainer's own memory().
  //
  // A trainer holds at most `growth_at_most` above total(), in gradient_sums and record_gradients, as long as no step
  // has drawn more than `records_at_most` records or changed more than `rows_at_most` rows of the item table. A step
  // draws more records with a probability below kSeldom. With no more records, it changes more rows with a probability
  // below kSeldom: counted are all rows that so many records of maximal length can touch, rows that survive untouched,
  // and a sampled softmax's negatives. Beyond these bounds it takes more memory, up to the whole table. A buffer that
  // grows is freed before the larger one is allocated, except for lists of 4 bytes a row.
  size_t growth_at_most = 0, rows_at_most = 0, records_at_most = 0;
};

// Equals Trainer::memory() of a trainer with these options and so many records, before its first step and (except for
// growth) after any. It allocates none of that memory and reads no weights.
//
// Options that it reads: method, optimizer, ema_decay, num_threads, num_negatives, re_attention.source, trained_part,
// last_blocks, cut_to, dropout, cache_at_most, base, recompute_blocks; for phantom training norm_form; for RGP rgp; for
// FEST and AdaFEST+ the number of sparse.rows; for AdaFEST(+) the map's options, expected_batch, num_records_public (0:
// num_records) and the noise multiplier; for DP-FP mode, micro_batches, expected_batch and num_records_public (its
// lists are planned for records_at_most).
//
// Returns the error with which Trainer::Check would refuse these options, except for printed Re-Attention without
// frequencies, which change no figure.
Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records,
                                          const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_MEMORY_H_
