// The option --device of a command.
#ifndef WISP_TOOLS_WISP_DEVICE_H_
#define WISP_TOOLS_WISP_DEVICE_H_

#include "runtime/core/devices.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

Result<OpenedDevice> OpenDevice(const DeviceArguments& arguments, DeviceUse use = DeviceUse::kInference);

// Opens the device for a run that can do without one. stderr says which device it has, or why it has none; in that case
// the processor is used.
Result<OpenedDevice> DeviceOrProcessor(const DeviceArguments& arguments, DeviceUse use);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEVICE_H_
