// Record gradients on a device. The gradients of records that pass together are formed, each in a row of its own. One
// pass bounds all rows and one adds them to the sum (docs/cuda.md).
//
// For the same records the sum equals that of PhantomGradients in its formed way, except for the rounding of the
// gradients. The clip rule, the grid and the check of what was added are the same.
//
//   FormedGradients gradients(device, {.parameters = ..., .trained = ..., .max_records = 64}, clip, sum);
//   gradients.BeginRecords(batch);
//   graph.Backward(context, batch, gradients);
//   std::span<const RecordOutcome> outcomes = gradients.FinishRecords();
#ifndef WISP_RUNTIME_METHODS_PHANTOM_FORMED_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_PHANTOM_FORMED_GRADIENTS_H_

#include <span>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/record_rows.h"

namespace wisp {

class FormedGradients final : public BatchGradients {
 public:
  // `device` and `sum` must outlive this object. The device must have the ops of kernels/formed.h. Factors of a sampled
  // softmax (OuterFactor::ids_N) are not supported.
  FormedGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip, GridGradientSum& sum);

  void BeginRecords(Batch records) override { rows_.Begin(records.size(), trained_->size()); }
  bool Wants(size_t parameter) const override { return trained_->contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override { return rows_.Finish(); }
  void Forget() override;

  size_t scratch_bytes() const override { return rows_.size_bytes() + norm_scratch_.allocated_bytes(); }
  // Returns scratch_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const Setup& setup);

 private:
  float* GetRows(size_t parameter) const { return rows_.at(trained_->offset(parameter)); }

  const kernels::OpTable* ops_;
  const TrainedSet* trained_;
  RecordRows rows_;                   // rows in the layout of the trained set
  AlignedArray<float> norm_scratch_;  // for factors with a RowNorm
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_PHANTOM_FORMED_GRADIENTS_H_
