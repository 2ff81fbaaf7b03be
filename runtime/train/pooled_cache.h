// A cache of each record's pooled vector for a classifier. If nothing below the pooler trains (trains: head; DP-FP's
// mode aggregate), that vector is the same in every step. A step then costs one row of the head per record. No bit
// changes.
//
//   for (uint32_t i : batch) cache.Want(i);                   // one thread
//   ... on each worker: cache.Fill(worker, context, records);
//   cache.Place(worker, b, i);                                // record i is the b-th of those that pass next
//   context.pooled_BD = cache.placed(worker);
//
// It holds vectors of private records, only in memory and no longer than the trainer lives.
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
  // True if a run with these options and so many records uses a cache: on the host, where it changes no result, and if
  // it takes at most options.cache_at_most bytes.
  static bool IsUsedFor(const Architecture& architecture, size_t num_records, const TrainingOptions& options);
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const Graph& graph, size_t num_records, size_t num_workers);

  // `graph` must outlive this.
  PooledCache(const Graph& graph, size_t num_records, size_t num_workers);

  // Announces a record of the next step. A record may be announced twice.
  void Want(uint32_t record);
  // Computes the worker's share of the announced vectors that are missing. The context's weights are those of every
  // step.
  void Fill(size_t worker, RecordContext& context, std::span<const Record> records);
  // Call this when the weights below the head have changed.
  void Forget() { known_.assign(known_.size(), 0); }
  // Call this after all workers have called Fill.
  void Filled() { missing_.clear(); }

  // Call this after Filled. A placed vector stays until the worker's next Place or Fill; b is below the graph's
  // max_records.
  void Place(size_t worker, size_t b, size_t record);
  const float* placed(size_t worker) const { return waiting_[worker].states.data(); }
  // The record that passes the graph with its pooled vector: one row, the same targets.
  static Record GetRow(const Record& record) { return {record.inputs.first(1), record.targets}; }
  size_t size_bytes() const;

 private:
  // One worker's records that pass together, and their pooled vectors [B, D], which Place overwrites.
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
  std::vector<uint8_t> known_;  // per record: 1 if its vector is there or announced
  std::vector<uint32_t> missing_;
  std::vector<Waiting> waiting_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_POOLED_CACHE_H_
