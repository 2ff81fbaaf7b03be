// The kind of memory that follows from a GPU's attributes, and how the host reaches memory that both sides share.
#include "kernels/cuda/memory_kinds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/emulate/memory.h"

namespace wisp::kernels::cuda::memory_kinds_test {
namespace {

// The three attributes of actual boards.
constexpr MemoryFacts kHopper = {.integrated = false, .managed = true, .concurrent = true};
constexpr MemoryFacts kOrin = {.integrated = true, .managed = true, .concurrent = false};
constexpr MemoryFacts kThor = {.integrated = true, .managed = true, .concurrent = true};
constexpr MemoryFacts kNotManaged = {.integrated = true, .managed = false, .concurrent = false};

TEST(MemoryKinds, ManagedIsOfIntegratedGpusAlone) {
  for (const bool managed : {false, true}) {
    for (const bool concurrent : {false, true}) {
      const MemoryFacts own = {.integrated = false, .managed = managed, .concurrent = concurrent};
      EXPECT_EQ(ChooseMemory(own, nullptr).kind, MemoryKind::kDevice);
      EXPECT_NE(ChooseMemory(own, "managed").why, nullptr) << "nor where it is asked for";
    }
  }
  EXPECT_EQ(ChooseMemory(kHopper, nullptr).why, nullptr);
  EXPECT_EQ(ChooseMemory(kOrin, nullptr).kind, MemoryKind::kManaged);
  EXPECT_EQ(ChooseMemory(kThor, nullptr).kind, MemoryKind::kManaged);
  EXPECT_EQ(ChooseMemory(kNotManaged, nullptr).kind, MemoryKind::kDevice);
}

TEST(MemoryKinds, MemoryBelongsToTheStreamWhereTheHostMustStayAway) {
  EXPECT_TRUE(ChooseMemory(kOrin, nullptr).of_stream);
  EXPECT_FALSE(ChooseMemory(kThor, nullptr).of_stream);
  EXPECT_FALSE(ChooseMemory(kHopper, nullptr).of_stream);
}

TEST(MemoryKinds, TheOtherKindCanBeAskedFor) {
  for (const MemoryFacts& facts : {kOrin, kThor}) {
    EXPECT_EQ(ChooseMemory(facts, "device").kind, MemoryKind::kDevice);
    EXPECT_EQ(ChooseMemory(facts, "managed").kind, MemoryKind::kManaged);
    EXPECT_EQ(ChooseMemory(facts, "").kind, MemoryKind::kManaged);
  }
  EXPECT_EQ(ChooseMemory(kHopper, "device").why, nullptr);
  EXPECT_NE(ChooseMemory(kNotManaged, "managed").why, nullptr);
  EXPECT_NE(std::string(ChooseMemory(kOrin, "pinned").why).find("allowed are device and managed"), std::string::npos);
}

class IntegratedMemory : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv(kMemoryVariable);
    ASSERT_EQ(emulate::PlayIntegrated(true), nullptr);
    memory_ = Memory(DeviceMemory(), nullptr);
    x_ = static_cast<float*>(memory_.allocate(kBytes));
  }
  void TearDown() override {
    memory_.release(x_, kBytes);
    ASSERT_EQ(emulate::PlayIntegrated(false), nullptr);
  }
  void Double() { Ops().scale({.x = x_, .y = x_, .n = kSize, .a = 2.0f, .store = Store::kAssign}); }

  static constexpr size_t kSize = 2000, kBytes = kSize * sizeof(float);
  Memory memory_;
  float* x_ = nullptr;
};

TEST_F(IntegratedMemory, CopiesWaitForTheKernelsBeforeThem) {
  std::vector<float> host(kSize, 1.5f);
  memory_.copy_in(x_, host.data(), kBytes);
  Double();
  memory_.copy_out(host.data(), x_, kBytes);
  EXPECT_EQ(host, std::vector<float>(kSize, 3.0f));
  Double();
  host.assign(kSize, 0.25f);
  memory_.copy_in(x_, host.data(), kBytes);
  EXPECT_TRUE(memory_.wait());
  EXPECT_EQ(x_[kSize - 1], 0.25f) << "the host reaches it when nothing runs";
}

using IntegratedMemoryDeathTest = IntegratedMemory;

TEST_F(IntegratedMemoryDeathTest, TheHostCannotTouchItWhileAKernelMayRun) {
  EXPECT_TRUE(memory_.wait());
  x_[0] = 1.0f;
  Double();
  EXPECT_DEATH(x_[0] = 1.0f, "");
}

// Returns the system's flags of the pages that hold an address.
std::string GetFlags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool holds = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin, end;
    char dash;
    if (std::istringstream range(line); range >> std::hex >> begin >> dash >> end && dash == '-')
      holds = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    if (holds && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return {};
}

TEST_F(IntegratedMemory, NoDumpHasIt) {
  const std::string flags = GetFlags(x_);
  if (flags.empty()) GTEST_SKIP() << "this system does not say what a dump has";
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  static int elsewhere;
  EXPECT_EQ(GetFlags(&elsewhere).find(" dd "), std::string::npos) << "or the test shows nothing";
}

}  // namespace
}  // namespace wisp::kernels::cuda::memory_kinds_test
