// Rows of a table: lists of them, and sets.
#ifndef WISP_RUNTIME_GRADIENTS_ROW_SET_H_
#define WISP_RUNTIME_GRADIENTS_ROW_SET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

// Rows of the item table, as the host reads them, and for ops, in the same order, in a device's memory.
struct ItemRows {
  std::span<const int32_t> rows;
  const uint32_t* on_device = nullptr;  // null on the host
};

// A set of a table's rows with a number (slot) for each: 0, 1, ... in the order in which they came. Membership and slot
// in constant time; clearing costs the rows that are in, not the table's size.
class RowSet {
 public:
  // Rows 0 .. num_rows - 1: 4 bytes each.
  explicit RowSet(size_t num_rows) : slot_of_(num_rows, -1) {}

  // What a set of `num_rows` rows holds with room for `room` members.
  static size_t PlanBytes(size_t num_rows, size_t room) { return (num_rows + room) * sizeof(int32_t); }
  // Room for so many members: inserting up to there allocates nothing.
  void Reserve(size_t room) { rows_.reserve(room); }

  // The row's slot; it is put in when it is not there.
  size_t Insert(int32_t row) {
    int32_t& slot = slot_of_[static_cast<size_t>(row)];
    if (slot < 0) {
      slot = static_cast<int32_t>(rows_.size());
      rows_.push_back(row);
    }
    return static_cast<size_t>(slot);
  }
  // -1: not there.
  int32_t slot(int32_t row) const { return slot_of_[static_cast<size_t>(row)]; }
  std::span<const int32_t> rows() const { return rows_; }
  size_t size() const { return rows_.size(); }
  void Clear() {
    for (int32_t row : rows_) slot_of_[static_cast<size_t>(row)] = -1;
    rows_.clear();
  }
  size_t size_bytes() const { return slot_of_.size() * sizeof(int32_t) + rows_.capacity() * sizeof(int32_t); }

 private:
  std::vector<int32_t> slot_of_, rows_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_ROW_SET_H_
