// What a classifier pools of each record, computed once: of a run that trains nothing below the pooler (trains: head;
// DP-FP's mode aggregate) it is the same in every step. Steps then cost a row of the head a record. No bit changes.
//
//   for (uint32_t i : batch) cache.Want(i);                   // one thread
//   ... on each worker: cache.Fill(worker, context, records);
//   cache.Place(worker, b, i);                                // record i is the b-th of those that pass next
//   context.pooled_BD = cache.placed(worker);
//
// It holds what private records are as vectors, in memory alone, no longer than the trainer.
#ifndef WISP_RUNTIME_TRAIN_POOLED_CACHE_H_
#define WISP_RUNTIME_TRAIN_POOLED_CACHE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/layers/graph.h"
#include "runtime/train/options.h"

namespace wisp {

class PooledCache {
 public:
  // Whether a run of these options and so many records has one: where it changes nothing, on the host, and where it
  // takes no more than options.cache_at_most bytes.
  static bool IsOf(const Architecture& architecture, size_t num_records, const TrainingOptions& options);
  // What size_bytes will be of one; allocates none of it.
  static size_t PlanBytes(const Graph& graph, size_t num_records, size_t num_workers);

  // `graph` must outlive this.
  PooledCache(const Graph& graph, size_t num_records, size_t num_workers);

  // The records of a step, before it. Any may come twice.
  void Want(uint32_t record);
  // The worker's share of what was wanted and is not there yet; the context's weights are those of every step.
  void Fill(size_t worker, RecordContext& context, std::span<const Record> records);
  // Where the weights below the head are others than they were.
  void Forget() { known_.assign(known_.size(), 0); }
  // After all workers have filled theirs.
  void Filled() { missing_.clear(); }

  // After Filled. What is placed stays until the worker places or fills again; b is below the graph's max_records.
  void Place(size_t worker, size_t b, size_t record);
  const float* placed(size_t worker) const { return waiting_[worker].states.data(); }
  // The record as it passes with its state: one row, the same targets.
  static Record RowOf(const Record& record) { return {record.inputs.first(1), record.targets}; }
  size_t size_bytes() const;

 private:
  // Of one worker: the records that pass together, and what is pooled of them [B, D], which is also what is placed.
  struct Waiting {
    std::vector<Record> records;
    std::vector<uint32_t> indices;
    std::vector<float> states;
    size_t rows = 0;
  };
  void Compute(Waiting& waiting, RecordContext& context);

  const Graph* graph_;
  size_t width_;
  AlignedArray<float> states_;  // [records, D]
  std::vector<uint8_t> known_;  // of each record, whether its state is there or about to be
  std::vector<uint32_t> missing_;
  std::vector<Waiting> waiting_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_POOLED_CACHE_H_
