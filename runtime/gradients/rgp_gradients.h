// The sink of RGP: projects a record's factors onto the carriers as they come, clips what it will release, adds it.
//
// g_L = dY^T (X R^T) and g_R = (dY L)^T X per use of a matrix; a tied table's input use adds its rows to both. Nothing
// of a matrix's size is formed: the state of a record is what it releases, r (p + d) numbers a matrix, and a few
// columns a position. The joined norm of everything released is clipped (docs/algorithms.md, section 4).
#ifndef WISP_RUNTIME_GRADIENTS_RGP_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_RGP_GRADIENTS_H_

#include <span>

#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/rgp_carriers.h"

namespace wisp {

class RgpGradients : public RecordGradients {
 public:
  struct Setup {
    size_t max_rows;  // positions of the longest record
    size_t worker;
  };
  // `ops`, `carriers` (updated between steps) and `sum` (of carriers.release_size()) must outlive this object.
  RgpGradients(const kernels::Device& device, const Setup& setup, const RgpCarriers& carriers, const ClipRule& clip,
               GradientSum& sum);

  void BeginRecord(std::span<const int32_t> input_ids) override;
  bool Wants(size_t parameter) const override { return carriers_->entry(parameter).train != RgpTrain::kFrozen; }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  void EndKept() override;
  RecordOutcome FinishRecord(HeadReplay& replay) override;
  size_t scratch_bytes() const override {
    return release_.allocated_bytes() + x_right_.allocated_bytes() + dy_left_.allocated_bytes();
  }
  // What scratch_bytes will be with carriers of this release size and rank; allocates none of it.
  static size_t PlanBytes(size_t release_size, size_t max_rows, size_t rank) {
    return AlignedArray<float>::AllocatedBytes(release_size) + 2 * AlignedArray<float>::AllocatedBytes(max_rows * rank);
  }

 private:
  void FinishHead();

  const kernels::OpTable* ops_;
  const RgpCarriers* carriers_;
  ClipRule clip_;
  GradientSum* sum_;
  size_t worker_;
  AlignedArray<float> release_;            // g_L and g_R of the record
  AlignedArray<float> x_right_, dy_left_;  // X R^T and dY L [R, r]; the head's blocks share X and add up dY L
  OuterFactor head_{};                     // of a parameter that comes in blocks, until its last block
  bool head_open_ = false;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_RGP_GRADIENTS_H_
