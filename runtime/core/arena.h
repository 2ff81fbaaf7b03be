// Memory that is planned once and used many times. A plan hands out offsets; an arena holds the bytes.
//
//   ArenaPlan plan;
//   Slot<float> x = plan.Reserve<float>(rows * d);
//   Arena arena(plan);              // the only allocation
//   float* p = arena[x];            // 64-byte aligned, valid as long as the arena
//
// Not a general allocator: nothing is freed and nothing grows. All bytes start at zero.
#ifndef WISP_RUNTIME_CORE_ARENA_H_
#define WISP_RUNTIME_CORE_ARENA_H_

#include <cstddef>
#include <memory>

#include "kernels/device.h"

namespace wisp {

template <class T>
struct Slot {
  size_t offset_bytes = 0;
};

class ArenaPlan {
 public:
  static constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

  template <class T>
  Slot<T> Reserve(size_t count) {
    Slot<T> slot{size_bytes_};
    size_bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return slot;
  }
  size_t size_bytes() const { return size_bytes_; }
  // Bytes that an Arena of this plan allocates. It allocates one cache line more than planned, because some kernels
  // read (but never write) a few bytes past their input.
  size_t allocated_bytes() const { return size_bytes_ == 0 ? 0 : size_bytes_ + kAlignment; }

 private:
  size_t size_bytes_ = 0;
};

struct ReleaseMemory {
  kernels::Memory memory;
  size_t bytes = 0;
  void operator()(std::byte* p) const;
};

// How much of an arena will be touched. kWhole: all of it; an arena of megabytes uses large pages. kInPart: a short
// text touches little of the space reserved for the longest, and untouched pages take no memory.
enum class ArenaUse { kWhole, kInPart };

// An arena in the memory of a device. The device must outlive it.
class Arena {
 public:
  Arena() = default;
  explicit Arena(const ArenaPlan& plan, const kernels::Memory& memory = {}, ArenaUse use = ArenaUse::kWhole);

  template <class T>
  T* operator[](Slot<T> slot) const {
    return reinterpret_cast<T*>(bytes_.get() + slot.offset_bytes);
  }
  size_t size_bytes() const { return size_bytes_; }

 private:
  std::unique_ptr<std::byte, ReleaseMemory> bytes_;
  size_t size_bytes_ = 0;
};

// One aligned, zeroed array of fixed size, for weights, moments and sums.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(size_t size, const kernels::Memory& memory = {}) : arena_(GetPlan(size), memory), size_(size) {}
  // The number of bytes that an array of `size` allocates. The member below returns that of this array.
  static size_t AllocatedBytes(size_t size) { return GetPlan(size).allocated_bytes(); }
  size_t allocated_bytes() const { return AllocatedBytes(size_); }

  T* data() const { return arena_[Slot<T>{0}]; }
  size_t size() const { return size_; }
  T& operator[](size_t i) const { return data()[i]; }

 private:
  static ArenaPlan GetPlan(size_t size) {
    ArenaPlan plan;
    plan.Reserve<T>(size);
    return plan;
  }
  Arena arena_;
  size_t size_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_ARENA_H_
