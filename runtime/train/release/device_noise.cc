#include "runtime/train/release/device_noise.h"

#include <algorithm>

#include "runtime/privacy/noise/discrete_gaussian.h"

namespace wisp {

DeviceNoise::DeviceNoise(const kernels::Device& device, size_t size, uint64_t sigma)
    : device_(device), sigma_(sigma), drawn_(size), noise_(size, device.memory), released_(size, device.memory) {}

void DeviceNoise::Draw(size_t first, size_t n, privacy::RandomStream& noise) {
  int64_t* drawn = drawn_.data() + first;
  std::fill_n(drawn, n, 0);
  privacy::AddDiscreteGaussian(noise, sigma_, {drawn, n});
}

void DeviceNoise::Send(size_t size) {
  sent_ = size;
  device_.memory.copy_in(noise_.data(), drawn_.data(), size * sizeof(int64_t));
}

const float* DeviceNoise::AddTo(const GridGradientSum& sum, float scale) {
  device_.ops->noised_sum(
      {.sum = sum.sum().data(), .noise = noise_.data(), .y = released_.data(), .n = sum.sum().size(), .scale = scale});
  return released_.data();
}

void DeviceNoise::Forget() {
  std::fill_n(drawn_.data(), sent_, 0);
  device_.ops->clear({.y = noise_.data(), .bytes = sent_ * sizeof(int64_t)});
}

}  // namespace wisp
