// A device's memory under the emulator: copies and kernels reach it, the host does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/emulate/memory.h"
#include "kernels/cuda/results.h"

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

// The parts of a gradient over many rows lie in memory that outlives the op.
TEST(DeviceMemory, NothingOfAGradientStays) {
  constexpr size_t kRows = 1000, kWidth = 8;
  const Device device(Ops(), Memory(DeviceMemory(), nullptr));
  const auto floats = [&](size_t count) { return static_cast<float*>(device.memory.allocate(count * sizeof(float))); };
  float *x = floats(kRows * kWidth), *dw = floats(kWidth * kWidth);
  const std::vector<float> ones(kRows * kWidth, 1.0f);
  device.memory.copy_in(x, ones.data(), ones.size() * sizeof(float));
  device.ops->linear_backward_weight({.dy_RN = x,
                                      .lddy = kWidth,
                                      .x_RK = x,
                                      .ldx = kWidth,
                                      .dw_NK = dw,
                                      .lddw = kWidth,
                                      .rows = kRows,
                                      .n = kWidth,
                                      .k = kWidth,
                                      .scale = 1.0f,
                                      .store = Store::kAssign});
  std::vector<float> sums(kWidth * kWidth);
  device.memory.copy_out(sums.data(), dw, sums.size() * sizeof(float));
  EXPECT_EQ(sums, std::vector<float>(kWidth * kWidth, kRows));
  const float* scratch = emulate::ScratchForKernels();
  EXPECT_EQ(std::count(scratch, scratch + kScratchFloats, 0.0f), static_cast<std::ptrdiff_t>(kScratchFloats));
  device.memory.release(x, kRows * kWidth * sizeof(float));
  device.memory.release(dw, kWidth * kWidth * sizeof(float));
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
