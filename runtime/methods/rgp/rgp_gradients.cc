#include "runtime/methods/rgp/rgp_gradients.h"

#include <cmath>

namespace wisp {

using kernels::Store;

RgpGradients::RgpGradients(const kernels::Device& device, const Setup& setup, const RgpCarriers& carriers,
                           const ClipRule& clip, GradientSum& sum)
    : ops_(device.ops),
      carriers_(&carriers),
      clip_(clip),
      sum_(&sum),
      worker_(setup.worker),
      release_(carriers.release_size(), device.memory),
      x_right_(setup.max_rows * carriers.rank(), device.memory),
      dy_left_(setup.max_rows * carriers.rank(), device.memory) {}

void RgpGradients::BeginRecord(std::span<const int32_t>) {
  ops_->clear({.y = release_.data(), .bytes = release_.size() * sizeof(float)});
  head_open_ = false;
}

// Blocks of one parameter share x: x R^T is computed at the first block, dy L is summed over the blocks, and g_R is
// formed when another factor comes.
void RgpGradients::Outer(const OuterFactor& f) {
  const RgpCarriers::Entry& entry = carriers_->entry(f.parameter);
  if (head_open_ && head_.parameter != f.parameter) FinishHead();
  float* left = release_.data() + entry.left_offset;
  if (entry.train == RgpTrain::kFrozen) return;
  if (entry.train == RgpTrain::kFull) {
    ops_->linear_backward_weight({.dy_RN = f.dy_RN,
                                  .lddy = f.lddy,
                                  .x_RK = f.x_RK,
                                  .ldx = f.ldx,
                                  .dw_NK = left + f.first_row * f.k,
                                  .lddw = f.k,
                                  .rows = f.records.rows,
                                  .n = f.n,
                                  .k = f.k,
                                  .scale = 1.0f,
                                  .store = Store::kAdd});
    return;
  }
  const size_t r = carriers_->rank();
  if (!head_open_) {
    ops_->linear_backward_input({.dy_RN = f.x_RK,
                                 .lddy = f.ldx,
                                 .w_NK = carriers_->right_transposed(f.parameter),
                                 .ldw = r,
                                 .dx_RK = x_right_.data(),
                                 .lddx = r,
                                 .rows = f.records.rows,
                                 .n = f.k,
                                 .k = r,
                                 .store = Store::kAssign});
  }
  ops_->linear_backward_input({.dy_RN = f.dy_RN,
                               .lddy = f.lddy,
                               .w_NK = carriers_->left(f.parameter) + f.first_row * r,
                               .ldw = r,
                               .dx_RK = dy_left_.data(),
                               .lddx = r,
                               .rows = f.records.rows,
                               .n = f.n,
                               .k = r,
                               .store = head_open_ ? Store::kAdd : Store::kAssign});
  ops_->linear_backward_weight({.dy_RN = f.dy_RN,
                                .lddy = f.lddy,
                                .x_RK = x_right_.data(),
                                .ldx = r,
                                .dw_NK = left + f.first_row * r,
                                .lddw = r,
                                .rows = f.records.rows,
                                .n = f.n,
                                .k = r,
                                .scale = 1.0f,
                                .store = Store::kAdd});
  head_ = f;
  head_open_ = true;
}

// Adds (dY L)^T X to g_R for the parameter whose blocks have all come.
void RgpGradients::FinishHead() {
  const size_t r = carriers_->rank();
  float* right = release_.data() + carriers_->entry(head_.parameter).right_offset;
  ops_->linear_backward_weight({.dy_RN = dy_left_.data(),
                                .lddy = r,
                                .x_RK = head_.x_RK,
                                .ldx = head_.ldx,
                                .dw_NK = right,
                                .lddw = head_.k,
                                .rows = head_.records.rows,
                                .n = r,
                                .k = head_.k,
                                .scale = 1.0f,
                                .store = Store::kAdd});
  head_open_ = false;
}

void RgpGradients::Rows(const RowsFactor& f) {
  if (head_open_) FinishHead();
  const RgpCarriers::Entry& entry = carriers_->entry(f.parameter);
  float* left = release_.data() + entry.left_offset;
  if (entry.train == RgpTrain::kFrozen) return;
  if (entry.train == RgpTrain::kFull) {
    ops_->scatter_add({.dx_TD = f.dx_RD,
                       .lddx = f.lddx,
                       .ids_T = f.ids_R,
                       .table_MD = left,
                       .ldtable = f.d,
                       .rows = f.records.rows,
                       .d = f.d,
                       .scale = f.scale});
    return;
  }
  const size_t r = carriers_->rank();
  ops_->linear_backward_input({.dy_RN = f.dx_RD,
                               .lddy = f.lddx,
                               .w_NK = carriers_->right_transposed(f.parameter),
                               .ldw = r,
                               .dx_RK = x_right_.data(),
                               .lddx = r,
                               .rows = f.records.rows,
                               .n = f.d,
                               .k = r,
                               .store = Store::kAssign});
  ops_->scatter_add({.dx_TD = x_right_.data(),
                     .lddx = r,
                     .ids_T = f.ids_R,
                     .table_MD = left,
                     .ldtable = r,
                     .rows = f.records.rows,
                     .d = r,
                     .scale = f.scale});
  // Adds the sum over t of L[id_t]^T (x) scale dx_t to g_R.
  ops_->embed_forward({.table_MD = carriers_->left(f.parameter),
                       .positions_TD = nullptr,
                       .ids_T = f.ids_R,
                       .y_TD = dy_left_.data(),
                       .rows = f.records.rows,
                       .d = r,
                       .scale = 1.0f});
  ops_->linear_backward_weight({.dy_RN = dy_left_.data(),
                                .lddy = r,
                                .x_RK = f.dx_RD,
                                .ldx = f.lddx,
                                .dw_NK = release_.data() + entry.right_offset,
                                .lddw = f.d,
                                .rows = f.records.rows,
                                .n = r,
                                .k = f.d,
                                .scale = f.scale,
                                .store = Store::kAdd});
}

void RgpGradients::Vector(const VectorFactor& f) {
  const RgpCarriers::Entry& entry = carriers_->entry(f.parameter);
  if (entry.train == RgpTrain::kFrozen) return;
  ops_->scale(
      {.x = f.g_BN, .y = release_.data() + entry.left_offset + f.first, .n = f.n, .a = 1.0f, .store = Store::kAdd});
}

// Finishes the last parameter, because its x may be overwritten after this call.
void RgpGradients::EndKept() {
  if (head_open_) FinishHead();
}

RecordOutcome RgpGradients::FinishRecord(HeadReplay&) {
  if (head_open_) FinishHead();
  const double norm =
      clip_.kind() == ClipKind::kNone ? 0 : std::sqrt(ops_->sum_squares(release_.data(), release_.size()));
  return ClipAndAdd(clip_, norm, *sum_, [&](float factor, int32_t sign) {
    return sum_->Add(worker_, 0, release_.data(), release_.size(), factor, sign);
  });
}

}  // namespace wisp
