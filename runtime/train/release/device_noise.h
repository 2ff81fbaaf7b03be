// The noise of a sum in a device's memory: drawn by the host, from the streams and in the pieces of a step of its own,
// added as integers on the device.
//
// Whoever read the noise, here or there, would have the exact sum of the step: Forget wipes it at the step's end.
#ifndef WISP_RUNTIME_TRAIN_RELEASE_DEVICE_NOISE_H_
#define WISP_RUNTIME_TRAIN_RELEASE_DEVICE_NOISE_H_

#include <span>

#include "kernels/device.h"
#include "runtime/core/arena.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

class DeviceNoise {
 public:
  // For sums of up to `size` coordinates. The device must outlive this object.
  DeviceNoise(const kernels::Device& device, size_t size, uint64_t sigma);

  // Of coordinates [first, first + n): each once a step, by any thread. Others have none.
  void Draw(size_t first, size_t n, privacy::RandomStream& noise);
  // All that was drawn goes to the device; `size` coordinates.
  void Send(size_t size);
  // scale * (sum + noise), on the device; valid until the next call.
  const float* AddTo(const GridGradientSum& sum, float scale);
  // Of as many coordinates as were sent.
  void Forget();

  size_t size_bytes() const {
    return drawn_.allocated_bytes() + noise_.allocated_bytes() + released_.allocated_bytes();
  }
  // What size_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(size_t size) {
    return 2 * AlignedArray<int64_t>::AllocatedBytes(size) + AlignedArray<float>::AllocatedBytes(size);
  }

 private:
  kernels::Device device_;
  uint64_t sigma_;
  AlignedArray<int64_t> drawn_;  // in the host's memory; 0 where nothing is drawn
  AlignedArray<int64_t> noise_;  // the same in the device's
  AlignedArray<float> released_;
  size_t sent_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RELEASE_DEVICE_NOISE_H_
