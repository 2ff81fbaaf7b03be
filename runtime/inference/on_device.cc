#include "runtime/inference/on_device.h"

namespace wisp {

Status WaitForDevice(const kernels::Device& device) {
  if (device.memory.wait()) return OkStatus();
  return IoError("the device ", device.ops->name, " failed: ", device.memory.failure(),
                 "; it cannot be used again in this process");
}

Status NoRoomOnDevice(const kernels::Device& device, const char* what, size_t bytes_there, size_t bytes_here) {
  return IoError("there is no room on the device ", device.ops->name, ", or on the host, for ", what, ", which takes ",
                 bytes_there, " bytes there and ", bytes_here, " here");
}

Status NotFiniteOn(const kernels::Device& device, const std::string& name, const char* what) {
  const std::string sentence = name + ": " + what + " is no finite number: the weights are damaged, or of no use";
  if (device.ops->largest_factor <= 0) return InvalidData(sentence);
  return InvalidData(sentence, ", or too large for ", device.ops->name, ", whose largest number is ",
                     device.ops->largest_factor);
}

}  // namespace wisp
