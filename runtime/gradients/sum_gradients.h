// The plain sum of gradients, for ordinary training. One product gives a factor's sum over all records of the pass. No
// record's gradient exists by itself.
//
//   SumGradients gradients(device, {.parameters = ..., .trained = ..., .max_records = 64}, 0, sum, worker);
#ifndef WISP_RUNTIME_GRADIENTS_SUM_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_SUM_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/gradients/record_gradients.h"

namespace wisp {

class SumGradients final : public BatchGradients {
 public:
  // Adds to the worker's part of `sum`. `num_negatives` is 0 unless the softmax is sampled. `device` and `sum` must
  // outlive this object.
  SumGradients(const kernels::Device& device, const Setup& setup, size_t num_negatives, FloatGradientSum& sum,
               size_t worker);

  void BeginRecords(Batch records) override { num_records_ = records.size(); }
  bool Wants(size_t parameter) const override { return trained_->contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  // Norms are not computed: they are 0, with factors of 1.
  std::span<const RecordOutcome> FinishRecords() override { return {outcomes_.data(), num_records_}; }

  size_t scratch_bytes() const override;
  // Returns scratch_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const Setup& setup, size_t num_negatives);

 private:
  float* At(size_t parameter) const { return sum_->data(worker_) + trained_->offset(parameter); }

  const kernels::OpTable* ops_;
  const TrainedSet* trained_;
  FloatGradientSum* sum_;
  size_t worker_;
  AlignedArray<float> scratch_;  // for factors with a RowNorm, and for the rows of negatives
  size_t num_records_ = 0;
  std::vector<RecordOutcome> outcomes_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_SUM_GRADIENTS_H_
