// The part of a DP-FP step that makes the head: it draws micro-batches, sums and releases their records'
// representations, and fits the head to the releases. head_releases.h has the mathematics and says where it is private.
//
//   pass->Draw(stream, records.size());
//   ... on each worker: num_dropped += pass->Add(worker, context, records);
//   pass->Fit(noise, weights);                                       // one thread; packed weights are old then
#ifndef WISP_RUNTIME_METHODS_DP_FP_HEAD_PASS_H_
#define WISP_RUNTIME_METHODS_DP_FP_HEAD_PASS_H_

#include <span>
#include <vector>

#include "runtime/layers/graph.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/options.h"
#include "runtime/train/state_cache.h"
#include "runtime/methods/dp_fp/head_releases.h"

namespace wisp {

class HeadPass {
 public:
  // `graph` must have a head of classes and must outlive this object. Memory is reserved for the number of draws that a
  // step of so many records exceeds with a probability below kSeldom. On a device one worker takes all records.
  HeadPass(const Graph& graph, const TrainingOptions& options, size_t num_records);

  // Starts a step: draws all its micro-batches.
  void Draw(privacy::RandomStream& sampling, size_t num_records);
  // Calls f for every draw of all micro-batches, as indices of records.
  template <class F>
  void ForEachDrawn(const F& f) const {
    for (const Drawn& drawn : draws_) f(drawn.record);
  }
  // Adds the worker's share of the drawn records. Returns how many of them were not finite, or not within the bound.
  // `cache` holds their pooled vectors, or is null; if it is given, the context's pooled_BD is set here.
  size_t Add(size_t worker, RecordContext& context, std::span<const Record> records, StateCache* cache);
  // `weights` lie in the graph's memory.
  void Fit(privacy::RandomStream& noise, std::span<float> weights);

  // See HeadReleases::class_of_all_means.
  std::optional<uint32_t> class_of_all_means() const { return releases_.class_of_all_means(); }

  size_t num_drawn() const { return draws_.size(); }
  std::vector<uint32_t> State() const { return releases_.State(); }
  bool Fits(std::span<const uint32_t> state) const { return releases_.Fits(state); }
  bool Restore(std::span<const uint32_t> state) { return releases_.Restore(state); }
  size_t release_bytes() const { return releases_.size_bytes(); }
  size_t list_bytes() const;

  // Returns the planned size of an object with these arguments, by kind. Allocates nothing.
  struct Bytes {
    size_t releases = 0, lists = 0, records_at_most = 0;
  };
  static Bytes PlanBytes(const Graph& graph, const TrainingOptions& options, size_t num_records);

 private:
  struct Drawn {
    uint32_t record, micro_batch;
  };
  // One worker's records that pass together, their places in draws_, and what the head reads of them [B, D].
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
  std::vector<float> weight_, bias_;  // of the head fitted last
};

// The number of draws, over all micro-batches of a step, for which memory is reserved.
size_t MicroBatchDrawsAtMost(const TrainingOptions& options, size_t num_records);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_DP_FP_HEAD_PASS_H_
