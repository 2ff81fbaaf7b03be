// What training will hold, to the byte, before anything is made: what an app asks before it starts a run on a phone.
//
//   WISP_ASSIGN_OR_RETURN(TrainingMemory memory, PlanTrainingMemory(model.architecture(), num_records, options));
//   if (memory.total() > allowed) ...
//
// Each figure is what is asked of the system, paddings included. Memory does not depend on the batch: a worker has one
// record in hand. DP-AdaFEST's and DP-AdaFEST+'s does, which select rows by it (growth_at_most), and so do a
// classifier's lists (records_at_most). A run that trains a classifier's head alone keeps a vector of each record
// (pooled). Not counted: the objects themselves, less than 2 KB for each tensor and 8 KB
// for each worker and 8 KB; threads' stacks; the records, which are the caller's; the ledger.
#ifndef WISP_RUNTIME_TRAIN_MEMORY_H_
#define WISP_RUNTIME_TRAIN_MEMORY_H_

#include <cstddef>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"

namespace wisp {

struct Architecture;
struct TrainingOptions;

// Memory for what a step draws at random is planned for a count that the draw exceeds with a probability below this,
// unless it is planned for the largest count there can be.
inline constexpr double kSeldom = 1e-12;
// The smallest count that a binomial draw of so many trials, each with this probability, exceeds with a probability
// below kSeldom.
size_t BinomialUpperQuantile(size_t trials, double chance);

struct TrainingMemory {
  size_t weights = 0;         // and their average, where there is one
  size_t packed_weights = 0;  // in the order in which products read them
  size_t optimizer_state = 0;
  size_t gradient_sums = 0;     // and what else a method releases: carriers, rows, maps
  size_t negatives = 0;         // of a sampled softmax
  size_t activations = 0;       // of the workers' records, forward and backward
  size_t record_gradients = 0;  // what the gradient method keeps of the workers' records
  size_t variances = 0;         // of Re-Attention as printed; else they are weights
  size_t pooled = 0;            // of each record, where nothing below the head trains (pooled_cache.h)
  size_t lists = 0;             // which records a step takes, and who; which rows may be trained
  size_t total() const {
    return weights + packed_weights + optimizer_state + gradient_sums + negatives + activations + record_gradients +
           variances + pooled + lists;
  }

  // Of a plan for DP-AdaFEST(+); 0 for all others (but records_at_most of a classifier) and in what a trainer says. A
  // trainer holds at most `growth_at_most` above total(), in gradient_sums and record_gradients, while none of its
  // steps has drawn more than `records_at_most` records or changed more than `rows_at_most` rows of the item table. A
  // step draws more records with a chance below kSeldom, and changes more rows without that with a chance below
  // kSeldom: counted are all rows that so many records of the longest kind can touch, those that survive untouched, and
  // a sampled softmax's negatives. Past that it takes more, up to the whole table. While room grows, what is given up
  // is given back first, but for lists of 4 bytes a row.
  size_t growth_at_most = 0, rows_at_most = 0, records_at_most = 0;
};

// Equal to Trainer::memory() of a trainer of these options and so many records, before its first step and (but for
// growth) after any. Allocates none of it and reads no weights. Of `options` read: method, optimizer, ema_decay,
// num_threads, num_negatives, re_attention.source, trained_part, dropout, cache_at_most, base, recompute_blocks; of
// phantom training norm_form; rgp; of fest and adafest+ how many sparse.rows there are; of adafest(+) the map's
// options, expected_batch, num_records_public (0: num_records) and the noise multiplier; of DP-FP mode, micro_batches,
// expected_batch and num_records_public (its lists are planned for records_at_most). kInvalidArgument and the like
// where Trainer::Check would refuse these, but for printed Re-Attention without frequencies, on which no figure
// depends.
Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records,
                                          const TrainingOptions& options);

// Entries of the lists that a step keeps of its records.
struct ListRoom {
  size_t sample = 0, batch = 0, order = 0, batch_records = 0, of_workers = 0;
};
ListRoom PlanLists(const TrainingOptions& options, size_t num_records);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_MEMORY_H_
