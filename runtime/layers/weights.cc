#include "runtime/layers/weights.h"

#include <algorithm>
#include <vector>

namespace wisp {
HeadPacking HeadPackingFor(const kernels::OpTable& ops, const Architecture& a, const ParameterSource& source) {
  const std::optional<size_t> table = FindHeadTable(a, ListParameters(a));
  if (!table || a.head.temperature > 0) return HeadPacking::kTiles;
  if (source.panels(*table).data != nullptr) return HeadPacking::kNone;
  if (source.halves(*table) == nullptr) return HeadPacking::kTiles;
  const bool smaller =
      ops.packed_size(kHeadTile, a.width) * sizeof(float) < kHeadTile * a.width * sizeof(kernels::Half);
  return smaller ? HeadPacking::kTiles : HeadPacking::kNone;
}

size_t FirstKeyRow(const Architecture& a, const ParameterSpec& p) {
  const bool stacked = p.role == ParameterRole::kQkvWeight || p.role == ParameterRole::kQkvUp;
  return stacked ? a.blocks[p.block].attention.queries_width() : 0;
}

size_t SquaredRows(const Architecture& a, const ParameterSpec& p) {
  const bool last = p.role == ParameterRole::kQkvWeight && p.block + 1 == a.blocks.size();
  return last ? a.blocks[p.block].attention.keys_width() : p.rows - FirstKeyRow(a, p);
}

PackPlan::PackPlan(const kernels::OpTable& ops, const Architecture& a, HeadPacking head, bool keeps_unit_rows,
                   std::span<const StoredTensor> stored)
    : parameters_(ListParameters(a)),
      matrices_(parameters_.size()),
      head_parameter_(FindHeadTable(a, parameters_)),
      head_(head_parameter_ ? head : HeadPacking::kNone),
      item_variance_(FindParameter(parameters_, ParameterRole::kItemVariance)),
      parameter_variance_(FindParameter(parameters_, ParameterRole::kParameterVariance)),
      constants_(a),
      width_(a.width) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    if (p.shape != ParameterShape::kMatrix) continue;
    Matrix& m = matrices_[i];
    m.first_key_row = FirstKeyRow(a, p);
    // Squares are computed from floats, so such a matrix is not multiplied in place.
    m.in_place = i < stored.size() && stored[i].panels.data != nullptr && !item_variance_;
    if (m.in_place) continue;
    m.first = size_;
    if (m.first_key_row > 0) size_ += AlignedSize(ops.packed_size(m.first_key_row, p.cols));
    const size_t n = p.rows - m.first_key_row;
    m.keys = size_;
    size_ += AlignedSize(ops.packed_size(n, p.cols));
    if (!item_variance_) continue;
    m.squared = size_;
    m.squared_rows = SquaredRows(a, p);
    size_ += AlignedSize(ops.packed_size(m.squared_rows, p.cols)) +
             AlignedSize(m.squared_rows * p.cols);  // after it, the squares before packing
  }
  constants_offset_ = size_;
  size_ += constants_.size();
  tile_stride_ = ops.packed_size(kHeadTile, a.width);
  if (head_ == HeadPacking::kNone) return;
  matrices_[*head_parameter_].first = size_;
  size_ += num_tiles() * tile_stride_;
  if (!constants_.has_gains() || !keeps_unit_rows) return;
  unit_rows_ = size_;
  unit_rows_size_ = parameters_[*head_parameter_].size();
  size_ += AlignedSize(unit_rows_size_) + AlignedSize(a.num_items);
}

size_t PackPlan::num_tiles() const {
  return head_ == HeadPacking::kNone ? 0 : (parameters_[*head_parameter_].rows + kHeadTile - 1) / kHeadTile;
}

void PackPlan::PackMatrix(const kernels::OpTable& ops, const ParameterSource& source, float* packed,
                          size_t parameter) const {
  const ParameterSpec& p = parameters_[parameter];
  const Matrix& m = matrices_[parameter];
  const kernels::PanelMatrix panels = source.panels(parameter);
  std::vector<float> dequantised(panels.data != nullptr ? p.size() : 0);
  if (panels.data != nullptr) kernels::WidenPanels(panels, 0, p.rows, p.cols, dequantised.data());
  const float* w = panels.data != nullptr ? dequantised.data() : source.floats(parameter, p);
  if (m.first_key_row > 0) {
    ops.pack_weights({.w_NK = w, .ldw = p.cols, .packed = packed + m.first, .n = m.first_key_row, .k = p.cols});
  }
  ops.pack_weights({.w_NK = w + m.first_key_row * p.cols,
                    .ldw = p.cols,
                    .packed = packed + m.keys,
                    .n = p.rows - m.first_key_row,
                    .k = p.cols});
  if (item_variance_) PackSquares(ops, w, packed, parameter);
}

