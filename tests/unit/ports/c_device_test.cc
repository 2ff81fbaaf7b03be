// A model on a device through the C interface: one option makes the difference. Without a device the processor
// recommends, and the result says so. WISP_CUDA_MODULE names the emulator's device.
#include <cmath>
#include <cstdlib>

#include "tests/unit/ports/c_test_util.h"

namespace wisp::c_device_test {
namespace {

class CDevice : public ::testing::Test {
 protected:
  CDevice() {
    test::WriteTiny(path_);
    options_.device = &device_;
    options_.one_history_on_device = 1;
    device_.name = "cuda";
    device_.module = std::getenv("WISP_CUDA_MODULE");
  }
  void SetUp() override {
    if (device_.module == nullptr) GTEST_SKIP() << "WISP_CUDA_MODULE names no module";
  }
  ~CDevice() override { wisp_model_close(model_); }

  wisp_code Open() {
    wisp_model_close(model_);
    model_ = nullptr;
    return wisp_model_open_with(path_.c_str(), &options_, &model_, &error_);
  }
  std::vector<wisp_recommendation> Top() {
    const int32_t history[] = {1, 2, 3};
    size_t count = 5;
    std::vector<wisp_recommendation> top(count);
    EXPECT_EQ(wisp_recommend(model_, history, 3, nullptr, top.data(), &count, &error_), WISP_OK) << error_.message;
    top.resize(count);
    return top;
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
  wisp_model* model_ = nullptr;
  wisp_device device_ = WISP_INIT(wisp_device);
  wisp_open_options options_ = WISP_INIT(wisp_open_options);
  wisp_error error_ = {};
};

TEST_F(CDevice, RecommendsAsTheProcessor_AloneAndInBatches) {
  ASSERT_EQ(Open(), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_model_on_device(model_), 1);
  const std::vector<wisp_recommendation> top = Top();
  const int32_t first[] = {1, 2, 3}, second[] = {4};
  const int32_t* histories[] = {first, second};
  const size_t lengths[] = {3, 1};
  wisp_recommendation both[10];
  size_t found[2];
  wisp_batch_options how = WISP_INIT(wisp_batch_options);
  how.num_threads = 4;
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(wisp_recommend_batch(model_, histories, lengths, 2, nullptr, &how, 5, both, found, &error_), WISP_OK);
    ASSERT_EQ(found[0], top.size());
    for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(both[i].item, top[i].item);
  }
  options_.device = nullptr;
  ASSERT_EQ(Open(), WISP_OK);
  EXPECT_EQ(wisp_model_on_device(model_), 0);
  const std::vector<wisp_recommendation> expected = Top();
  ASSERT_EQ(top.size(), expected.size());
  for (size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].item, expected[i].item);
    EXPECT_NEAR(top[i].score, expected[i].score, 1e-5);
  }
}

// The emulator is slower than the processor it runs on, so single histories are the processor's, to the bit.
TEST_F(CDevice, OneHistory_runsWhereItIsFaster) {
  options_.one_history_on_device = 0;
  ASSERT_EQ(Open(), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_model_on_device(model_), 2);
  const std::vector<wisp_recommendation> top = Top();
  options_.device = nullptr;
  ASSERT_EQ(Open(), WISP_OK);
  const std::vector<wisp_recommendation> on_host = Top();
  ASSERT_EQ(top.size(), on_host.size());
  for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(top[i].score, on_host[i].score);
  // An arithmetic of the device is asked for by its name.
  options_.device = &device_;
  device_.arithmetic = "float16";
  ASSERT_EQ(Open(), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_model_on_device(model_), 1);
  options_.one_history_on_device = 2;
  EXPECT_EQ(Open(), WISP_INVALID_ARGUMENT);
}

TEST_F(CDevice, OneHistory_memoryIsPlannedForBoth) {
  wisp_model_memory memory = WISP_INIT(wisp_model_memory), on_device = memory, on_host = memory;
  ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options_, &on_device, &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_model_plan_memory(path_.c_str(), &on_host, &error_), WISP_OK);
  options_.one_history_on_device = 0;
  ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options_, &memory, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(memory.device_bytes, on_device.device_bytes);
  EXPECT_EQ(memory.total_bytes, on_device.total_bytes + on_host.total_bytes - on_host.name_bytes);
}

