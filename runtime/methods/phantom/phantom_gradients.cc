#include "runtime/methods/phantom/phantom_gradients.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/gradients/form_outer.h"

namespace wisp {
PhantomGradients::PhantomGradients(const kernels::Device& device, const Setup& setup, const PhantomOptions& options,
                                   GradientSum& sum)
    : ops_(device.ops),
      parameters_(&setup.parameters),
      trained_(&setup.trained),
      clip_(options.clip),
      sum_(&sum),
      head_(setup.head_parameter),
      worker_(setup.worker),
      max_rows_(setup.max_rows),
      d_(setup.parameters[setup.head_parameter].cols) {
  Plan plan = PlanWays(*ops_, setup, options);
  entries_ = std::move(plan.entries);
  row_gradients_.reserve(plan.row_widths.size());
  for (size_t width : plan.row_widths) row_gradients_.emplace_back(max_rows_, width, device.memory);
  scratch_ = AlignedArray<float>(plan.scratch, device.memory);
  block_ = AlignedArray<float>(plan.block, device.memory);
  packed_ = AlignedArray<float>(plan.packed, device.memory);
  for (AlignedArray<float>* square : {&gram_x_, &gram_dy_, &head_gram_, &columns_})
    *square = AlignedArray<float>(plan.square, device.memory);
  cross_ = AlignedArray<float>(plan.cross, device.memory);
}

PhantomGradients::Plan PhantomGradients::PlanWays(const kernels::OpTable& ops, const Setup& setup,
                                                  const PhantomOptions& options) {
  Plan plan{.entries = std::vector<Entry>(setup.parameters.size())};
  const size_t head = setup.head_parameter;
  size_t formed = 0, widest_gram = 0;
  for (uint32_t i : setup.trained.parameters()) {
    const ParameterSpec& p = setup.parameters[i];
    if (p.shape != ParameterShape::kTable || i == head) formed += AlignedSize(p.size());
  }
  const bool large = formed * sizeof(float) > options.max_formed_bytes;
  const bool gram =
      !setup.norms_head_rows && (options.form == NormForm::kGram || (options.form == NormForm::kAutomatic && large));
  if (setup.norms_head_rows) plan.block = FormOuterScratch(kMostBlockRows, setup.parameters[head].cols);
  for (uint32_t i : setup.trained.parameters()) {
    const ParameterSpec& p = setup.parameters[i];
    Entry& entry = plan.entries[i];
    if (p.shape == ParameterShape::kTable) {
      entry.rows_slot = plan.row_widths.size();
      plan.row_widths.push_back(p.cols);
      entry.way = Way::kRows;
    }
    if (p.shape == ParameterShape::kVector || i == head || p.shape == ParameterShape::kMatrix) {
      entry.way = gram && p.shape != ParameterShape::kVector ? Way::kGram : Way::kFormed;
    }
    if (entry.way == Way::kGram) widest_gram = std::max<size_t>(widest_gram, p.cols);
    if (entry.way != Way::kFormed) continue;
    entry.offset = plan.scratch;
    plan.scratch += AlignedSize(p.size());
  }
  if (!gram) return plan;
  size_t widest = kMostBlockRows;
  for (const ParameterSpec& p : setup.parameters) {
    widest = std::max<size_t>({widest, p.cols, p.shape == ParameterShape::kMatrix ? p.rows : 0});
  }
  plan.block = kMostBlockRows * widest_gram;
  plan.packed = ops.packed_size(setup.max_rows, widest);
  plan.square = setup.max_rows * setup.max_rows;
  plan.cross = setup.max_rows * setup.parameters[head].cols;
  return plan;
}

size_t PhantomGradients::PlanBytes(const kernels::OpTable& ops, const Setup& setup, const PhantomOptions& options) {
  const Plan plan = PlanWays(ops, setup, options);
  size_t bytes = 0;
  for (size_t size :
       {plan.scratch, plan.block, plan.packed, plan.square, plan.square, plan.square, plan.square, plan.cross}) {
    bytes += AlignedArray<float>::AllocatedBytes(size);
  }
  for (size_t width : plan.row_widths) bytes += RowGradient::PlanBytes(setup.max_rows, width);
  return bytes;
}

size_t PhantomGradients::scratch_bytes() const {
  size_t bytes = 0;
  for (const AlignedArray<float>* buffer :
       {&scratch_, &block_, &packed_, &gram_x_, &gram_dy_, &head_gram_, &columns_, &cross_}) {
    bytes += buffer->allocated_bytes();
  }
  for (const RowGradient& rows : row_gradients_) bytes += rows.size_bytes();
  return bytes;
}

void PhantomGradients::BeginRecord(std::span<const int32_t> input_ids) {
  input_ids_ = input_ids;
  gram_squares_ = cross_squares_ = 0;
  head_seen_ = used_twice_ = false;
  for (Entry& entry : entries_) entry.seen = 0;
  for (RowGradient& rows : row_gradients_) rows.Clear();
}

void PhantomGradients::Outer(const OuterFactor& factor) {
  Entry& entry = entries_[factor.parameter];
  if (entry.way == Way::kUntrained) return;
  if (replaying_) {
    if (entry.way == Way::kGram) AccumulateGramBlock(factor);
    return;
  }
  if (entry.way == Way::kFormed) {
    // The blocks of one use come in ascending order. A block that comes again belongs to another use, so it is added.
    const bool again = factor.first_row < entry.seen;
    if (!again) entry.seen = factor.first_row + factor.n;
    FormOuter(*ops_, factor, again ? kernels::Store::kAdd : kernels::Store::kAssign, block_.data(),
              scratch_.data() + entry.offset + factor.first_row * factor.k);
    return;
  }
  if (factor.first_row < entry.seen) used_twice_ = true;
  entry.seen = factor.first_row + factor.n;
  if (factor.parameter != head_) entry.factor = factor;
  if (clip_.kind() != ClipKind::kNone) AddGram(factor);
}

void PhantomGradients::Rows(const RowsFactor& factor) {
  const Entry& entry = entries_[factor.parameter];
  if (entry.way == Way::kUntrained) return;
  if (entry.way == Way::kFormed) {
    ops_->scatter_add({.dx_TD = factor.dx_RD,
                       .lddx = factor.lddx,
                       .ids_T = factor.ids_R,
                       .table_MD = scratch_.data() + entry.offset,
                       .ldtable = factor.d,
                       .rows = factor.records.rows,
                       .d = factor.d,
                       .scale = factor.scale});
    return;
  }
  row_gradients_[entry.rows_slot].Assign(*ops_, factor);
  if (entry.way == Way::kGram && clip_.kind() != ClipKind::kNone) cross_squares_ += 2 * TableCross(factor);
}

void PhantomGradients::Vector(const VectorFactor& factor) {
  Entry& entry = entries_[factor.parameter];
  if (entry.way == Way::kUntrained || replaying_) return;
  const bool again = factor.first < entry.seen;
  if (!again) entry.seen = factor.first + factor.n;
  ops_->scale({.x = factor.g_BN,
               .y = scratch_.data() + entry.offset + factor.first,
               .n = factor.n,
               .a = 1.0f,
               .store = again ? kernels::Store::kAdd : kernels::Store::kAssign});
}

// out [rows, rows] (=|+=) a a^T.
void PhantomGradients::Gram(const float* a, size_t ld, size_t rows, size_t width, float* out, kernels::Store store) {
  ops_->pack_weights({.w_NK = a, .ldw = ld, .packed = packed_.data(), .n = rows, .k = width});
  ops_->linear_forward({.x_RK = a,
                        .ldx = ld,
                        .packed = packed_.data(),
                        .bias_N = nullptr,
                        .y_RN = out,
                        .ldy = rows,
                        .rows = rows,
                        .n = rows,
                        .k = width,
                        .store = store});
}

// Adds <x x^T, dy dy^T>. Blocks of the head share x: their dy dy^T are summed here, and FinishRecord takes the product.
void PhantomGradients::AddGram(const OuterFactor& f) {
  if (f.parameter == head_) {
    Gram(f.dy_RN, f.lddy, f.records.rows, f.n, head_gram_.data(),
         head_seen_ ? kernels::Store::kAdd : kernels::Store::kAssign);
    head_seen_ = true;
    head_factor_ = f;
    GatherInputColumns(f);
    return;
  }
  Gram(f.dy_RN, f.lddy, f.records.rows, f.n, gram_dy_.data(), kernels::Store::kAssign);
  Gram(f.x_RK, f.ldx, f.records.rows, f.k, gram_x_.data(), kernels::Store::kAssign);
  gram_squares_ += ops_->dot(gram_x_.data(), gram_dy_.data(), f.records.rows * f.records.rows);
}

// Sets columns_[r, t] = dZ[r, s_t] for the record's items s_t in this block of the catalogue.
void PhantomGradients::GatherInputColumns(const OuterFactor& f) {
  ops_->gather_columns({.x_RN = f.dy_RN,
                        .ldx = f.lddy,
                        .column_J = input_ids_.data(),
                        .first = static_cast<int32_t>(f.first_row),
                        .y_RJ = columns_.data(),
                        .ldy = input_ids_.size(),
                        .rows = f.records.rows,
                        .n = f.n,
                        .columns = input_ids_.size()});
}

// <g_in, g_out> = sum_t <scale dx_t, sum_r dZ[r, s_t] h_r>.
double PhantomGradients::TableCross(const RowsFactor& factor) {
  const size_t rows = factor.records.rows;
  ops_->linear_backward_weight({.dy_RN = columns_.data(),
                                .lddy = rows,
                                .x_RK = head_factor_.x_RK,
                                .ldx = head_factor_.ldx,
                                .dw_NK = cross_.data(),
                                .lddw = d_,
                                .rows = head_factor_.records.rows,
                                .n = rows,
                                .k = d_,
                                .scale = 1.0f,
                                .store = kernels::Store::kAssign});
  return factor.scale * ops_->dot_rows({.x_RD = factor.dx_RD,
                                        .ldx = factor.lddx,
                                        .y_RD = cross_.data(),
                                        .ldy = d_,
                                        .ids_R = factor.ids_R,
                                        .rows = rows,
                                        .d = d_});
}

double PhantomGradients::SquaredNorm() {
  double squares = gram_squares_ + cross_squares_ + ops_->sum_squares(scratch_.data(), scratch_.size());
  for (const RowGradient& rows : row_gradients_) squares += rows.SumSquares(*ops_);
  return squares;
}

// Forms one block of c_i dW, adds the table's input rows that belong to it, and adds the result to the sum. So each
// coordinate is rounded to the grid exactly once for each record.
void PhantomGradients::AccumulateGramBlock(const OuterFactor& f) {
  const ParameterSpec& p = (*parameters_)[f.parameter];
  const Entry& entry = entries_[f.parameter];
  for (size_t first = 0; first < f.n; first += kMostBlockRows) {
    const size_t n = std::min(kMostBlockRows, f.n - first);
    ops_->linear_backward_weight({.dy_RN = f.dy_RN + first,
                                  .lddy = f.lddy,
                                  .x_RK = f.x_RK,
                                  .ldx = f.ldx,
                                  .dw_NK = block_.data(),
                                  .lddw = f.k,
                                  .rows = f.records.rows,
                                  .n = n,
                                  .k = f.k,
                                  .scale = 1.0f,
                                  .store = kernels::Store::kAssign});
    const size_t begin = f.first_row + first;
    if (p.shape == ParameterShape::kTable) {
      const RowGradient& rows = row_gradients_[entry.rows_slot];
      const auto ids = rows.ids();
      auto it = std::lower_bound(ids.begin(), ids.end(), static_cast<int32_t>(begin));
      for (; it != ids.end() && static_cast<size_t>(*it) < begin + n; ++it) {
        ops_->scale({.x = rows.row(static_cast<size_t>(it - ids.begin())),
                     .y = block_.data() + (static_cast<size_t>(*it) - begin) * f.k,
                     .n = f.k,
                     .a = 1.0f,
                     .store = kernels::Store::kAdd});
      }
    }
    replay_squares_ += sum_->Add(worker_, trained_->offset(f.parameter) + begin * f.k, block_.data(), n * f.k,
                                 replay_factor_, replay_sign_);
  }
}

double PhantomGradients::Accumulate(HeadReplay& replay, float factor, int32_t sign) {
  replay_factor_ = factor;
  replay_sign_ = sign;
  replay_squares_ = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const ParameterSpec& p = (*parameters_)[i];
    if (entry.way == Way::kFormed) {
      replay_squares_ +=
          sum_->Add(worker_, trained_->offset(i), scratch_.data() + entry.offset, p.size(), factor, sign);
    } else if (entry.way == Way::kRows) {
      const RowGradient& rows = row_gradients_[entry.rows_slot];
      for (size_t r = 0; r < rows.ids().size(); ++r) {
        replay_squares_ += sum_->Add(worker_, trained_->offset(i) + static_cast<size_t>(rows.ids()[r]) * p.cols,
                                     rows.row(r), p.cols, factor, sign);
      }
    } else if (entry.way == Way::kGram && i != head_) {
      AccumulateGramBlock(entry.factor);
    }
  }
  if (entries_[head_].way == Way::kGram) {
    replaying_ = true;
    replay.Replay(*this);
    replaying_ = false;
  }
  return replay_squares_;
}

RecordOutcome PhantomGradients::FinishRecord(HeadReplay& replay) {
  double norm = used_twice_ ? std::nan("") : 0;
  if (clip_.kind() != ClipKind::kNone && !used_twice_) {
    if (head_seen_) {
      const OuterFactor& f = head_factor_;
      Gram(f.x_RK, f.ldx, f.records.rows, f.k, gram_x_.data(), kernels::Store::kAssign);
      gram_squares_ += ops_->dot(gram_x_.data(), head_gram_.data(), f.records.rows * f.records.rows);
    }
    const double squares = SquaredNorm();
    norm = std::sqrt(squares < 0 ? 0.0 : squares);  // rounding may leave a tiny negative; NaN must stay NaN
  }
  return ClipAndAdd(clip_, norm, *sum_, [&](float factor, int32_t sign) { return Accumulate(replay, factor, sign); });
}

}  // namespace wisp