void PackPlan::PackSquares(const kernels::OpTable& ops, const float* w_NK, float* packed, size_t parameter) const {
  const ParameterSpec& p = parameters_[parameter];
  const Matrix& m = matrices_[parameter];
  const size_t n = m.squared_rows;
  float* target = packed + m.squared;
  float* squares = target + AlignedSize(ops.packed_size(n, p.cols));
  ops.map(
      {.x = w_NK + m.first_key_row * p.cols, .y = squares, .n = n * p.cols, .function = kernels::Function::kSquare});
  ops.pack_weights({.w_NK = squares, .ldw = p.cols, .packed = target, .n = n, .k = p.cols});
}

// `unit` is scratch for unit rows that are not kept.
const float* PackPlan::UnitRows(const kernels::OpTable& ops, const TableRows& rows, float* packed,
                                std::vector<float>& unit) const {
  const size_t d = width_;
  if (unit_rows_size_ == 0) unit.resize(rows.n * d + rows.n);
  float* y = unit_rows_size_ == 0 ? unit.data() : packed + unit_rows_ + rows.first * d;
  float* rstd = unit_rows_size_ == 0 ? y + rows.n * d : packed + unit_rstd_offset() + rows.first;
  ops.rms_norm_forward({.x_RD = rows.w,
                        .gain_D = packed + constants_offset_ + constants_.unit_gain(),
                        .y_RD = y,
                        .rstd_R = rstd,
                        .rows = rows.n,
                        .d = d,
                        .epsilon = kUnitEpsilon});
  return y;
}

void PackPlan::PackHeadTile(const kernels::OpTable& ops, const kernels::Memory& memory, const ParameterSource& source,
                            float* packed, size_t first) const {
  const ParameterSpec& p = parameters_[*head_parameter_];
  const size_t n = std::min<size_t>(kHeadTile, p.rows - first);
  const kernels::Half* halves = source.halves(*head_parameter_);
  const kernels::PanelMatrix panels = source.panels(*head_parameter_);
  const bool is_float = halves == nullptr && panels.data == nullptr;
  const float* w = is_float ? source.floats(*head_parameter_, p) + first * p.cols : nullptr;
  const AlignedArray<float> dequantised(is_float ? 0 : n * p.cols, memory);
  if (panels.data != nullptr) kernels::WidenPanels(panels, first, n, p.cols, dequantised.data());
  if (halves != nullptr) {
    ops.scale_half({.x = halves + first * p.cols,
                    .y = dequantised.data(),
                    .n = dequantised.size(),
                    .a = 1.0f,
                    .store = kernels::Store::kAssign});
  }
  if (!is_float) w = dequantised.data();
  std::vector<float> unit;
  if (constants_.has_gains()) w = UnitRows(ops, {w, first, n}, packed, unit);
  ops.pack_weights({.w_NK = w,
                    .ldw = p.cols,
                    .packed = packed + offset(*head_parameter_) + first / kHeadTile * tile_stride_,
                    .n = n,
                    .k = p.cols});
}

void PackPlan::Pack(const kernels::OpTable& ops, const kernels::Memory& memory, const ParameterSource& source,
                    float* packed, const Share& share) const {
  const auto is_old = [&](size_t parameter) { return !share.changed.empty() && share.changed[parameter] == 0; };
  size_t turn = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!IsPacked(i) || is_old(i)) continue;
    if (turn++ % share.num_parts == share.part) PackMatrix(ops, source, packed, i);
  }
  for (size_t tile = 0; tile < num_tiles() && !is_old(*head_parameter_); ++tile) {
    if (turn++ % share.num_parts == share.part) PackHeadTile(ops, memory, source, packed, tile * kHeadTile);
  }
}

void PackPlan::Release(const kernels::OpTable& ops, float* packed) const {
  if (ops.release_packed == nullptr) return;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!IsPacked(i)) continue;
    if (matrices_[i].first_key_row > 0) ops.release_packed(packed + matrices_[i].first);
    ops.release_packed(packed + matrices_[i].keys);
    if (item_variance_) ops.release_packed(packed + matrices_[i].squared);
  }
  for (size_t tile = 0; tile < num_tiles(); ++tile) {
    ops.release_packed(packed + offset(*head_parameter_) + tile * tile_stride_);
  }
}

}  // namespace wisp
