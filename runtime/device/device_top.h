// Chooses the best items from rows of scores in a device's memory. Only the best items are copied to the host.
//
//   DeviceTop top(num_items, /*rows=*/1, memory);
//   top.ClearExcluded(0, Offered::kAll);
//   Mark(top.excluded(0), item);                                     // on the host
//   top.SendExcluded(1);
//   ops.score_tiles({..., .y_RN = top.scores(), ...});
//   top.Run(1, 10);                                             // valid once the memory's wait returns true
//   std::span<const kernels::Scored> best = top.best(0);
#ifndef WISP_RUNTIME_DEVICE_DEVICE_TOP_H_
#define WISP_RUNTIME_DEVICE_DEVICE_TOP_H_

#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/inference/device_wing.h"

namespace wisp {

inline constexpr size_t kBitsPerWord = 32;

inline void Mark(uint32_t* words, int32_t item) {
  words[static_cast<size_t>(item) / kBitsPerWord] |= uint32_t{1} << (static_cast<size_t>(item) % kBitsPerWord);
}
inline void Unmark(uint32_t* words, int32_t item) {
  words[static_cast<size_t>(item) / kBitsPerWord] &= ~(uint32_t{1} << (static_cast<size_t>(item) % kBitsPerWord));
}

inline bool IsMarked(const uint32_t* words, size_t item) {
  return (words[item / kBitsPerWord] >> (item % kBitsPerWord) & 1) != 0;
}

// Says if a list may hold all items or none of them, before some items are marked.
enum class Offered { kAll, kNone };

class DeviceTop {
 public:
  // The bytes that a DeviceTop takes.
  [[gnu::cold]] static DeviceBytes PlanBytes(const kernels::OpTable& ops, size_t num_items, size_t rows);

  // std::bad_alloc: the device has too little memory.
  [[gnu::cold]] DeviceTop(const kernels::Device& device, size_t num_items, size_t rows);

  DeviceBytes bytes() const {
    return {.on_device = PlanBytes(*device_.ops, num_items_, max_rows()).on_device,
            .on_host = excluded_.capacity() * sizeof(uint32_t) + results_.capacity() * sizeof(kernels::Scored)};
  }
  size_t max_rows() const { return results_.size() / (1 + kernels::kMostTopK); }

  float* scores() const { return arena_[slots_.scores]; }  // [rows, num_items], on the device

  // One bit for each item, words() words, on the host.
  uint32_t* excluded(size_t row) { return excluded_.data() + row * words(); }
  size_t words() const { return (num_items_ + kBitsPerWord - 1) / kBitsPerWord; }
  void ClearExcluded(size_t row, Offered offered);
  void SendExcluded(size_t rows);

  // Finds the `count` best items of each row; count <= kMostTopK. The results are invalid if the memory's wait returns
  // false.
  void Run(size_t rows, size_t count);
  std::span<const kernels::Scored> best(size_t row) const {
    return std::span(results_).subspan(rows_done_ + row * count_, summary(row).count);
  }
  bool all_finite(size_t row) const { return summary(row).not_finite == 0; }

 private:
  struct Slots {
    Slot<float> scores;
    Slot<uint32_t> excluded;
    Slot<kernels::Scored> results;
    Slot<uint64_t> scratch;
  };
  static ArenaPlan GetPlan(const kernels::OpTable& ops, size_t num_items, size_t rows, Slots& slots);
  kernels::TopKSummary summary(size_t row) const;

  kernels::Device device_;
  size_t num_items_, rows_done_ = 0, count_ = 0;
  Slots slots_;
  Arena arena_;
  std::vector<uint32_t> excluded_;        // [rows, words]
  std::vector<kernels::Scored> results_;  // as on the device: a summary of each row, then the best of each
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DEVICE_DEVICE_TOP_H_
