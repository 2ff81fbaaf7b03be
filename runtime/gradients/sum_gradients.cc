#include "runtime/gradients/sum_gradients.h"

#include <algorithm>

#include "runtime/gradients/form_outer.h"

namespace wisp {

namespace {

size_t CountScratch(const BatchGradients::Setup& setup, size_t num_negatives) {
  const size_t normed = setup.norms_head_rows ? FormOuterScratch(setup.parameters) : 0;
  return std::max(normed, num_negatives * setup.parameters[0].cols);
}

}  // namespace

SumGradients::SumGradients(const kernels::Device& device, const Setup& setup, size_t num_negatives,
                           FloatGradientSum& sum, size_t worker)
    : ops_(device.ops),
      trained_(&setup.trained),
      sum_(&sum),
      worker_(worker),
      scratch_(CountScratch(setup, num_negatives), device.memory),
      outcomes_(setup.max_records, {.factor = 1}) {}

size_t SumGradients::PlanBytes(const Setup& setup, size_t num_negatives) {
  return AlignedArray<float>::AllocatedBytes(CountScratch(setup, num_negatives)) +
         setup.max_records * sizeof(RecordOutcome);
}

size_t SumGradients::scratch_bytes() const {
  return scratch_.allocated_bytes() + outcomes_.size() * sizeof(RecordOutcome);
}

// The backward pass of the norm is linear in the product, so it is applied once to the sum of all records.
void SumGradients::Outer(const OuterFactor& f) {
  if (!Wants(f.parameter)) return;
  if (f.ids_N == nullptr)
    return FormOuter(*ops_, f, kernels::Store::kAdd, scratch_.data(), At(f.parameter) + f.first_row * f.k);
  FormOuter(*ops_, f, kernels::Store::kAssign, nullptr, scratch_.data());
  ops_->scatter_add({.dx_TD = scratch_.data(),
                     .lddx = f.k,
                     .ids_T = f.ids_N,
                     .table_MD = At(f.parameter),
                     .ldtable = f.k,
                     .rows = f.n,
                     .d = f.k,
                     .scale = 1.0f});
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
