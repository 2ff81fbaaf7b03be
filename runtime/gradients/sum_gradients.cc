#include "runtime/gradients/sum_gradients.h"

#include "runtime/gradients/form_outer.h"

namespace wisp {

SumGradients::SumGradients(const kernels::Device& device, const Setup& setup, FloatGradientSum& sum)
    : ops_(device.ops),
      trained_(&setup.trained),
      sum_(&sum),
      norm_scratch_(setup.norms_head_rows ? FormOuterScratch(setup.parameters) : 0, device.memory),
      outcomes_(setup.max_records, {.factor = 1}) {}

size_t SumGradients::PlanBytes(const Setup& setup) {
  return AlignedArray<float>::AllocatedBytes(setup.norms_head_rows ? FormOuterScratch(setup.parameters) : 0) +
         setup.max_records * sizeof(RecordOutcome);
}

size_t SumGradients::scratch_bytes() const {
  return norm_scratch_.allocated_bytes() + outcomes_.size() * sizeof(RecordOutcome);
}

// The norm's backward is linear in the product: the records' sum passes it as each of them would.
void SumGradients::Outer(const OuterFactor& f) {
  if (!Wants(f.parameter)) return;
  FormOuter(*ops_, f, kernels::Store::kAdd, norm_scratch_.data(), At(f.parameter) + f.first_row * f.k);
}

void SumGradients::Rows(const RowsFactor& f) {
  if (!Wants(f.parameter)) return;
  ops_->scatter_add({.dx_TD = f.dx_RD,
                     .lddx = f.lddx,
                     .ids_T = f.ids_R,
                     .table_MD = At(f.parameter),
                     .ldtable = f.d,
                     .rows = f.records.rows,
                     .d = f.d,
                     .scale = f.scale});
}

void SumGradients::Vector(const VectorFactor& f) {
  if (!Wants(f.parameter)) return;
  ops_->column_sum({.x_RN = f.g_BN,
                    .ldx = f.n,
                    .out_N = At(f.parameter) + f.first,
                    .rows = num_records_,
                    .n = f.n,
                    .scale = 1.0f,
                    .store = kernels::Store::kAdd});
}

}  // namespace wisp
