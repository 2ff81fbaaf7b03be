// A build without runtime/device refuses a device that has memory of its own, and says why. Each build tests what it
// leaves out (tools/dev core leaves out all).
#include <gtest/gtest.h>

#include "runtime/inference/batch_recommender.h"
#include "runtime/inference/device_wing.h"
#include "runtime/inference/session.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::device_left_out_test {
namespace {

TEST(DeviceLeftOut, MemoryOfItsOwn_isRefused) {
  // The host's memory under another table: everything takes it for a device's.
  const kernels::MemoryTable table = *kernels::Memory().table;
  const kernels::Device device(kernels::BestOps(), kernels::Memory(table, nullptr));
  ASSERT_FALSE(device.memory.is_host());
  ASSERT_EQ(CheckDevice(device).ok(), kHasDevice);
  if (kHasDevice) GTEST_SKIP() << "this build leaves out no device";
  const test::SmallModel model;
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "m.wisp", model.contents()).ok());
  const ModelFile file = *ModelFile::Open(folder / "m.wisp");
  for (const Status& status : {Session::PlanMemory(file, {.device = device}).status(),
                               BatchRecommender::PlanMemory(model.architecture, BatchOptions{}, device).status()}) {
    ASSERT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
    EXPECT_NE(status.message().find("this build has no device but the processor (WISP_DEVICE is off)"),
              std::string::npos)
        << status.message();
  }
  EXPECT_EQ(Session::Open(folder / "m.wisp", {.device = device}).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace wisp::device_left_out_test
