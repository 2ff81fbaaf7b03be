// RGP on a device: RgpGradients of all records that pass at once. Each record's projections are a row of RecordRows.
//
// The columns of a position, X R^T and dY L, are products of all records' rows; what becomes of them is each record's.
#ifndef WISP_RUNTIME_GRADIENTS_RGP_BATCH_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_RGP_BATCH_GRADIENTS_H_

#include <span>

#include "runtime/gradients/record_rows.h"
#include "runtime/gradients/rgp_carriers.h"

namespace wisp {

class RgpBatchGradients final : public BatchGradients {
 public:
  // `max_rows`: positions of all records together. `device`, `carriers` (updated between steps) and `sum` (of
  // carriers.release_size()) must outlive this object.
  RgpBatchGradients(const kernels::Device& device, size_t max_records, size_t max_rows, const RgpCarriers& carriers,
                    const ClipRule& clip, GridGradientSum& sum);

  void BeginRecords(Batch records) override;
  bool Wants(size_t parameter) const override { return carriers_->entry(parameter).train != RgpTrain::kFrozen; }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;
  // Nothing of any record stays in memory.
  void Forget();

  size_t scratch_bytes() const override {
    return rows_.size_bytes() + x_right_.allocated_bytes() + dy_left_.allocated_bytes();
  }
  // What scratch_bytes of such an object will be; allocates none of it.
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
  RecordRows rows_;                        // g_L and g_R of each record, as in the release
  AlignedArray<float> x_right_, dy_left_;  // X R^T and dY L [rows, r]; the head's blocks share X and add up dY L
  OuterFactor head_{};                     // of a parameter that comes in blocks, until its last block
  bool head_open_ = false;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_RGP_BATCH_GRADIENTS_H_
