#include "runtime/layers/weights.h"

#include <algorithm>

namespace wisp {

size_t FindParameter(const std::vector<ParameterSpec>& parameters, std::string_view name) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return i;
  }
  return kNoParameter;
}

PackPlan::PackPlan(const kernels::OpTable& ops, const Architecture& architecture)
    : parameters_(ParametersOf(architecture)), offsets_(parameters_.size(), 0) {
  const bool tied = architecture.output_table == OutputTable::kTied;
  head_parameter_ = FindParameter(parameters_, tied ? "item_embedding" : "output_embedding");
  tile_stride_ = ops.packed_size(kHeadTile, architecture.width);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    offsets_[i] = size_;
    if (p.role == ParameterRole::kMatrix) size_ += (ops.packed_size(p.rows, p.cols) + 15) / 16 * 16;
    if (i == head_parameter_) size_ += (p.rows + kHeadTile - 1) / kHeadTile * tile_stride_;
  }
}

PackPlan::PackPlan(const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters)
    : parameters_(parameters), offsets_(parameters.size(), 0), head_parameter_(kNoParameter) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    offsets_[i] = size_;
    if (p.role == ParameterRole::kMatrix) size_ += (ops.packed_size(p.rows, p.cols) + 15) / 16 * 16;
  }
}

void PackPlan::Pack(const kernels::OpTable& ops, const float* flat, float* packed, size_t part, size_t num_parts) const {
  size_t turn = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    if (p.role == ParameterRole::kMatrix && turn++ % num_parts == part) {
      ops.pack_weights({.w_NK = flat + p.offset, .ldw = p.cols, .packed = packed + offsets_[i], .n = p.rows, .k = p.cols});
    }
    if (i != head_parameter_) continue;
    for (size_t first = 0; first < p.rows; first += kHeadTile) {
      if (turn++ % num_parts != part) continue;
      ops.pack_weights({.w_NK = flat + p.offset + first * p.cols, .ldw = p.cols,
                        .packed = packed + offsets_[i] + first / kHeadTile * tile_stride_,
                        .n = std::min<size_t>(kHeadTile, p.rows - first), .k = p.cols});
    }
  }
}

void PackPlan::Release(const kernels::OpTable& ops, float* packed) const {
  if (ops.release_packed == nullptr) return;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].role == ParameterRole::kMatrix) ops.release_packed(packed + offsets_[i]);
    for (size_t first = 0; i == head_parameter_ && first < parameters_[i].rows; first += kHeadTile) {
      ops.release_packed(packed + offsets_[i] + first / kHeadTile * tile_stride_);
    }
  }
}

}  // namespace wisp
