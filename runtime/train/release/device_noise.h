// The noise of a sum in a device's memory. The host draws it, from the same streams and in the same pieces as in a step
// of its own, and the device adds it as integers.
//
// Whoever could read the noise, on the host or the device, would have the exact sum of the step. So Forget overwrites
// it at the step's end.
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

  // Draws the noise of coordinates [first, first + n): each once a step, by any thread. Coordinates not drawn have no
  // noise.
  void Draw(size_t first, size_t n, privacy::RandomStream& noise);
  // Copies the drawn noise of `size` coordinates to the device.
  void Send(size_t size);
  // Returns scale * (sum + noise), on the device; valid until the next call.
  const float* AddTo(const GridGradientSum& sum, float scale);
  // Overwrites the noise of as many coordinates as were sent.
  void Forget();

  size_t size_bytes() const {
    return drawn_.allocated_bytes() + noise_.allocated_bytes() + released_.allocated_bytes();
  }
  // The size_bytes that such an object will have; allocates nothing.
  static size_t PlanBytes(size_t size) {
    return 2 * AlignedArray<int64_t>::AllocatedBytes(size) + AlignedArray<float>::AllocatedBytes(size);
  }

 private:
  kernels::Device device_;
  uint64_t sigma_;
  AlignedArray<int64_t> drawn_;  // in the host's memory; 0 for coordinates not drawn
  AlignedArray<int64_t> noise_;  // a copy in the device's memory
  AlignedArray<float> released_;
  size_t sent_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RELEASE_DEVICE_NOISE_H_
