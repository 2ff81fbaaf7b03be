// Opens devices by name, for the options of programs and apps.
//
//   WISP_ASSIGN_OR_RETURN(const OpenedDevice gpu, OpenDevice({.name = "cuda"}));
//   training.device = gpu.device;
#ifndef WISP_RUNTIME_CORE_DEVICES_H_
#define WISP_RUNTIME_CORE_DEVICES_H_

#include <cstdint>
#include <string>

#include "kernels/device.h"
#include "runtime/core/status.h"

namespace wisp {

enum class DeviceUse { kInference, kTraining };

struct DeviceOptions {
  std::string name = "cpu";  // "cpu", or the name of a kernel module
  std::string module = {};   // the module's file; empty: the search order of kernels/module/module.h
  // The number type that matrix products multiply: float32, tf32, float16, bfloat16 or int8 (docs/cuda.md). Training
  // allows the first two only. The processor allows only float32 here.
  std::string arithmetic = "float32";
  DeviceUse use = DeviceUse::kInference;
  // Limit on the device memory that this process may use from now on. 0 keeps the current limit, which is at first all
  // of it.
  uint64_t max_bytes = 0;
};

struct OpenedDevice {
  kernels::Device device = kernels::BestOps();
  kernels::Arithmetic arithmetic = kernels::Arithmetic::kFloat32;
  std::string description = "cpu";  // for people
  std::string missing = {};         // why the processor replaces the requested device; empty if it does not

  bool is_processor() const { return device.memory.is_host(); }
};

// kInvalidArgument: the arithmetic is unknown, not allowed for this use, or was asked of the processor; or the module
// is not a valid one. kUnsupported: this build, machine or driver has no such device; the message says why. The device
// stays open until the process ends.
Result<OpenedDevice> OpenDevice(const DeviceOptions& options);
// Falls back to the processor where OpenDevice returns kUnsupported. Other errors are returned.
Result<OpenedDevice> OpenDeviceOrProcessor(const DeviceOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_DEVICES_H_
