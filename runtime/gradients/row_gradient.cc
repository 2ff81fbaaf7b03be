#include "runtime/gradients/row_gradient.h"

#include <algorithm>

namespace wisp {

RowGradient::RowGradient(size_t max_rows, size_t d, const kernels::Memory& memory)
    : d_(d), rows_(max_rows * d, memory) {
  order_.reserve(max_rows);
  ids_.reserve(max_rows);
}

void RowGradient::Assign(const kernels::OpTable& ops, const RowsFactor& factor) {
  order_.clear();
  ids_.clear();
  for (size_t t = 0; t < factor.records.rows; ++t) {
    if (factor.ids_R[t] >= 0) order_.push_back({factor.ids_R[t], static_cast<uint32_t>(t)});
  }
  std::sort(order_.begin(), order_.end());  // equal ids are ordered by t, so the order of addition is fixed
  for (const Entry& entry : order_) {
    const bool first = ids_.empty() || ids_.back() != entry.id;
    if (first) ids_.push_back(entry.id);
    ops.scale({.x = factor.dx_RD + entry.t * factor.lddx,
               .y = rows_.data() + (ids_.size() - 1) * d_,
               .n = d_,
               .a = factor.scale,
               .store = first ? kernels::Store::kAssign : kernels::Store::kAdd});
  }
}

}  // namespace wisp
