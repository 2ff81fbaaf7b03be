#include "runtime/methods/sparse/sparse_gradients.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/capacity.h"
#include "runtime/gradients/form_outer.h"

namespace wisp {

using kernels::Store;

SparseGradients::SparseGradients(const kernels::Device& device, const Setup& setup, const RowSet& rows,
                                 const ClipRule& clip, GradientSum& sum)
    : ops_(device.ops),
      layout_(setup.parameters, setup.trained),
      set_(&rows),
      clip_(clip),
      sum_(&sum),
      setup_(setup),
      dense_(layout_.dense_size(), device.memory) {}

SparseGradients::Room SparseGradients::RoomFor(const Setup& s, size_t rows) {
  const size_t picked = std::min(rows, s.block_columns);
  return {.record_rows = std::min(rows, s.max_record_rows),
          .columns = s.gathers ? s.max_rows * picked : 0,
          .picked = picked,
          .index = rows,
          .normed = s.norms_head_rows ? FormOuterScratch(picked, s.parameters[0].cols) : 0};
}

void SparseGradients::ReserveCapacity(size_t rows) {
  const Room room = RoomFor(setup_, rows);
  ReallocateEmpty(slots_, room.record_rows);
  ReallocateEmpty(rows_, room.record_rows * layout_.d());
  rows_.resize(room.record_rows * layout_.d());
  ReallocateEmpty(columns_, room.columns);
  columns_.resize(room.columns);
  ReallocateEmpty(picked_, room.picked);
  ReallocateEmpty(normed_, room.normed);
  normed_.resize(room.normed);
  ReallocateEmpty(index_of_slot_, room.index);
}

size_t SparseGradients::PlanBytes(const Setup& setup, size_t rows) {
  const SparseLayout layout(setup.parameters, setup.trained);
  const Room room = RoomFor(setup, rows);
  return AlignedArray<float>::AllocatedBytes(layout.dense_size()) +
         (room.record_rows * layout.d() + room.columns + room.normed) * sizeof(float) +
         (room.record_rows + room.picked + room.index) * sizeof(uint32_t);
}

void SparseGradients::BeginRecord(std::span<const int32_t>) {
  for (uint32_t slot : slots_) index_of_slot_[slot] = -1;
  slots_.clear();
  if (index_of_slot_.size() < set_->size()) index_of_slot_.resize(set_->size(), -1);
  ops_->clear({.y = dense_.data(), .bytes = dense_.size() * sizeof(float)});
}

size_t SparseGradients::Append(size_t slot) {
  const size_t index = slots_.size(), end = (index + 1) * layout_.d();
  index_of_slot_[slot] = static_cast<int32_t>(index);
  slots_.push_back(static_cast<uint32_t>(slot));
  if (rows_.size() < end) rows_.resize(std::max(end, rows_.size() * 3 / 2));
  return index;
}

void SparseGradients::Outer(const OuterFactor& f) {
  if (!setup_.trained.contains(f.parameter)) return;
  if (f.parameter == 0) return TableOuter(f);
  ops_->linear_backward_weight({.dy_RN = f.dy_RN,
                                .lddy = f.lddy,
                                .x_RK = f.x_RK,
                                .ldx = f.ldx,
                                .dw_NK = dense_.data() + layout_.dense(f.parameter) + f.first_row * f.k,
                                .lddw = f.k,
                                .rows = f.records.rows,
                                .n = f.n,
                                .k = f.k,
                                .scale = 1.0f,
                                .store = Store::kAdd});
}

// The head comes before the input use and names each row once. So the rows of a block are new, and they lie one after
// another.
void SparseGradients::TableOuter(const OuterFactor& f) {
  picked_.clear();
  size_t first = slots_.size();
  for (size_t n = 0; n < f.n; ++n) {
    const int32_t row = f.ids_N != nullptr ? f.ids_N[n] : static_cast<int32_t>(f.first_row + n);
    const int32_t slot = set_->slot(row);
    if (slot < 0) continue;
    picked_.push_back(static_cast<int32_t>(n));
    Append(static_cast<size_t>(slot));
  }
  const float* dy = f.dy_RN;
  size_t lddy = f.lddy;
  if (picked_.size() < f.n) {
    lddy = picked_.size();
    if (columns_.size() < f.records.rows * lddy) columns_.resize(f.records.rows * lddy);
    ops_->gather_columns({.x_RN = f.dy_RN,
                          .ldx = f.lddy,
                          .column_J = picked_.data(),
                          .first = 0,
                          .y_RJ = columns_.data(),
                          .ldy = lddy,
                          .rows = f.records.rows,
                          .n = f.n,
                          .columns = lddy});
    dy = columns_.data();
  }
  if (f.row_norm && normed_.size() < FormOuterScratch(picked_.size(), f.k))
    normed_.resize(FormOuterScratch(picked_.size(), f.k));
  ops_->linear_backward_weight({.dy_RN = dy,
                                .lddy = lddy,
                                .x_RK = f.x_RK,
                                .ldx = f.ldx,
                                .dw_NK = f.row_norm ? normed_.data() : rows_.data() + first * f.k,
                                .lddw = f.k,
                                .rows = f.records.rows,
                                .n = picked_.size(),
                                .k = f.k,
                                .scale = 1.0f,
                                .store = Store::kAssign});
  if (f.row_norm) NormBackward(f, rows_.data() + first * f.k);
}

// The backward pass of a row norm for the picked rows: one at a time, because they do not lie together.
void SparseGradients::NormBackward(const OuterFactor& f, float* dw) {
  for (size_t i = 0; i < picked_.size(); ++i) {
    const auto row = static_cast<size_t>(picked_[i]);
    ops_->rms_norm_backward({.dy_RD = normed_.data() + i * f.k,
                             .x_RD = f.row_norm.w_NK + row * f.k,
                             .gain_D = f.row_norm.gain_K,
                             .rstd_R = f.row_norm.rstd_N + row,
                             .dx_RD = dw + i * f.k,
                             .dgain_D = normed_.data() + picked_.size() * f.k,
                             .rows = 1,
                             .d = f.k,
                             .store = Store::kAssign});
  }
}

void SparseGradients::Rows(const RowsFactor& f) {
  if (!setup_.trained.contains(f.parameter)) return;
  if (f.parameter == 0) return TableRows(f);
  ops_->scatter_add({.dx_TD = f.dx_RD,
                     .lddx = f.lddx,
                     .ids_T = f.ids_R,
                     .table_MD = dense_.data() + layout_.dense(f.parameter),
                     .ldtable = f.d,
                     .rows = f.records.rows,
                     .d = f.d,
                     .scale = f.scale});
}

void SparseGradients::TableRows(const RowsFactor& f) {
  for (size_t t = 0; t < f.records.rows; ++t) {
    const int32_t slot = f.ids_R[t] < 0 ? -1 : set_->slot(f.ids_R[t]);
    if (slot < 0) continue;
    const int32_t known = index_of_slot_[static_cast<size_t>(slot)];
    const size_t index = known >= 0 ? static_cast<size_t>(known) : Append(static_cast<size_t>(slot));
    ops_->scale({.x = f.dx_RD + t * f.lddx,
                 .y = rows_.data() + index * f.d,
                 .n = f.d,
                 .a = f.scale,
                 .store = known >= 0 ? Store::kAdd : Store::kAssign});
  }
}

void SparseGradients::Vector(const VectorFactor& f) {
  if (!setup_.trained.contains(f.parameter)) return;
  ops_->scale({.x = f.g_BN,
               .y = dense_.data() + layout_.dense(f.parameter) + f.first,
               .n = f.n,
               .a = 1.0f,
               .store = Store::kAdd});
}

// Neighbouring slots are added to the sum in one call.
double SparseGradients::Accumulate(float factor, int32_t sign) {
  double squares = sum_->Add(setup_.worker, 0, dense_.data(), dense_.size(), factor, sign);
  for (size_t i = 0; i < slots_.size();) {
    size_t end = i + 1;
    while (end < slots_.size() && slots_[end] == slots_[end - 1] + 1) ++end;
    squares += sum_->Add(setup_.worker, layout_.slot(slots_[i]), rows_.data() + i * layout_.d(),
                         (end - i) * layout_.d(), factor, sign);
    i = end;
  }
  return squares;
}

RecordOutcome SparseGradients::FinishRecord(HeadReplay&) {
  double norm = 0;
  if (clip_.kind() != ClipKind::kNone) {
    norm = std::sqrt(ops_->sum_squares(dense_.data(), dense_.size()) +
                     ops_->sum_squares(rows_.data(), slots_.size() * layout_.d()));
  }
  return ClipAndAdd(clip_, norm, *sum_, [&](float factor, int32_t sign) { return Accumulate(factor, sign); });
}

size_t SparseGradients::scratch_bytes() const {
  return dense_.allocated_bytes() + (rows_.capacity() + columns_.capacity() + normed_.capacity()) * sizeof(float) +
         (slots_.capacity() + picked_.capacity() + index_of_slot_.capacity()) * sizeof(uint32_t);
}

}  // namespace wisp
