// Record gradients on a device: those that pass together are written out, each into a row of its own, bounded and added
// in one pass each (docs/cuda.md).
//
// For the same records the sum is that of PhantomGradients in the formed way, but for the rounding of the gradients:
// the clip rule, the grid and the check of what was really added are the same.
//
//   FormedGradients gradients(device, {.parameters = ..., .trained = ..., .max_records = 64}, clip, sum);
//   gradients.BeginRecords(batch);
//   graph.Backward(context, batch, gradients);
//   std::span<const RecordOutcome> outcomes = gradients.FinishRecords();
#ifndef WISP_RUNTIME_GRADIENTS_FORMED_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_FORMED_GRADIENTS_H_

#include <span>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/record_rows.h"

namespace wisp {

class FormedGradients final : public BatchGradients {
 public:
  // `device` and `sum` must outlive this object. The device has the ops of kernels/formed.h. Factors of a sampled
  // softmax (OuterFactor::ids_N) are not taken.
  FormedGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip, GridGradientSum& sum);

  void BeginRecords(Batch records) override { rows_.Begin(records.size(), trained_->size()); }
  bool Wants(size_t parameter) const override { return trained_->contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override { return rows_.Finish(); }
  // Nothing of any record stays in memory.
  void Forget();

  size_t scratch_bytes() const override { return rows_.size_bytes() + norm_scratch_.allocated_bytes(); }
  // What scratch_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(const Setup& setup);

 private:
  float* RowsOf(size_t parameter) const { return rows_.at(trained_->offset(parameter)); }

  const kernels::OpTable* ops_;
  const TrainedSet* trained_;
  RecordRows rows_;                   // in the layout of the trained set
  AlignedArray<float> norm_scratch_;  // of factors with a RowNorm
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_FORMED_GRADIENTS_H_
