// A device's memory under the emulator: copies and kernels reach it, the host does not.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/emulate/memory.h"

namespace wisp::kernels::cuda::memory_test {
namespace {

TEST(DeviceMemory, IsZeroedCopiedAndComputedWith) {
  const Device device(Ops(), Memory(DeviceMemory(), nullptr));
  const size_t before = AllocatedBytes();
  constexpr size_t kSize = 2000;
  auto* x = static_cast<float*>(device.memory.allocate(kSize * sizeof(float)));
  EXPECT_EQ(AllocatedBytes(), before + kSize * sizeof(float));
  std::vector<float> host(kSize, 1.0f);
  device.memory.copy_out(host.data(), x, kSize * sizeof(float));
  EXPECT_EQ(host, std::vector<float>(kSize, 0.0f));
  host.assign(kSize, 1.5f);
  device.memory.copy_in(x, host.data(), kSize * sizeof(float));
  device.ops->scale({.x = x, .y = x, .n = kSize, .a = 2.0f, .store = Store::kAdd});
  EXPECT_TRUE(device.memory.wait());
  device.memory.copy_out(host.data(), x, kSize * sizeof(float));
  EXPECT_EQ(host, std::vector<float>(kSize, 4.5f));
  device.memory.release(x, kSize * sizeof(float));
  EXPECT_EQ(AllocatedBytes(), before);
}

TEST(DeviceMemoryDeathTest, TheHostCannotTouchIt) {
  const Memory memory(DeviceMemory(), nullptr);
  auto* x = static_cast<float*>(memory.allocate(sizeof(float)));
  EXPECT_DEATH(x[0] = 1.0f, "");
  volatile float read = 0;
  EXPECT_DEATH(read = x[0], "");
  EXPECT_EQ(read, 0.0f);
  memory.release(x, sizeof(float));
}

TEST(DeviceMemoryDeathTest, KernelsCannotReachTheHosts) {
#if !__has_builtin(__builtin_clear_padding)
  GTEST_SKIP() << "this compiler cannot clear padding, so arguments are not checked";
#endif
  const Memory memory(DeviceMemory(), nullptr);
  auto* x = static_cast<float*>(memory.allocate(8 * sizeof(float)));
  std::vector<float> y(8);
  EXPECT_DEATH(Ops().scale({.x = x, .y = y.data(), .n = 8, .a = 2.0f, .store = Store::kAssign}),
               "address of the host's memory");
  EXPECT_DEATH(Ops().scale({.x = y.data(), .y = x, .n = 8, .a = 2.0f, .store = Store::kAssign}),
               "address of the host's memory");
  EXPECT_EQ(Ops().sum_squares(x, 8), 0.0) << "results lie in memory that both reach";
  memory.release(x, 8 * sizeof(float));
}

// After the last page of an allocation nothing is accessible, not even to kernels.
TEST(DeviceMemoryDeathTest, KernelsCannotLeaveIt) {
  const Memory memory(DeviceMemory(), nullptr);
  constexpr size_t kPageFloats = 1024;
  auto* x = static_cast<float*>(memory.allocate(kPageFloats * sizeof(float)));
  Ops().scale({.x = x, .y = x, .n = kPageFloats, .a = 2.0f, .store = Store::kAssign});
  EXPECT_DEATH(Ops().scale({.x = x, .y = x, .n = kPageFloats + 1, .a = 2.0f, .store = Store::kAssign}), "");
  memory.release(x, kPageFloats * sizeof(float));
}

}  // namespace
}  // namespace wisp::kernels::cuda::memory_test
