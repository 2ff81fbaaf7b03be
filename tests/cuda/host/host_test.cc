// The host's side of kernels/cuda/gpu, the module's real code, over a stand-in for CUDA's runtime.
#include <gtest/gtest.h>

#include <thread>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/results.h"

extern "C" const wisp::kernels::KernelModule* wisp_kernels_module();

namespace wisp::kernels::cuda {

// This test records no programs and has no ops.
void FlushProgram() {}
void Gather(void*, Launches) { (void)BlocksAtOnce(nullptr, kWarp); }
bool CopyInWithProgram(void*, const void*, size_t) { return false; }
bool CopyOutWithProgram(void*, const void*, size_t) { return false; }
const OpTable& Ops(Arithmetic) {
  static const OpTable kTable = {};
  return kTable;
}

namespace {

__global__ void AddTo(int* to, int n) { *to += n; }
template <int kFactor>
__global__ void Multiply(int* to) {
  *to *= kFactor;
}

// Launches every kernel of this file.
bool LaunchAll(int* number) {
  Launch<AddTo>({.threads = kWarp}, number, 2);
  Launch<Multiply<3>>({.threads = kWarp}, number);
  return LaunchTogether<Multiply<5>>(4, kWarp, number);
}

const KernelModule& Open() {
  const KernelModule& module = *wisp_kernels_module();
  const char* why = module.open();
  EXPECT_EQ(why, nullptr) << why;
  return module;
}

// Calls everything in the module's tables, and what ops call. The thread's device is the caller's before each call.
void CallAll() {
  const int device = fake::g_device;
  const auto expect_left = [&] { EXPECT_EQ(std::exchange(fake::g_device, device), device); };
  const KernelModule& module = Open();
  expect_left();
  const MemoryTable& memory = module.memory();
  EXPECT_EQ(module.facts().total_bytes, size_t{1} << 30);
  expect_left();
  void* bytes = memory.allocate(nullptr, 100);
  expect_left();
  int number = 1;
  memory.copy_in(nullptr, bytes, &number, sizeof number);
  expect_left();
  EXPECT_TRUE(LaunchAll(static_cast<int*>(bytes)));
  expect_left();
  memory.copy_out(nullptr, &number, bytes, sizeof number);
  expect_left();
  EXPECT_EQ(number, 45);
  memory.gather(nullptr, Launches::kTogether);
  expect_left();
  if (memory.share != nullptr) {
    const void* there = memory.share(nullptr, &number, sizeof number);
    expect_left();
    EXPECT_EQ(there, &number);
    memory.unshare(nullptr, &number, sizeof number);
    expect_left();
  }
  EXPECT_NE(Results(8), nullptr);
  EXPECT_NE(Results(16), nullptr);
  expect_left();
  std::free(module.allocate_shared(16));
  expect_left();
  memory.release(nullptr, bytes, 100);
  expect_left();
  EXPECT_TRUE(memory.wait(nullptr)) << memory.failure(nullptr);
  expect_left();
  EXPECT_TRUE(fake::g_cuda.on_wrong_device.empty()) << fake::g_cuda.on_wrong_device.front();
}

int CountFailures(void (*test)()) {
  test();
  return ::testing::Test::HasFailure() ? 1 : 0;
}

// A process opens the GPU once, so each of these tests has one of its own.
#define EXPECT_PASSES(test) EXPECT_EXIT(std::_Exit(CountFailures(test)), ::testing::ExitedWithCode(0), "")

TEST(CudaHostDeathTest, TheCallersDeviceStaysCurrent) {
  EXPECT_PASSES([] {
    fake::g_device = 1;
    CallAll();
    EXPECT_EQ(fake::g_device, 1);
    // Later the app takes yet another device for the same thread, and then has a thread of its own.
    fake::g_device = 2;
    CallAll();
    std::thread([] {
      fake::g_device = 1;
      CallAll();
    }).join();
    EXPECT_TRUE(fake::g_cuda.on_wrong_device.empty()) << "a thread's end frees its memory on our device";
  });
}

TEST(CudaHostDeathTest, SharedMemory_callersDeviceStaysToo) {
  EXPECT_PASSES([] {
    fake::g_cuda.integrated = true;
    fake::g_device = 1;
    CallAll();
    EXPECT_TRUE(Open().facts().is_managed);
  });
}

TEST(CudaHostDeathTest, WhereOurDeviceIsCurrentNothingIsSwitched) {
  EXPECT_PASSES([] {
    CallAll();
    EXPECT_EQ(fake::g_cuda.num_switches, 0);
  });
}

TEST(CudaHostDeathTest, KernelsAreLoadedWhenTheDeviceIsOpened) {
  EXPECT_PASSES([] {
    const KernelModule& module = Open();
    fake::g_cuda.is_full = true;
    int number = 1;
    EXPECT_TRUE(LaunchAll(&number));
    EXPECT_EQ(number, 45);
    EXPECT_TRUE(module.memory().wait(nullptr)) << "a kernel was loaded at its first launch";
  });
}

TEST(CudaHostDeathTest, AKernelThatCannotBeLoaded_meansNoDevice) {
  EXPECT_PASSES([] {
    fake::g_cuda.is_full = true;
    const char* why = wisp_kernels_module()->open();
    ASSERT_NE(why, nullptr);
    EXPECT_NE(std::string(why).find("kernels cannot be loaded"), std::string::npos) << why;
  });
}

TEST(CudaHostDeathTest, ARefusedLaunchOfBlocksThatWaitIsNoFailure) {
  EXPECT_PASSES([] {
    const KernelModule& module = Open();
    int number = 1;
    for (const cudaError_t error : {cudaErrorCooperativeLaunchTooLarge, cudaErrorNotSupported}) {
      fake::g_cuda.refused["cudaLaunchCooperativeKernel"] = error;
      EXPECT_FALSE(LaunchTogether<Multiply<5>>(4, kWarp, &number));
      EXPECT_EQ(number, 1);
      EXPECT_TRUE(module.memory().wait(nullptr)) << module.memory().failure(nullptr);
    }
    EXPECT_TRUE(LaunchTogether<Multiply<5>>(1, kWarp, &number)) << "one block waits for no other";
    EXPECT_EQ(number, 5);
    // Any other failure may be of earlier work, so it counts.
    fake::g_cuda.refused["cudaLaunchCooperativeKernel"] = cudaErrorIllegalAddress;
    EXPECT_TRUE(LaunchTogether<Multiply<5>>(4, kWarp, &number));
    EXPECT_FALSE(module.memory().wait(nullptr));
    EXPECT_STRNE(module.memory().failure(nullptr), "");
  });
}

}  // namespace
}  // namespace wisp::kernels::cuda
