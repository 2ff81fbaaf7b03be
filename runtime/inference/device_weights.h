// A model's weights for a device, as the file has them: floats or halves.
//
//   const DeviceWeights copy(file.parameters(), file.tensors(), device.memory);
//   const PackedWeights packed(graph, copy.source());
//
// Where a device shares the host's memory, and the driver lets it, tables and matrices of a mapped file are read where
// they lie. Copied are the others: small ones, which are read again and again, and which the device would not keep in
// its cache from there.
#ifndef WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_
#define WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_

#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/layers/weights.h"

namespace wisp {

class DeviceWeights {
 public:
  // `tensors` must outlive this where the memory is shared. std::bad_alloc where there is no room.
  [[gnu::cold]] DeviceWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                              const kernels::Memory& memory);

  // Valid as long as this.
  ParameterSource source() const { return ParameterSource(tensors_); }

  size_t allocated_bytes() const { return allocated_bytes_; }

  // What one takes where the driver shares what it could, and at most, where it shares nothing. Without tensors: of
  // floats, all of them copied.
  struct Bytes {
    size_t expected, at_most;
  };
  [[gnu::cold]] static Bytes PlanBytes(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                                       const kernels::Memory& memory);

 private:
  // Memory of the host that the device reads, until the end of this.
  class Shared {
   public:
    // Of nothing where `host` is empty.
    Shared(const kernels::Memory& memory, std::span<const std::byte> host) : memory_(memory), host_(host) {
      if (!host.empty()) there_ = static_cast<const std::byte*>(memory.share(host.data(), host.size()));
    }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() {
      if (there_ != nullptr) memory_.unshare(host_.data(), host_.size());
    }
    bool is_there() const { return there_ != nullptr; }
    // Of an address of the host, that of the device.
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
