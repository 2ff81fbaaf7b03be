// The sink of RGP. It projects a record's factors onto the carriers as they come, clips what will be released, and adds
// it.
//
// Each use of a matrix gives g_L = dY^T (X R^T) and g_R = (dY L)^T X. The input use of a tied table adds its rows to
// both. Nothing of a matrix's size is formed: a record's state is its release, r (p + d) numbers for each matrix, and a
// few columns for each position. The joint norm of everything released is clipped (docs/algorithms.md, section 4).
#ifndef WISP_RUNTIME_METHODS_RGP_RGP_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_RGP_RGP_GRADIENTS_H_

#include <span>

#include "runtime/gradients/record_gradients.h"
#include "runtime/methods/rgp/rgp_carriers.h"

namespace wisp {

class RgpGradients : public RecordGradients {
 public:
  struct Setup {
    size_t max_rows;  // positions of the longest record
    size_t worker;
  };
  // `carriers` may be updated between steps; `sum` has carriers.release_size() coordinates. `ops`, `carriers` and `sum`
  // must outlive this object.
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
  // The scratch_bytes for carriers of this release size and rank. Allocates nothing.
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
  AlignedArray<float> release_;            // the record's g_L and g_R
  AlignedArray<float> x_right_, dy_left_;  // X R^T and dY L [R, r]; blocks of the head share X and sum up dY L
  OuterFactor head_{};                     // of a parameter that comes in blocks, until its last block
  bool head_open_ = false;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_RGP_RGP_GRADIENTS_H_
