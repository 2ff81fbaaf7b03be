#include "runtime/layers/weights.h"

#include <algorithm>
#include <vector>

namespace wisp {
namespace {

size_t AlignUp(size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

size_t FindParameter(const std::vector<ParameterSpec>& parameters, std::string_view name) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return i;
  }
  return kNoParameter;
}

size_t FindHeadTable(const Architecture& a, const std::vector<ParameterSpec>& parameters) {
  return FindParameter(parameters, a.output_table == OutputTable::kTied ? "item_embedding" : "output_embedding");
}

HeadPacking HeadPackingFor(const kernels::OpTable& ops, const Architecture& a, const ParameterSource& source) {
  if (source.halves(FindHeadTable(a, ParametersOf(a))) == nullptr) return HeadPacking::kTiles;
  const bool smaller =
      ops.packed_size(kHeadTile, a.width) * sizeof(float) < kHeadTile * a.width * sizeof(kernels::Half);
  return smaller ? HeadPacking::kTiles : HeadPacking::kNone;
}

size_t SquaredFirstRow(const ParameterSpec& matrix) {
  return matrix.name.ends_with(".qkv.weight") ? matrix.rows / 3 : 0;
}

PackPlan::PackPlan(const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters)
    : parameters_(parameters), offsets_(parameters.size(), 0), squared_offsets_(parameters.size(), 0) {
  item_variance_ = FindParameter(parameters_, kItemVariance);
  parameter_variance_ = FindParameter(parameters_, kParameterVariance);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    if (p.role != ParameterRole::kMatrix) continue;
    offsets_[i] = size_;
    size_ += AlignUp(ops.packed_size(p.rows, p.cols));
    if (item_variance_ == kNoParameter) continue;
    squared_offsets_[i] = size_;
    const size_t n = p.rows - SquaredFirstRow(p);
    size_ += AlignUp(ops.packed_size(n, p.cols)) + AlignUp(n * p.cols);  // behind it, the squares before packing
  }
}

PackPlan::PackPlan(const kernels::OpTable& ops, const Architecture& architecture, HeadPacking head)
    : PackPlan(ops, ParametersOf(architecture)) {
  head_ = head;
  head_parameter_ = FindHeadTable(architecture, parameters_);
  tile_stride_ = ops.packed_size(kHeadTile, architecture.width);
  if (head == HeadPacking::kNone) return;
  offsets_[head_parameter_] = size_;
  size_ += (parameters_[head_parameter_].rows + kHeadTile - 1) / kHeadTile * tile_stride_;
}

void PackPlan::PackSquares(const kernels::OpTable& ops, const ParameterSource& source, float* packed,
                           size_t parameter) const {
  const ParameterSpec& p = parameters_[parameter];
  const size_t first = SquaredFirstRow(p), n = p.rows - first;
  float* target = packed + squared_offsets_[parameter];
  float* squares = target + AlignUp(ops.packed_size(n, p.cols));
  const float* w = source.floats(parameter, p) + first * p.cols;
  for (size_t i = 0; i < size_t{n} * p.cols; ++i) squares[i] = w[i] * w[i];
  ops.pack_weights({.w_NK = squares, .ldw = p.cols, .packed = target, .n = n, .k = p.cols});
}

void PackPlan::PackHeadTile(const kernels::OpTable& ops, const ParameterSource& source, float* packed,
                            size_t first) const {
  const ParameterSpec& p = parameters_[head_parameter_];
  const size_t n = std::min<size_t>(kHeadTile, p.rows - first);
  const kernels::Half* halves = source.halves(head_parameter_);
  const float* w = halves == nullptr ? source.floats(head_parameter_, p) + first * p.cols : nullptr;
  std::vector<float> widened(halves != nullptr ? n * p.cols : 0);
  if (halves != nullptr) {
    ops.scale_half({.x = halves + first * p.cols,
                    .y = widened.data(),
                    .n = widened.size(),
                    .a = 1.0f,
                    .store = kernels::Store::kAssign});
    w = widened.data();
  }
  ops.pack_weights({.w_NK = w,
                    .ldw = p.cols,
                    .packed = packed + offsets_[head_parameter_] + first / kHeadTile * tile_stride_,
                    .n = n,
                    .k = p.cols});
}

void PackPlan::Pack(const kernels::OpTable& ops, const ParameterSource& source, float* packed, size_t part,
                    size_t num_parts) const {
  size_t turn = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    if (p.role == ParameterRole::kMatrix && turn++ % num_parts == part) {
      ops.pack_weights(
          {.w_NK = source.floats(i, p), .ldw = p.cols, .packed = packed + offsets_[i], .n = p.rows, .k = p.cols});
      if (item_variance_ != kNoParameter) PackSquares(ops, source, packed, i);
    }
    if (i != head_parameter_ || head_ == HeadPacking::kNone) continue;
    for (size_t first = 0; first < p.rows; first += kHeadTile) {
      if (turn++ % num_parts == part) PackHeadTile(ops, source, packed, first);
    }
  }
}

void PackPlan::Release(const kernels::OpTable& ops, float* packed) const {
  if (ops.release_packed == nullptr) return;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].role == ParameterRole::kMatrix) {
      ops.release_packed(packed + offsets_[i]);
      if (item_variance_ != kNoParameter) ops.release_packed(packed + squared_offsets_[i]);
    }
    for (size_t first = 0; i == head_parameter_ && head_ == HeadPacking::kTiles && first < parameters_[i].rows;
         first += kHeadTile) {
      ops.release_packed(packed + offsets_[i] + first / kHeadTile * tile_stride_);
    }
  }
}

}  // namespace wisp
