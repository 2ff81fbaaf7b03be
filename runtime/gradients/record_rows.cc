#include "runtime/gradients/record_rows.h"

#include <algorithm>
#include <cmath>

#include "runtime/gradients/form_outer.h"

namespace wisp {

RecordRows::RecordRows(const kernels::Device& device, size_t max_records, size_t row_size, const ClipRule& clip,
                       GridGradientSum& sum)
    : ops_(device.ops),
      clip_(clip),
      sum_(&sum),
      rows_(max_records * row_size, device.memory),
      outcomes_(max_records),
      steps_B_(max_records),
      squares_B_(max_records),
      slot_squares_B_(max_records) {
  // A run on zeros reserves the ops' memory now: if it is missing, that shows before any privacy is charged.
  ops_->squares_of_rows(
      {.x_BN = rows_.data(), .ldx = row_size, .rows = max_records, .n = row_size, .squares_B = squares_B_.data()});
}

size_t RecordRows::PlanBytes(size_t max_records, size_t row_size) {
  return AlignedArray<float>::AllocatedBytes(max_records * row_size) +
         max_records * (sizeof(RecordOutcome) + sizeof(float) + 2 * sizeof(double));
}

size_t RecordRows::size_bytes() const {
  return rows_.allocated_bytes() + outcomes_.size() * sizeof(RecordOutcome) + steps_B_.size() * sizeof(float) +
         (squares_B_.size() + slot_squares_B_.size()) * sizeof(double);
}

void RecordRows::Begin(size_t num_records, size_t row_size) {
  num_records_ = num_records;
  row_size_ = row_size;
  most_used_ = std::max(most_used_, num_records * row_size);
  ops_->clear({.y = rows_.data(), .bytes = num_records * row_size * sizeof(float)});
}

std::span<const RecordOutcome> RecordRows::Finish(const GridGradientSum::Slots& slots) {
  ops_->squares_of_rows(
      {.x_BN = rows_.data(), .ldx = row_size_, .rows = num_records_, .n = row_size_, .squares_B = squares_B_.data()});
  for (size_t b = 0; b < num_records_; ++b) {
    outcomes_[b] = MakeOutcome(clip_, std::sqrt(squares_B_[b]));
    // The factor is 0 if the norm is not finite.
    steps_B_[b] = static_cast<float>(outcomes_[b].factor) * sum_->steps_per_unit();
  }
  Add(slots, 1);
  TakeBack(slots);
  return {outcomes_.data(), num_records_};
}

void RecordRows::Add(const GridGradientSum::Slots& slots, int32_t sign) {
  const size_t n = row_size_ - slots.slots * slots.d;
  sum_->AddRows(rows_.data(), row_size_, num_records_, n, steps_B_.data(), sign, squares_B_.data());
  if (slots.slots == 0) return;
  sum_->AddSlots(at(n), row_size_, num_records_, slots, steps_B_.data(), sign, slot_squares_B_.data());
  for (size_t b = 0; b < num_records_; ++b) squares_B_[b] += slot_squares_B_[b];
}

// Subtracts rows that exceed the bound. It is checked on what was really added, not on what the norms promised.
void RecordRows::TakeBack(const GridGradientSum::Slots& slots) {
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
  if (any) Add(slots, -1);
}

void RecordRows::Forget() {
  ops_->clear({.y = rows_.data(), .bytes = most_used_ * sizeof(float)});
  most_used_ = 0;
}

namespace {

// The backward pass of the norm needs each record's product as a whole.
void FormNormedRows(const kernels::OpTable& ops, const OuterFactor& f, float* at, size_t stride, float* scratch) {
  for (size_t b = 0; b < f.records.num_records; ++b) {
    OuterFactor own = f;
    own.dy_RN += f.records.begin(b) * f.lddy;
    own.x_RK += f.records.begin(b) * f.ldx;
    own.records = {.rows = f.records.size(b)};
    FormOuter(ops, own, kernels::Store::kAdd, scratch, at + b * stride);
  }
}

}  // namespace

void FormRecordOuters(const kernels::OpTable& ops, const OuterFactor& f, float* at, size_t stride, float* scratch) {
  if (f.row_norm) return FormNormedRows(ops, f, at, stride, scratch);
  ops.record_weight_gradients({.dy_RN = f.dy_RN,
                               .lddy = f.lddy,
                               .x_RK = f.x_RK,
                               .ldx = f.ldx,
                               .dw_BNK = at,
                               .stride = stride,
                               .records = f.records,
                               .n = f.n,
                               .k = f.k});
}

void FormRecordRows(const kernels::OpTable& ops, const RowsFactor& f, float* at, size_t stride) {
  ops.record_scatter_add({.dx_RD = f.dx_RD,
                          .lddx = f.lddx,
                          .ids_R = f.ids_R,
                          .table_BMD = at,
                          .stride = stride,
                          .records = f.records,
                          .d = f.d,
                          .scale = f.scale});
}

void FormRecordVectors(const kernels::OpTable& ops, const VectorFactor& f, size_t num_records, float* at,
                       size_t stride) {
  ops.add_rows({.x_BN = f.g_BN, .ldx = f.n, .y_BN = at, .ldy = stride, .rows = num_records, .n = f.n});
}

}  // namespace wisp
