// A model's weights for a device, in the types of the file: float32 or float16.
//
//   const DeviceWeights copy(file.parameters(), file.tensors(), device.memory);
//   const PackedWeights packed(graph, copy.source());
//
// If a device shares the host's memory and the driver allows it, tables and matrices of a mapped file are read in
// place. Small tensors are copied: they are read often, and the device would not cache them from there.
#ifndef WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_
#define WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_

#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/layers/weights.h"

namespace wisp {

class DeviceWeights {
 public:
  // If memory is shared, `tensors` must outlive this object. std::bad_alloc: the device has too little memory.
  [[gnu::cold]] DeviceWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                              const kernels::Memory& memory);

  // Valid as long as this object.
  ParameterSource source() const { return ParameterSource(tensors_); }

  size_t allocated_bytes() const { return allocated_bytes_; }

  // The bytes it takes: `expected` if the driver shares all that it can, `at_most` if it shares nothing. Without
  // tensors, all are taken to be floats and copied.
  struct Bytes {
    size_t expected, at_most;
  };
  [[gnu::cold]] static Bytes PlanBytes(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                                       const kernels::Memory& memory);

 private:
  // Host memory that the device may read, for the lifetime of this object.
  class Shared {
   public:
    // Shares nothing if `host` is empty.
    Shared(const kernels::Memory& memory, std::span<const std::byte> host) : memory_(memory), host_(host) {
      if (!host.empty()) there_ = static_cast<const std::byte*>(memory.share(host.data(), host.size()));
    }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() {
      if (there_ != nullptr) memory_.unshare(host_.data(), host_.size());
    }
    bool is_there() const { return there_ != nullptr; }
    // The device's address for an address of the host.
    const std::byte* At(const std::byte* host) const { return there_ + (host - host_.data()); }

   private:
    kernels::Memory memory_;
    std::span<const std::byte> host_;
    const std::byte* there_ = nullptr;
  };

  Shared shared_;
  size_t allocated_bytes_;
  Arena arena_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_
