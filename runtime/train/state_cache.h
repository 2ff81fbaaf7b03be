// A cache of what passes from a classifier's frozen layers to those that train. It is the same in every step:
//
//   only the head trains (trains: head; DP-FP's mode aggregate): the pooled vector of each record, in float32
//   only the last blocks train (last_blocks): what enters the first of them, a row for each token, in float16
//
//   for (uint32_t i : batch) cache.Want(i);                   // one thread
//   ... on each worker: cache.Fill(worker, context);
//   cache.Place(worker, b, i);                                // record i is the b-th of those that pass next
//   cache.Load(worker, context);                              // the context then starts from their states
//
// The cache changes no bit: rows are rounded to float16 whether or not there is space to keep them. Rows without space
// are computed in every step. It holds states of private records, only in memory and no longer than the trainer lives.
#ifndef WISP_RUNTIME_TRAIN_STATE_CACHE_H_
#define WISP_RUNTIME_TRAIN_STATE_CACHE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/arena.h"
#include "runtime/layers/graph.h"
#include "runtime/train/options.h"

namespace wisp {

class StateCache {
 public:
  // True if a run with these options and so many records has a cache: on the host, without dropout below the layers
  // that train. Pooled vectors are kept if all of them take at most options.cache_at_most bytes; rows always, as many
  // as that.
  static bool IsUsedFor(const Architecture& architecture, size_t num_records, const TrainingOptions& options);
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing. It depends on the
  // number of records and never on what they hold.
  static size_t PlanBytes(const Graph& graph, size_t num_records, const TrainingOptions& options);

  // `graph` and `records` must outlive this. At most options.num_threads workers use it.
  StateCache(const Graph& graph, std::span<const Record> records, const TrainingOptions& options);

  // Announces a record of the next step. A record may be announced twice.
  void Want(uint32_t record);
  // Computes the worker's share of the announced states that are missing. The context's weights are those of every
  // step.
  void Fill(size_t worker, RecordContext& context);
  // Call this when the weights of the frozen layers have changed.
  void Forget();
  // Call this after all workers have called Fill.
  void Filled() { missing_.clear(); }

  // Call this after Filled. b is below the graph's max_records; 0 begins a pass.
  void Place(size_t worker, size_t b, uint32_t record);
  // Sets the states of the placed records in the context. They stay until the worker's next Place or Fill. Rows for
  // which there was no space are computed here, in the context's buffers.
  void Load(size_t worker, RecordContext& context);
  // The record that passes the graph with its states. With its pooled vector it has one row and the same targets.
  Record GetPassed(const Record& record) const {
    return first_block_ ? record : Record{record.inputs.first(1), record.targets};
  }
  size_t size_bytes() const;

 private:
  // The sizes of a cache, which follow from its arguments.
  struct Sizes {
    std::optional<uint32_t> first_block;  // the first block that trains; nullopt: only the head does
    size_t rows = 0;                      // rows that are kept
    size_t waiting_rows = 0;              // rows of one pass of a worker
  };
  static Sizes GetSizes(const Graph& graph, size_t num_records, const TrainingOptions& options);
  static ArenaPlan GetPlan(const Sizes& sizes, size_t width, Slot<float>& vectors, Slot<kernels::Half>& halves);

  // One worker's records: those whose states are computed together, and those that pass together.
  struct Waiting {
    std::vector<Record> records;
    std::vector<uint32_t> indices;
    std::vector<uint32_t> placed;
    std::vector<float> computed, states;  // [rows, D]; pooled vectors are computed where they are placed
    size_t rows = 0;
  };
  size_t CountRows(uint32_t record) const { return first_block_ ? records_[record].inputs.size() : 1; }
  bool Fits(const Waiting& waiting, const Record& record) const;
  void Wait(Waiting& waiting, uint32_t record) const;
  // Computes the states of the waiting records, and empties the list.
  template <class Take>
  void Compute(Waiting& waiting, RecordContext& context, const Take& take) const;
  void Keep(const float* states, uint32_t record);
  void CopyKept(Waiting& waiting, size_t first, uint32_t record) const;

  static constexpr uint32_t kNotKept = UINT32_MAX;

  const Graph* graph_;
  std::span<const Record> records_;
  size_t width_;
  std::optional<uint32_t> first_block_;
  size_t capacity_;
  Slot<float> vectors_;
  Slot<kernels::Half> halves_;
  Arena states_;                     // one of these, [capacity, D]; memory is taken as it is filled
  std::vector<uint32_t> first_row_;  // per record: its first row in states_, or kNotKept
  size_t rows_ = 0;                  // that are filled or announced
  std::vector<uint32_t> missing_;
  std::vector<Waiting> waiting_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_STATE_CACHE_H_
