// Opens the wisp_device of the C interface. Not part of it.
#ifndef WISP_PORTS_C_DEVICE_C_H_
#define WISP_PORTS_C_DEVICE_C_H_

#include "ports/c/status_c.h"
#include "runtime/core/devices.h"

namespace wisp::ports {

inline Result<DeviceOptions> MakeDeviceOptions(const wisp_device& given, DeviceUse use) {
  WISP_ASSIGN_OR_RETURN(const wisp_device device, MakeOptions(&given, "wisp_device"));
  if (device.name == nullptr) return InvalidArgument("wisp_device: name must not be NULL");
  return DeviceOptions{.name = device.name,
                       .module = device.module == nullptr ? "" : device.module,
                       .arithmetic = device.arithmetic == nullptr ? "float32" : device.arithmetic,
                       .use = use,
                       .max_bytes = device.max_bytes};
}

// `given` may be null, which selects the processor.
inline Result<OpenedDevice> DeviceOrProcessor(const wisp_device* given, DeviceUse use) {
  if (given == nullptr) return OpenedDevice();
  WISP_ASSIGN_OR_RETURN(const DeviceOptions options, MakeDeviceOptions(*given, use));
  return OpenDeviceOrProcessor(options);
}

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_DEVICE_C_H_
