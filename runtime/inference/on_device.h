// Shared code for inference on a device: launches that are submitted together, and errors for a device that failed, for
// too little memory, and for results that are not finite.
#ifndef WISP_RUNTIME_INFERENCE_ON_DEVICE_H_
#define WISP_RUNTIME_INFERENCE_ON_DEVICE_H_

#include <cstddef>
#include <string>

#include "kernels/device.h"
#include "runtime/core/status.h"

namespace wisp {

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

// Waits for all submitted work. kIo: some of it failed, now or earlier.
Status WaitForDevice(const kernels::Device& device);

// kIo: `what`, which could not be made, needs this many bytes on the device and on the host.
Status NoRoomOnDevice(const kernels::Device& device, const char* what, size_t bytes_there, size_t bytes_here);

// kInvalidData: `what` is not finite, for the model in the file of this name.
Status NotFiniteOn(const kernels::Device& device, const std::string& name, const char* what);

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_ON_DEVICE_H_
