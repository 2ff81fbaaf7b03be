// Lists and sets of a table's rows.
#ifndef WISP_RUNTIME_GRADIENTS_ROW_SET_H_
#define WISP_RUNTIME_GRADIENTS_ROW_SET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

// Rows of the item table, once for the host and once in the device's memory for ops, in the same order.
struct ItemRows {
  std::span<const int32_t> rows;
  const uint32_t* on_device = nullptr;  // null on the host
};

// A set of a table's rows. Each member has a slot number: 0, 1, ... in the order of insertion. Lookup takes constant
// time. Clearing costs time for each member, not for each row of the table.
class RowSet {
 public:
  // For rows 0 .. num_rows - 1; takes 4 bytes for each row.
  explicit RowSet(size_t num_rows) : slot_of_(num_rows, -1) {}

  // Bytes of a set over `num_rows` rows with space for `room` members.
  static size_t PlanBytes(size_t num_rows, size_t room) { return (num_rows + room) * sizeof(int32_t); }
  // Reserves space for `room` members. Insertions up to that number allocate nothing.
  void Reserve(size_t room) { rows_.reserve(room); }

  // Returns the row's slot. Inserts the row if it is new.
  size_t Insert(int32_t row) {
    int32_t& slot = slot_of_[static_cast<size_t>(row)];
    if (slot < 0) {
      slot = static_cast<int32_t>(rows_.size());
      rows_.push_back(row);
    }
    return static_cast<size_t>(slot);
  }
  // -1: the row is not a member.
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
