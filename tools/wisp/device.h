// --device of a command.
#ifndef WISP_TOOLS_WISP_DEVICE_H_
#define WISP_TOOLS_WISP_DEVICE_H_

#include "runtime/core/devices.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

Result<OpenedDevice> OpenDevice(const DeviceArguments& arguments);

// For a run that goes on without it: where there is none, stderr says why, and what it is given is the processor.
OpenedDevice DeviceOrProcessor(const DeviceArguments& arguments);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEVICE_H_
