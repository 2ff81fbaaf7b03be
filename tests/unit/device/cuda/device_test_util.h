// Helpers for tests of inference on a device: the device, the same device without programs, and memory that fails.
#ifndef WISP_TESTS_UNIT_DEVICE_CUDA_DEVICE_TEST_UTIL_H_
#define WISP_TESTS_UNIT_DEVICE_CUDA_DEVICE_TEST_UTIL_H_

#include <cstring>
#include <new>

#include "kernels/cuda/cuda.h"

namespace wisp::test {

inline const kernels::Device& TheDevice() {
  static const kernels::Device device(kernels::cuda::Ops(), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr));
  return device;
}

// This is device() with one launch after the other.
inline const kernels::Device& OneByOne() {
  static const kernels::MemoryTable table = [] {
    kernels::MemoryTable t = kernels::cuda::DeviceMemory();
    t.gather = nullptr;
    return t;
  }();
  static const kernels::Device device(kernels::cuda::Ops(), kernels::Memory(table, nullptr));
  return device;
}

// The device's memory in which a chosen copy, wait or allocation fails, and all later ones too.
class FailingMemory {
 public:
  explicit FailingMemory(int calls, bool of_allocations = false) : left_(calls), of_allocations_(of_allocations) {
    table_ = kernels::cuda::DeviceMemory();
    table_.allocate = [](void* self, size_t bytes) {
      if (Of(self).of_allocations_ && !Of(self).Works()) throw std::bad_alloc();
      return kernels::cuda::DeviceMemory().allocate(nullptr, bytes);
    };
    table_.copy_in = [](void* self, void* to, const void* from, size_t bytes) {
      if (Of(self).Copies()) kernels::cuda::DeviceMemory().copy_in(nullptr, to, from, bytes);
    };
    table_.copy_out = [](void* self, void* to, const void* from, size_t bytes) {
      std::memset(to, 0, bytes);
      if (Of(self).Copies()) kernels::cuda::DeviceMemory().copy_out(nullptr, to, from, bytes);
    };
    table_.wait = [](void* self) { return Of(self).Copies(); };
    table_.failure = [](void* self) { return Of(self).left_ < 0 ? "it fell off the bus" : ""; };
  }
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  kernels::Device device() { return {kernels::cuda::Ops(), kernels::Memory(table_, this)}; }
  bool failed() const { return left_ < 0; }

 private:
  static FailingMemory& Of(void* self) { return *static_cast<FailingMemory*>(self); }
  bool Works() { return left_ >= 0 && --left_ >= 0; }
  bool Copies() { return of_allocations_ || Works(); }

  int left_;
  bool of_allocations_;
  kernels::MemoryTable table_;
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_DEVICE_CUDA_DEVICE_TEST_UTIL_H_
