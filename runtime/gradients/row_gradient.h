// A record's gradient of a table's input use, as the rows that it touches: sum over t of e(id_t) (x) scale * dx_t.
#ifndef WISP_RUNTIME_GRADIENTS_ROW_GRADIENT_H_
#define WISP_RUNTIME_GRADIENTS_ROW_GRADIENT_H_

#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/arena.h"
#include "runtime/layers/factors.h"

namespace wisp {

class RowGradient {
 public:
  RowGradient(size_t max_rows, size_t d, const kernels::Memory& memory = {});

  // PlanBytes: the bytes that an object with these arguments would hold. size_bytes: those that this object holds.
  static size_t PlanBytes(size_t max_rows, size_t d) {
    return max_rows * (sizeof(Entry) + sizeof(int32_t)) + AlignedArray<float>::AllocatedBytes(max_rows * d);
  }
  size_t size_bytes() const {
    return order_.capacity() * sizeof(Entry) + ids_.capacity() * sizeof(int32_t) + rows_.allocated_bytes();
  }

  // Adds up the rows of equal ids. Allocates nothing.
  void Assign(const kernels::OpTable& ops, const RowsFactor& factor);
  void Clear() { ids_.clear(); }

  // Ascending and distinct; row(i) [D] belongs to ids()[i].
  std::span<const int32_t> ids() const { return ids_; }
  const float* row(size_t i) const { return rows_.data() + i * d_; }
  double SumSquares(const kernels::OpTable& ops) const { return ops.sum_squares(rows_.data(), ids_.size() * d_); }

 private:
  struct Entry {
    int32_t id;
    uint32_t t;
    bool operator<(const Entry& o) const { return id != o.id ? id < o.id : t < o.t; }
  };
  size_t d_;
  std::vector<Entry> order_;
  std::vector<int32_t> ids_;
  AlignedArray<float> rows_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_ROW_GRADIENT_H_
