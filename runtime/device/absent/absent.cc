// A build without runtime/device: CheckDevice refuses, so nothing calls the rest.
#include "runtime/inference/session.h"

namespace wisp {

const bool kHasDevice = false;

Status CheckDevice(const kernels::Device& device) {
  return Unsupported("this build has no device but the processor (WISP_DEVICE is off), and ", device.ops->name,
                     " has memory of its own");
}

Status WaitForDevice(const kernels::Device& device) { return CheckDevice(device); }

Status NoRoomOnDevice(const kernels::Device& device, const char*, size_t, size_t) { return CheckDevice(device); }

DeviceWeightBytes PlanDeviceWeights(std::span<const ParameterSpec>, std::span<const StoredTensor>,
                                    const kernels::Memory&) {
  return {};
}

std::unique_ptr<DeviceWeights> MakeDeviceWeights(std::span<const ParameterSpec>, std::span<const StoredTensor>,
                                                 const kernels::Memory&) {
  return nullptr;
}

Result<bool> IsFasterForOne(Session&, Session&) { return true; }

DeviceBytes PlanDeviceScores(const kernels::OpTable&, size_t) { return {}; }

std::unique_ptr<DeviceScores> MakeDeviceScores(const kernels::Device&, size_t) { return nullptr; }

size_t DeviceBatchRows(const Architecture&, size_t wanted) { return wanted; }

InferenceMemory PlanDeviceBatch(const Architecture&, const kernels::Device&, size_t) { return {}; }

std::unique_ptr<DeviceBatch> MakeDeviceBatch(const Session&, size_t) { return nullptr; }

}  // namespace wisp
