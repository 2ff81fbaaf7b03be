// A model's weights in a device's memory, as the file has them: floats or halves.
//
//   const DeviceWeights copy(file, device.memory);
//   const PackedWeights packed(graph, copy.source());
#ifndef WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_
#define WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_

#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/layers/weights.h"

namespace wisp {

class DeviceWeights {
 public:
  // Copies all of them. std::bad_alloc where there is no room.
  [[gnu::cold]] DeviceWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                              const kernels::Memory& memory);

  // Valid as long as this.
  ParameterSource source() const { return ParameterSource(tensors_); }

  // What one takes. Without tensors: of floats.
  [[gnu::cold]] static size_t PlanBytes(std::span<const ParameterSpec> parameters,
                                        std::span<const StoredTensor> tensors);

 private:
  Arena arena_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_DEVICE_WEIGHTS_H_
