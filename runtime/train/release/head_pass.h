// The part of a DP-FP step that makes the head: micro-batches are drawn, their records' representations summed and
// released, the head is fitted to the releases. Head_releases.h has the mathematics and where it is private.
//
//   pass->Draw(stream, records.size());
//   ... on each worker: num_dropped += pass->Add(worker, context, records);
//   pass->Fit(noise, weights);                                       // one thread; packed weights are old then
#ifndef WISP_RUNTIME_TRAIN_RELEASE_HEAD_PASS_H_
#define WISP_RUNTIME_TRAIN_RELEASE_HEAD_PASS_H_

#include <span>
#include <vector>

#include "runtime/layers/graph.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/options.h"
#include "runtime/train/pooled_cache.h"
#include "runtime/train/release/head_releases.h"

namespace wisp {

class HeadPass {
 public:
  // `graph` must have a head of classes and outlive this. Room is made for the number of draws that a
  // step of so many records exceeds with a probability below kSeldom. On a device one worker takes all records.
  HeadPass(const Graph& graph, const TrainingOptions& options, size_t num_records);

  // All micro-batches of a step; starts it.
  void Draw(privacy::RandomStream& sampling, size_t num_records);
  // All draws, one behind the other, as indices of records.
  template <class F>
  void ForEachDrawn(const F& f) const {
    for (const Drawn& drawn : draws_) f(drawn.record);
  }
  // The worker's share of what was drawn. Returns how many records were not finite, or not within the bound. `cache`:
  // where what is pooled of them is, or null; then the context's pooled_BD is set here.
  size_t Add(size_t worker, RecordContext& context, std::span<const Record> records, PooledCache* cache);
  // `weights` lie in the graph's memory.
  void Fit(privacy::RandomStream& noise, std::span<float> weights);

  // HeadReleases::class_of_all_means.
  std::optional<uint32_t> class_of_all_means() const { return releases_.class_of_all_means(); }

  size_t num_drawn() const { return draws_.size(); }
  std::vector<uint32_t> State() const { return releases_.State(); }
  bool Restore(std::span<const uint32_t> state) { return releases_.Restore(state); }
  size_t release_bytes() const { return releases_.size_bytes(); }
  size_t list_bytes() const;

  // What these are of such an object; allocates none of it.
  struct Bytes {
    size_t releases = 0, lists = 0, records_at_most = 0;
  };
  static Bytes PlanBytes(const Graph& graph, const TrainingOptions& options, size_t num_records);

 private:
  struct Drawn {
    uint32_t record, micro_batch;
  };
  // Of one worker: the records that pass together, where each is in draws_, and what the head reads of them [B, D].
  struct Waiting {
    std::vector<Record> records;
    std::vector<size_t> draws;
    std::vector<float> h;
    size_t rows = 0;
  };
  size_t AddWaiting(size_t worker, RecordContext& context);

  const Graph* graph_;
  size_t num_workers_;
  uint32_t micro_batches_;
  double probability_;
  HeadReleases releases_;
  std::vector<uint32_t> sample_;
  std::vector<Drawn> draws_;
  std::vector<Waiting> waiting_;
  std::vector<float> weight_, bias_;  // of the head that was fitted
};

// Draws of a step that room is made for, over all micro-batches.
size_t MicroBatchDrawsAtMost(const TrainingOptions& options, size_t num_records);

// DP-FP as its paper prints it: the noise of each record's representation, from one worker's stream.
class PaperNoise {
 public:
  // For up to so many records at once; what reads it is on the device of the options.
  PaperNoise(const TrainingOptions& options, size_t width, size_t max_records);
  // Of record b; until the next for it.
  void Draw(privacy::RandomStream& noise, size_t b);
  // Of what was drawn so far; until the next of it.
  HeadInput Input();
  size_t size_bytes() const {
    return steps_.capacity() * sizeof(int64_t) + values_.capacity() * sizeof(float) + on_device_.allocated_bytes();
  }
  static size_t PlanBytes(const TrainingOptions& options, size_t width, size_t max_records);

 private:
  double norm_bound_, grid_;
  uint64_t sigma_;
  std::vector<int64_t> steps_;
  std::vector<float> values_;
  kernels::Memory memory_;
  AlignedArray<float> on_device_;  // values_, where they lie elsewhere than on the host
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RELEASE_HEAD_PASS_H_