TEST_F(CDevice, MemoryIsPlanned_AndTooLittleIsSaid) {
  wisp_model_memory memory = WISP_INIT(wisp_model_memory), on_host = WISP_INIT(wisp_model_memory);
  ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options_, &memory, &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_model_plan_memory(path_.c_str(), &on_host, &error_), WISP_OK);
  EXPECT_GT(memory.device_bytes, 0u);
  EXPECT_LT(memory.device_bytes, memory.total_bytes);
  EXPECT_EQ(on_host.device_bytes, 0u);
  device_.max_bytes = memory.device_bytes - 1;
  EXPECT_EQ(Open(), WISP_IO);
  EXPECT_NE(std::string(error_.message).find("there is no room on the device cuda"), std::string::npos)
      << error_.message;
  device_.max_bytes = memory.device_bytes;
  EXPECT_EQ(Open(), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_model_on_device(model_), 1);
}

TEST_F(CDevice, WithoutOneTheProcessorDoes) {
  device_.module = "none.so";
  EXPECT_EQ(Open(), WISP_INVALID_ARGUMENT) << "a named module is missing";
  device_.module = std::getenv("WISP_CUDA_MODULE");
  setenv("WISP_TEST_NO_GPU", "1", 1);
  ASSERT_EQ(Open(), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_model_on_device(model_), 0);
  EXPECT_FALSE(Top().empty());
  options_.backend = WISP_BACKEND_INT8;
  EXPECT_EQ(Open(), WISP_UNSUPPORTED) << "as where there is one";
  options_.backend = WISP_BACKEND_SIMD;
  unsetenv("WISP_TEST_NO_GPU");
  device_.name = nullptr;
  EXPECT_EQ(Open(), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_model_on_device(nullptr), 0);
}

TEST_F(CDevice, UnsupportedRequests_AreRefused) {
  options_.backend = WISP_BACKEND_INT8;
  EXPECT_EQ(Open(), WISP_UNSUPPORTED);
  EXPECT_NE(std::string(error_.message).find("the device cuda has kernels of its own"), std::string::npos);
  // The threads are those of the processor: one is enough there, whatever the option is.
  options_.backend = WISP_BACKEND_SIMD;
  options_.num_threads = 2;
  EXPECT_EQ(Open(), WISP_OK) << error_.message;
}

TEST_F(CDevice, ArithmeticIsChosen) {
  wisp_model_memory in_floats = WISP_INIT(wisp_model_memory), in_integers = WISP_INIT(wisp_model_memory);
  ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options_, &in_floats, &error_), WISP_OK);
  ASSERT_EQ(Open(), WISP_OK);
  const std::vector<wisp_recommendation> expected = Top();
  for (const char* arithmetic : {"tf32", "float16", "bfloat16", "int8"}) {
    device_.arithmetic = arithmetic;
    ASSERT_EQ(Open(), WISP_OK) << error_.message;
    const std::vector<wisp_recommendation> top = Top();
    ASSERT_EQ(top.size(), expected.size());
    EXPECT_NE(top[0].score, expected[0].score) << arithmetic;
    EXPECT_NEAR(top[0].score, expected[0].score, 0.1 * std::abs(expected[0].score)) << arithmetic;
  }
  ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options_, &in_integers, &error_), WISP_OK);
  EXPECT_LT(in_integers.packed_weights_bytes, in_floats.packed_weights_bytes);
  device_.arithmetic = "float8";
  EXPECT_EQ(Open(), WISP_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message,
               "a device's arithmetic is 'float8', allowed are float32, tf32, float16, bfloat16 and int8");
  device_.name = "cpu";
  device_.arithmetic = "tf32";
  EXPECT_EQ(Open(), WISP_INVALID_ARGUMENT);
  device_.arithmetic = "float32";
  EXPECT_EQ(Open(), WISP_OK);
}

}  // namespace
}  // namespace wisp::c_device_test
