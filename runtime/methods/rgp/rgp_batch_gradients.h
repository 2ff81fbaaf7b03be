// RGP on a device: RgpGradients for all records that pass together. Each record's projections are one row of
// RecordRows.
//
// The columns X R^T and dY L of all positions are products over the rows of all records. Everything after them is done
// for each record by itself.
#ifndef WISP_RUNTIME_METHODS_RGP_RGP_BATCH_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_RGP_RGP_BATCH_GRADIENTS_H_

#include <span>

#include "runtime/gradients/record_rows.h"
#include "runtime/methods/rgp/rgp_carriers.h"

namespace wisp {

class RgpBatchGradients final : public BatchGradients {
 public:
  // `max_rows` is the number of positions of all records together. `carriers` may be updated between steps; `sum` has
  // carriers.release_size() coordinates. `device`, `carriers` and `sum` must outlive this object.
  RgpBatchGradients(const kernels::Device& device, size_t max_records, size_t max_rows, const RgpCarriers& carriers,
                    const ClipRule& clip, GridGradientSum& sum);

  void BeginRecords(Batch records) override;
  bool Wants(size_t parameter) const override { return carriers_->entry(parameter).train != RgpTrain::kFrozen; }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;
  void Forget() override;

  size_t scratch_bytes() const override {
    return rows_.size_bytes() + x_right_.allocated_bytes() + dy_left_.allocated_bytes();
  }
  // Returns scratch_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(size_t max_records, size_t max_rows, size_t release_size, size_t rank);

 private:
  void ProjectOuter(const OuterFactor& factor, float* left);
  void ProjectRows(const RowsFactor& factor, const RgpCarriers::Entry& entry);
  void FinishHead();
  // y [rows, r] (=|+=) x [rows, k] w [k, r].
  void MultiplyByCarrier(const float* x, size_t ldx, const float* w_KR, size_t rows, size_t k, kernels::Store store,
                         float* y);

  const kernels::OpTable* ops_;
  const RgpCarriers* carriers_;
  RecordRows rows_;                        // g_L and g_R of each record, in the order of the release
  AlignedArray<float> x_right_, dy_left_;  // X R^T and dY L [rows, r]; blocks of the head share X and sum up dY L
  OuterFactor head_{};                     // of a parameter that comes in blocks, until its last block
  bool head_open_ = false;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_RGP_RGP_BATCH_GRADIENTS_H_
