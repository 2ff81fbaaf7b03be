#include "runtime/gradients/formed_gradients.h"

#include <cmath>

#include "runtime/gradients/form_outer.h"

namespace wisp {

FormedGradients::FormedGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip,
                                 GridGradientSum& sum)
    : ops_(device.ops),
      trained_(&setup.trained),
      clip_(clip),
      sum_(&sum),
      rows_BP_(setup.max_records * setup.trained.size(), device.memory),
      norm_scratch_(setup.norms_head_rows ? FormOuterScratch(setup.parameters) : 0, device.memory),
      outcomes_(setup.max_records),
      steps_B_(setup.max_records),
      squares_B_(setup.max_records) {}

size_t FormedGradients::PlanBytes(const Setup& setup) {
  return AlignedArray<float>::AllocatedBytes(setup.max_records * setup.trained.size()) +
         AlignedArray<float>::AllocatedBytes(setup.norms_head_rows ? FormOuterScratch(setup.parameters) : 0) +
         setup.max_records * (sizeof(RecordOutcome) + sizeof(float) + sizeof(double));
}

size_t FormedGradients::scratch_bytes() const {
  return rows_BP_.allocated_bytes() + norm_scratch_.allocated_bytes() + outcomes_.size() * sizeof(RecordOutcome) +
         steps_B_.size() * sizeof(float) + squares_B_.size() * sizeof(double);
}

void FormedGradients::BeginRecords(size_t num_records) {
  num_records_ = num_records;
  ops_->clear({.y = rows_BP_.data(), .bytes = num_records * trained_->size() * sizeof(float)});
}

void FormedGradients::Outer(const OuterFactor& f) {
  if (!Wants(f.parameter)) return;
  if (f.row_norm) return FormNormedRows(f);
  ops_->record_weight_gradients({.dy_RN = f.dy_RN,
                                 .lddy = f.lddy,
                                 .x_RK = f.x_RK,
                                 .ldx = f.ldx,
                                 .dw_BNK = RowsOf(f.parameter) + f.first_row * f.k,
                                 .stride = trained_->size(),
                                 .records = f.records,
                                 .n = f.n,
                                 .k = f.k});
}

// The norm's backward needs each record's product as a whole.
void FormedGradients::FormNormedRows(const OuterFactor& f) {
  for (size_t b = 0; b < num_records_; ++b) {
    OuterFactor own = f;
    own.dy_RN += f.records.begin(b) * f.lddy;
    own.x_RK += f.records.begin(b) * f.ldx;
    own.records = {.rows = f.records.size(b)};
    FormOuter(*ops_, own, kernels::Store::kAdd, norm_scratch_.data(),
              RowsOf(f.parameter) + b * trained_->size() + f.first_row * f.k);
  }
}

void FormedGradients::Rows(const RowsFactor& f) {
  if (!Wants(f.parameter)) return;
  ops_->record_scatter_add({.dx_RD = f.dx_RD,
                            .lddx = f.lddx,
                            .ids_R = f.ids_R,
                            .table_BMD = RowsOf(f.parameter),
                            .stride = trained_->size(),
                            .records = f.records,
                            .d = f.d,
                            .scale = f.scale});
}

void FormedGradients::Vector(const VectorFactor& f) {
  if (!Wants(f.parameter)) return;
  ops_->add_rows({.x_BN = f.g_BN,
                  .ldx = f.n,
                  .y_BN = RowsOf(f.parameter) + f.first,
                  .ldy = trained_->size(),
                  .rows = num_records_,
                  .n = f.n});
}

std::span<const RecordOutcome> FormedGradients::FinishRecords() {
  ops_->squares_of_rows({.x_BN = rows_BP_.data(),
                         .ldx = trained_->size(),
                         .rows = num_records_,
                         .n = trained_->size(),
                         .squares_B = squares_B_.data()});
  for (size_t b = 0; b < num_records_; ++b) {
    outcomes_[b] = OutcomeOf(clip_, std::sqrt(squares_B_[b]));
    // 0 of what is not finite.
    steps_B_[b] = static_cast<float>(outcomes_[b].factor) * sum_->steps_per_unit();
  }
  sum_->AddRows(rows_BP_.data(), num_records_, steps_B_.data(), 1, squares_B_.data());
  TakeBack();
  return {outcomes_.data(), num_records_};
}

// The bound is checked on what was really added, not on what the norms promised.
void FormedGradients::TakeBack() {
  bool any = false;
  for (size_t b = 0; b < num_records_; ++b) {
    if (squares_B_[b] <= sum_->MaxSumSquares()) {
      steps_B_[b] = 0;
      continue;
    }
    any = true;
    outcomes_[b].within = false;
    outcomes_[b].factor = 0;
  }
  if (any) sum_->AddRows(rows_BP_.data(), num_records_, steps_B_.data(), -1, squares_B_.data());
}

void FormedGradients::Forget() { ops_->clear({.y = rows_BP_.data(), .bytes = rows_BP_.size() * sizeof(float)}); }

}  // namespace wisp
