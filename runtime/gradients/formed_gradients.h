// Record gradients on a device: those that pass together are written out, each into a row of its own, bounded and added
// in one pass each (docs/cuda.md).
//
// For the same records the sum is that of PhantomGradients in the formed way, but for the rounding of the gradients:
// the clip rule, the grid and the check of what was really added are the same. What a record adds depends on nothing
// but the record: not on those that pass with it.
//
//   FormedGradients gradients(device, {.parameters = ..., .trained = ..., .max_records = 64}, clip, sum);
//   gradients.BeginRecords(batch.size());
//   graph.Backward(context, batch, gradients);
//   std::span<const RecordOutcome> outcomes = gradients.FinishRecords();
#ifndef WISP_RUNTIME_GRADIENTS_FORMED_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_FORMED_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/gradients/record_gradients.h"

namespace wisp {

class FormedGradients final : public BatchGradients {
 public:
  // `device` and `sum` must outlive this object. The device has the ops of kernels/formed.h. Factors of a sampled
  // softmax (OuterFactor::ids_N) are not taken.
  FormedGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip, GridGradientSum& sum);

  void BeginRecords(size_t num_records) override;
  bool Wants(size_t parameter) const override { return trained_->contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;
  // Nothing of any record stays in memory.
  void Forget();

  size_t scratch_bytes() const override;
  // What scratch_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(const Setup& setup);

 private:
  float* RowsOf(size_t parameter) const { return rows_BP_.data() + trained_->offset(parameter); }
  void FormNormedRows(const OuterFactor& factor);
  void TakeBack();

  const kernels::OpTable* ops_;
  const TrainedSet* trained_;
  ClipRule clip_;
  GridGradientSum* sum_;
  AlignedArray<float> rows_BP_;       // row b: record b's gradient, in the layout of the trained set
  AlignedArray<float> norm_scratch_;  // of factors with a RowNorm
  size_t num_records_ = 0;
  std::vector<RecordOutcome> outcomes_;
  std::vector<float> steps_B_;     // clip factors, in steps of the sum's grid
  std::vector<double> squares_B_;  // of norms, then of what was added
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_FORMED_GRADIENTS_H_
