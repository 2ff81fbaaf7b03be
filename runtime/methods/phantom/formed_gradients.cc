#include "runtime/methods/phantom/formed_gradients.h"

#include "runtime/gradients/form_outer.h"

namespace wisp {
namespace {

size_t CountScratch(const BatchGradients::Setup& setup) {
  return setup.norms_head_rows ? FormOuterScratch(setup.parameters) : 0;
}

}  // namespace

FormedGradients::FormedGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip,
                                 GridGradientSum& sum)
    : ops_(device.ops),
      trained_(&setup.trained),
      rows_(device, setup.max_records, setup.trained.size(), clip, sum),
      norm_scratch_(CountScratch(setup), device.memory) {}

size_t FormedGradients::PlanBytes(const Setup& setup) {
  return RecordRows::PlanBytes(setup.max_records, setup.trained.size()) +
         AlignedArray<float>::AllocatedBytes(CountScratch(setup));
}

void FormedGradients::Outer(const OuterFactor& f) {
  if (!Wants(f.parameter)) return;
  FormRecordOuters(*ops_, f, GetRows(f.parameter) + f.first_row * f.k, rows_.stride(), norm_scratch_.data());
}

void FormedGradients::Forget() {
  rows_.Forget();
  ops_->clear({.y = norm_scratch_.data(), .bytes = norm_scratch_.size() * sizeof(float)});
}

void FormedGradients::Rows(const RowsFactor& f) {
  if (Wants(f.parameter)) FormRecordRows(*ops_, f, GetRows(f.parameter), rows_.stride());
}

void FormedGradients::Vector(const VectorFactor& f) {
  if (Wants(f.parameter))
    FormRecordVectors(*ops_, f, rows_.num_records(), GetRows(f.parameter) + f.first, rows_.stride());
}

}  // namespace wisp
