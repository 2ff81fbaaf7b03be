// Inference on a device that has memory of its own, as the core calls it. runtime/device has all of it. In a build
// without that folder (WISP_DEVICE=OFF) CheckDevice refuses every device but the processor.
//
//   WISP_RETURN_IF_ERROR(CheckDevice(device));
//   const std::unique_ptr<DeviceWeights> weights = MakeDeviceWeights(graph.parameters(), tensors, device.memory);
//   const PackedWeights packed(graph, weights->source());
//
// Nothing else here is called for the processor. Makers throw std::bad_alloc if the device has too little memory.
#ifndef WISP_RUNTIME_INFERENCE_DEVICE_WING_H_
#define WISP_RUNTIME_INFERENCE_DEVICE_WING_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "runtime/core/function_ref.h"
#include "runtime/core/served_list.h"
#include "runtime/core/status.h"
#include "runtime/layers/weights.h"

namespace wisp {

class Session;
struct InferenceMemory;

// True if this build has runtime/device.
extern const bool kHasDevice;

// kUnsupported: this build has no code for the memory of this device.
Status CheckDevice(const kernels::Device& device);

// Waits for all submitted work. kIo: some of it failed, now or earlier.
Status WaitForDevice(const kernels::Device& device);

// Makes a kIo error: `what` could not be made, because it needs this many bytes on the device and on the host.
Status NoRoomOnDevice(const kernels::Device& device, const char* what, size_t bytes_there, size_t bytes_here);

// While it lives, launches of this thread are submitted together (Memory::gather). The memory must outlive it.
class Gathering {
 public:
  explicit Gathering(const kernels::Memory& memory) : memory_(memory) { memory_.gather(kernels::Launches::kTogether); }
  ~Gathering() { memory_.gather(kernels::Launches::kEach); }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

 private:
  const kernels::Memory& memory_;
};

// A model's weights in the memory of a device.
class DeviceWeights {
 public:
  virtual ~DeviceWeights() = default;
  // Valid as long as this object.
  virtual ParameterSource source() const = 0;
  virtual size_t allocated_bytes() const = 0;
};
// The bytes of weights: `expected` if the driver shares all that it can, `at_most` if it shares nothing.
struct DeviceWeightBytes {
  size_t expected, at_most;
};
// Without tensors, all are taken to be floats and copied.
DeviceWeightBytes PlanDeviceWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                                    const kernels::Memory& memory);
// If memory is shared, `tensors` must outlive the result.
std::unique_ptr<DeviceWeights> MakeDeviceWeights(std::span<const ParameterSpec> parameters,
                                                 std::span<const StoredTensor> tensors, const kernels::Memory& memory);

// True if `on_device` recommends sooner than `on_host` after an event that is appended to a history: by the medians of
// a few made-up events, which take some milliseconds. kIo: the device has failed.
Result<bool> IsFasterForOne(Session& on_device, Session& on_host);

struct DeviceBytes {
  size_t on_device = 0, on_host = 0;
};

// The scores of one history in the memory of a device, and the choice of the best items there.
class DeviceScores {
 public:
  // Submits ops that write the scores of all items.
  using Score = FunctionRef<void(float* scores)>;
  // The best items, and whether all scores were finite.
  struct Best {
    std::vector<Recommendation> items;
    bool all_finite;
  };
  virtual ~DeviceScores() = default;
  // Ops write [num_items] scores there.
  virtual float* data() = 0;
  // The `count` best items, at most kMostTopK. kIo: the device has failed.
  virtual Result<Best> Recommend(std::span<const int32_t> history, const RecommendOptions& options,
                                 const ModelLists& lists, size_t count, Score score) = 0;
  virtual DeviceBytes bytes() const = 0;
};
DeviceBytes PlanDeviceScores(const kernels::OpTable& ops, size_t num_items);
std::unique_ptr<DeviceScores> MakeDeviceScores(const kernels::Device& device, size_t num_items);

// The best items after each of several histories that pass together on a device.
class DeviceBatch {
 public:
  virtual ~DeviceBatch() = default;
  // BatchRecommender::Recommend for a request that was checked. kIo: the device has failed, and all that was written is
  // invalid.
  virtual Status Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                           Recommendation* best, size_t* found) = 0;
};
// Histories that pass together: `wanted`, or fewer if their scores would take too much memory.
size_t DeviceBatchRows(const Architecture& architecture, size_t wanted);
// The memory of a DeviceBatch for `rows` histories.
InferenceMemory PlanDeviceBatch(const Architecture& architecture, const kernels::Device& device, size_t rows);
// The session must outlive the result.
std::unique_ptr<DeviceBatch> MakeDeviceBatch(const Session& session, size_t rows);

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_DEVICE_WING_H_
