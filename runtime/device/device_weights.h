// A model's weights for a device, in the types of the file: float32 or float16.
//
//   const CopiedWeights copy(file.parameters(), file.tensors(), device.memory);
//   const PackedWeights packed(graph, copy.source());
//
// If a device shares the host's memory and the driver allows it, tables and matrices of a mapped file are read in
// place. Small tensors are copied: they are read often, and the device would not cache them from there.
#ifndef WISP_RUNTIME_DEVICE_DEVICE_WEIGHTS_H_
#define WISP_RUNTIME_DEVICE_DEVICE_WEIGHTS_H_

#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/inference/device_wing.h"

namespace wisp {

class CopiedWeights final : public DeviceWeights {
 public:
  [[gnu::cold]] CopiedWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                              const kernels::Memory& memory);
  ParameterSource source() const override { return ParameterSource(tensors_); }
  size_t allocated_bytes() const override { return allocated_bytes_; }

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

#endif  // WISP_RUNTIME_DEVICE_DEVICE_WEIGHTS_H_
