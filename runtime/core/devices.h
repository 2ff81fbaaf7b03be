// Devices by name, as options of programs and apps have them.
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
  std::string name = "cpu";  // or what a module of kernels is called
  std::string module = {};   // its file; empty: where kernels/module/module.h says
  // What its matrix products multiply: float32, tf32, float16, bfloat16 or int8 (docs/cuda.md). Those but the first two
  // are for inference. The processor takes float32 alone here.
  std::string arithmetic = "float32";
  DeviceUse use = DeviceUse::kInference;
  // Of its memory that this process may take, from now on; 0: as before, at first all there is.
  uint64_t max_bytes = 0;
};

struct OpenedDevice {
  kernels::Device device = kernels::BestOps();
  std::string description = "cpu";  // for people
  std::string missing = {};         // why the processor stands in for what was asked for; empty where it does not

  bool is_processor() const { return device.memory.is_host(); }
};

// kInvalidArgument where the arithmetic is unknown, not for this use, or asked of the processor, and where the module
// is not what it should be. kUnsupported, with the reason, where this build, this machine or its driver has no such
// device. The device stays open until the process ends.
Result<OpenedDevice> OpenDevice(const DeviceOptions& options);
// The same; the processor where there is no such device. Other errors stay.
Result<OpenedDevice> OpenDeviceOrProcessor(const DeviceOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_DEVICES_H_
