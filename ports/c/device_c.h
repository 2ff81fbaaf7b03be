// wisp_device of the C interface. Not part of it.
#ifndef WISP_PORTS_C_DEVICE_C_H_
#define WISP_PORTS_C_DEVICE_C_H_

#include "ports/c/status_c.h"
#include "runtime/core/devices.h"

namespace wisp::ports {

inline Result<OpenedDevice> OpenDevice(const wisp_device* given) {
  if (given == nullptr) return OpenedDevice();
  WISP_ASSIGN_OR_RETURN(const wisp_device device, OptionsOf(given, "wisp_device"));
  if (device.name == nullptr) return InvalidArgument("wisp_device: name must not be NULL");
  return wisp::OpenDevice({.name = device.name,
                           .module = device.module == nullptr ? "" : device.module,
                           .arithmetic = device.arithmetic == nullptr ? "float32" : device.arithmetic,
                           .max_bytes = device.max_bytes});
}

// The processor where there is no such device; other errors stay.
inline Result<OpenedDevice> DeviceOrProcessor(const wisp_device* given) {
  Result<OpenedDevice> opened = OpenDevice(given);
  if (!opened.ok() && opened.status().code() == StatusCode::kUnsupported) return OpenedDevice();
  return opened;
}

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_DEVICE_C_H_
