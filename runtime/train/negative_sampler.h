// The negatives of a sampled softmax: distinct items, uniform over the catalogue, sampled anew for each step from a
// public stream, independent of the data. Their rows are gathered and packed once for all records of the step.
#ifndef WISP_RUNTIME_TRAIN_NEGATIVE_SAMPLER_H_
#define WISP_RUNTIME_TRAIN_NEGATIVE_SAMPLER_H_

#include <vector>

#include "runtime/gradients/row_set.h"
#include "runtime/layers/graph.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

class NegativeSampler {
 public:
  // 2 <= num_negatives < num_items. `graph` must outlive this object.
  NegativeSampler(const GraphBase& graph, uint32_t num_negatives, uint64_t seed);

  // Samples the negatives of a step; equal (seed, step) give equal items. `weights` lie in the graph's memory. The cost
  // is proportional to num_negatives, whatever the catalogue's size.
  void Draw(uint64_t step, const float* weights);

  const Negatives& negatives() const { return view_; }
  size_t size_bytes() const;
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const GraphBase& graph, uint32_t num_negatives);

 private:
  void LookUp(const float* table, size_t d, const float* added_KD, float* rows_KD) const;

  const GraphBase* graph_;
  size_t table_;
  std::optional<size_t> bias_;
  privacy::RandomStream random_;
  RowSet drawn_;
  std::vector<int32_t> items_;
  AlignedArray<int32_t> on_device_;  // items_ in the graph's memory; empty if that is the host's memory
  AlignedArray<float> rows_, packed_, log_weights_, bias_values_;
  Negatives view_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_NEGATIVE_SAMPLER_H_
