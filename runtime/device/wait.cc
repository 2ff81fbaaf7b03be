// The state of a device: its work, its failures and its memory.
#include "runtime/inference/device_wing.h"

namespace wisp {

const bool kHasDevice = true;

Status CheckDevice(const kernels::Device&) { return OkStatus(); }

Status WaitForDevice(const kernels::Device& device) {
  if (device.memory.wait()) return OkStatus();
  return IoError("the device ", device.ops->name, " failed: ", device.memory.failure(),
                 "; it cannot be used again in this process");
}

Status NoRoomOnDevice(const kernels::Device& device, const char* what, size_t bytes_there, size_t bytes_here) {
  return IoError("there is no room on the device ", device.ops->name, ", or on the host, for ", what, ", which takes ",
                 bytes_there, " bytes there and ", bytes_here, " here");
}

}  // namespace wisp
