// What inference on a device shares: launches that go out together, and what is said of a device that has failed or has
// no room, and of results that are no numbers.
#ifndef WISP_RUNTIME_INFERENCE_ON_DEVICE_H_
#define WISP_RUNTIME_INFERENCE_ON_DEVICE_H_

#include <cstddef>
#include <string>

#include "kernels/device.h"
#include "runtime/core/status.h"

namespace wisp {

// While one lives, launches of this thread go out together (Memory::gather). The memory must outlive it.
class Gathering {
 public:
  explicit Gathering(const kernels::Memory& memory) : memory_(memory) { memory_.gather(kernels::Launches::kTogether); }
  ~Gathering() { memory_.gather(kernels::Launches::kEach); }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

 private:
  const kernels::Memory& memory_;
};

// Waits for what was asked for. kIo where some of it failed, now or before.
Status WaitForDevice(const kernels::Device& device);

// kIo: `what`, which was not made, takes so many bytes.
Status NoRoomOnDevice(const kernels::Device& device, const char* what, size_t bytes_there, size_t bytes_here);

// kInvalidData: of the model in the file of this name, `what` is no finite number.
Status NotFiniteOn(const kernels::Device& device, const std::string& name, const char* what);

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_ON_DEVICE_H_
