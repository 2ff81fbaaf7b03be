#include "runtime/methods/rgp/rgp_batch_gradients.h"

namespace wisp {

using kernels::Store;

RgpBatchGradients::RgpBatchGradients(const kernels::Device& device, size_t max_records, size_t max_rows,
                                     const RgpCarriers& carriers, const ClipRule& clip, GridGradientSum& sum)
    : ops_(device.ops),
      carriers_(&carriers),
      rows_(device, max_records, carriers.release_size(), clip, sum),
      x_right_(max_rows * carriers.rank(), device.memory),
      dy_left_(max_rows * carriers.rank(), device.memory) {}

size_t RgpBatchGradients::PlanBytes(size_t max_records, size_t max_rows, size_t release_size, size_t rank) {
  return RecordRows::PlanBytes(max_records, release_size) + 2 * AlignedArray<float>::AllocatedBytes(max_rows * rank);
}

void RgpBatchGradients::BeginRecords(Batch records) {
  rows_.Begin(records.size(), carriers_->release_size());
  head_open_ = false;
}

void RgpBatchGradients::MultiplyByCarrier(const float* x, size_t ldx, const float* w_KR, size_t rows, size_t k,
                                          Store store, float* y) {
  const size_t r = carriers_->rank();
  ops_->linear_backward_input({.dy_RN = x,
                               .lddy = ldx,
                               .w_NK = w_KR,
                               .ldw = r,
                               .dx_RK = y,
                               .lddx = r,
                               .rows = rows,
                               .n = k,
                               .k = r,
                               .store = store});
}

void RgpBatchGradients::Outer(const OuterFactor& f) {
  const RgpCarriers::Entry& entry = carriers_->entry(f.parameter);
  if (head_open_ && head_.parameter != f.parameter) FinishHead();
  float* left = rows_.at(entry.left_offset);
  if (entry.train == RgpTrain::kFull) FormRecordOuters(*ops_, f, left + f.first_row * f.k, rows_.stride(), nullptr);
  if (entry.train == RgpTrain::kProjected) ProjectOuter(f, left);
}

// Blocks of one parameter share x: x R^T is computed at the first block, dy L is summed over the blocks, and g_R is
// formed when another factor comes.
void RgpBatchGradients::ProjectOuter(const OuterFactor& f, float* left) {
  const size_t r = carriers_->rank(), rows = f.records.rows;
  if (!head_open_)
    MultiplyByCarrier(f.x_RK, f.ldx, carriers_->right_transposed(f.parameter), rows, f.k, Store::kAssign,
                      x_right_.data());
  MultiplyByCarrier(f.dy_RN, f.lddy, carriers_->left(f.parameter) + f.first_row * r, rows, f.n,
                    head_open_ ? Store::kAdd : Store::kAssign, dy_left_.data());
  OuterFactor projected = f;
  projected.x_RK = x_right_.data();
  projected.ldx = projected.k = r;
  FormRecordOuters(*ops_, projected, left + f.first_row * r, rows_.stride(), nullptr);
  head_ = f;
  head_open_ = true;
}

// Adds (dY L)^T X to g_R for the parameter whose blocks have all come.
void RgpBatchGradients::FinishHead() {
  OuterFactor projected = head_;
  projected.dy_RN = dy_left_.data();
  projected.lddy = projected.n = carriers_->rank();
  FormRecordOuters(*ops_, projected, rows_.at(carriers_->entry(head_.parameter).right_offset), rows_.stride(), nullptr);
  head_open_ = false;
}

void RgpBatchGradients::Rows(const RowsFactor& f) {
  if (head_open_) FinishHead();
  const RgpCarriers::Entry& entry = carriers_->entry(f.parameter);
  if (entry.train == RgpTrain::kFull) FormRecordRows(*ops_, f, rows_.at(entry.left_offset), rows_.stride());
  if (entry.train == RgpTrain::kProjected) ProjectRows(f, entry);
}

// Adds scale dx_t R^T to g_L[id_t], and the sum over t of L[id_t]^T (x) scale dx_t to g_R.
void RgpBatchGradients::ProjectRows(const RowsFactor& f, const RgpCarriers::Entry& entry) {
  const size_t r = carriers_->rank(), rows = f.records.rows;
  MultiplyByCarrier(f.dx_RD, f.lddx, carriers_->right_transposed(f.parameter), rows, f.d, Store::kAssign,
                    x_right_.data());
  RowsFactor projected = f;
  projected.dx_RD = x_right_.data();
  projected.lddx = projected.d = r;
  FormRecordRows(*ops_, projected, rows_.at(entry.left_offset), rows_.stride());
  ops_->embed_forward({.table_MD = carriers_->left(f.parameter),
                       .positions_TD = nullptr,
                       .ids_T = f.ids_R,
                       .y_TD = dy_left_.data(),
                       .rows = rows,
                       .d = r,
                       .scale = f.scale});
  const OuterFactor right{.parameter = f.parameter,
                          .first_row = 0,
                          .dy_RN = dy_left_.data(),
                          .lddy = r,
                          .x_RK = f.dx_RD,
                          .ldx = f.lddx,
                          .records = f.records,
                          .n = r,
                          .k = f.d};
  FormRecordOuters(*ops_, right, rows_.at(entry.right_offset), rows_.stride(), nullptr);
}

void RgpBatchGradients::Vector(const VectorFactor& f) {
  const RgpCarriers::Entry& entry = carriers_->entry(f.parameter);
  if (entry.train == RgpTrain::kFrozen) return;
  FormRecordVectors(*ops_, f, rows_.num_records(), rows_.at(entry.left_offset) + f.first, rows_.stride());
}

std::span<const RecordOutcome> RgpBatchGradients::FinishRecords() {
  if (head_open_) FinishHead();
  return rows_.Finish();
}

void RgpBatchGradients::Forget() {
  rows_.Forget();
  for (const auto* columns : {&x_right_, &dy_left_})
    ops_->clear({.y = columns->data(), .bytes = columns->size() * sizeof(float)});
}

}  // namespace wisp
