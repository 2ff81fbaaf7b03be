// Classifiers in a device's memory: they answer as on the processor, by one launch, and a failing device gives no wrong
// results.
#include <gtest/gtest.h>

#include "runtime/text/classifier_session.h"
#ifndef WISP_TEST_GPU
#include "kernels/cuda/emulate/emulate.h"
#endif
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/device/cuda/device_test_util.h"

namespace wisp::device_classifier_test {
namespace {

using test::FailingMemory, test::OneByOne, test::TheDevice;

Architecture Encoder(NormPlacement norm, uint32_t num_blocks) {
  return UniformArchitecture{.num_items = 30,
                             .max_length = 20,
                             .width = 24,
                             .num_heads = 2,
                             .num_blocks = num_blocks,
                             .inner_width = 40,
                             .activation = ActivationKind::kGelu,
                             .norm = norm,
                             .attend = Attend::kAll,
                             .num_classes = 3};
}

class DeviceClassifier : public ::testing::Test {
 protected:
  explicit DeviceClassifier() { Use(Encoder(NormPlacement::kPost, 2), 1); }

  void Use(const Architecture& a, uint32_t seed) {
    architecture_ = a;
    weights_ = test::RandomWeights(a, seed);
    tensors_.clear();
    for (const ParameterSpec& p : ListParameters(a)) tensors_.push_back({.floats = weights_.data() + p.offset});
  }
  Result<std::unique_ptr<ClassifierSession>> Make(const kernels::Device& device, double norm_bound = 0) {
    return ClassifierSession::Create(architecture_, tensors_, {.device = device, .norm_bound = norm_bound});
  }
  static std::vector<float> Logits(ClassifierSession& session, const std::vector<int32_t>& text) {
    std::vector<float> z(session.architecture().head.num_classes);
    const Status status = session.Logits(text, z);
    EXPECT_TRUE(status.ok()) << status.message();
    return z;
  }
  static std::vector<float> Represented(ClassifierSession& session, const std::vector<int32_t>& text) {
    std::vector<float> h(session.architecture().width);
    EXPECT_TRUE(session.Represent(text, h).ok());
    return h;
  }

  Architecture architecture_;
  std::vector<float> weights_;
  std::vector<StoredTensor> tensors_;
  const std::vector<int32_t> text_ = {0, 4, 29, 8, 1}, other_ = {3};
};

TEST_F(DeviceClassifier, GivesWhatTheProcessorGives) {
  uint32_t seed = 10;
  for (const NormPlacement norm : {NormPlacement::kPost, NormPlacement::kPre}) {
    for (const uint32_t blocks : {0u, 1u, 2u}) {
      Use(Encoder(norm, blocks), ++seed);
      for (const double bound : {0.0, 0.5}) {
        const auto host = *Make(kernels::BestOps(), bound), device = *Make(TheDevice(), bound);
        const auto each = *Make(OneByOne(), bound);
        for (const auto& text : {text_, other_, std::vector<int32_t>(20, 7)}) {
          const std::vector<float> z = Logits(*device, text), h = Represented(*device, text);
          const std::vector<float> host_z = Logits(*host, text), host_h = Represented(*host, text);
          for (size_t k = 0; k < z.size(); ++k) EXPECT_NEAR(z[k], host_z[k], 4e-5f * (1 + std::abs(host_z[k])));
          for (size_t i = 0; i < h.size(); ++i) EXPECT_NEAR(h[i], host_h[i], 4e-5f) << i;
          EXPECT_EQ(z, Logits(*each, text));
          EXPECT_EQ(h, Represented(*each, text));
        }
      }
    }
  }
}

TEST_F(DeviceClassifier, RepresentationsAreClippedBeforeTheHead) {
  const auto clipped = *Make(TheDevice(), 1e-4), free = *Make(TheDevice());
  const std::vector<float> near_bias = Logits(*clipped, text_), z = Logits(*free, text_);
  const float* bias = tensors_.back().floats;  // the classes' bias
  for (size_t k = 0; k < z.size(); ++k) EXPECT_NEAR(near_bias[k], bias[k], 1e-3f);
  EXPECT_NE(z, near_bias);
}

TEST_F(DeviceClassifier, OtherArithmeticsAreNearby) {
  const std::vector<float> expected = Represented(**Make(kernels::BestOps()), text_);
  const std::pair<kernels::Arithmetic, float> kinds[] = {{kernels::Arithmetic::kTf32, 5e-3f},
                                                         {kernels::Arithmetic::kFloat16, 5e-3f},
                                                         {kernels::Arithmetic::kBfloat16, 4e-2f},
                                                         {kernels::Arithmetic::kInt8, 0.1f}};
  for (const auto& [arithmetic, off] : kinds) {
    const kernels::Device device(kernels::cuda::Ops(arithmetic), TheDevice().memory);
    SCOPED_TRACE(device.ops->name);
    const auto session = *Make(device);
    const std::vector<float> h = Represented(*session, text_);
    EXPECT_NE(h, expected);
    for (size_t i = 0; i < h.size(); ++i) EXPECT_NEAR(h[i], expected[i], off) << i;
  }
}

#ifndef WISP_TEST_GPU
TEST_F(DeviceClassifier, ATextIsOneLaunch) {
  const auto session = *Make(TheDevice(), 0.5);
  for (const auto& text : {text_, other_}) {
    const uint64_t before = kernels::cuda::emulate::NumLaunches();
    Logits(*session, text);
    EXPECT_EQ(kernels::cuda::emulate::NumLaunches() - before, 1u);
    Represented(*session, text);
    EXPECT_EQ(kernels::cuda::emulate::NumLaunches() - before, 2u);
  }
}
#endif

TEST_F(DeviceClassifier, InvalidTexts_AreRefused) {
  for (const kernels::Device& device : {kernels::Device(kernels::BestOps()), TheDevice()}) {
    const auto session = *Make(device);
    std::vector<float> z(3), wrong(4);
    const auto refused = [&](const std::vector<int32_t>& text, std::span<float> to, const char* words) {
      const Status status = session->Logits(text, to);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    };
    refused({}, z, "a text has 0 tokens, allowed are 1 to 20");
    refused(std::vector<int32_t>(21, 1), z, "a text has 21 tokens");
    refused({1, 30}, z, "token 30; the model has tokens 0 to 29");
    refused({-1}, z, "token -1");
    refused({1}, wrong, "room for 4 numbers, there are 3");
  }
}

TEST_F(DeviceClassifier, Float16Overflow_IsRefused) {
  const kernels::Device halves(kernels::cuda::Ops(kernels::Arithmetic::kFloat16), TheDevice().memory);
  std::vector<float> z(3), h(24);
  weights_.assign(weights_.size(), 1e5f);
  EXPECT_TRUE((*Make(TheDevice()))->Represent(text_, h).ok());
  const Status status = (*Make(halves))->Logits(text_, z);
  EXPECT_EQ(status.code(), StatusCode::kInvalidData);
  EXPECT_NE(status.message().find("too large for cuda float16, whose largest number is 65504"), std::string::npos)
      << status.message();
}

TEST_F(DeviceClassifier, HoldsWhatItSaysAndGivesItBack) {
  const size_t before = kernels::cuda::AllocatedBytes();
  {
    const auto session = *Make(TheDevice());
    const size_t held = kernels::cuda::AllocatedBytes() - before;
    EXPECT_LE(held, session->bytes());
    EXPECT_GT(held, session->bytes() - session->bytes() / 8);
  }
  EXPECT_EQ(kernels::cuda::AllocatedBytes(), before);
}

TEST_F(DeviceClassifier, ADeviceThatFailsOrIsFullGivesNoClass) {
  const std::vector<float> good = Logits(**Make(TheDevice()), text_);
  const size_t before = kernels::cuda::AllocatedBytes();
  bool reached_the_end = false;
  for (int calls = 0; !reached_the_end; ++calls) {
    FailingMemory memory(calls);
    const auto session = Make(memory.device());
    if (!session.ok()) {
      EXPECT_NE(session.status().message().find("it fell off the bus"), std::string::npos);
      continue;
    }
    std::vector<float> z(3);
    const Status status = (*session)->Logits(text_, z);
    reached_the_end = status.ok();
    if (status.ok()) {
      EXPECT_EQ(z, good);
    } else {
      EXPECT_EQ(status.code(), StatusCode::kIo);
    }
  }
  for (int allocations = 0;; ++allocations) {
    FailingMemory memory(allocations, /*of_allocations=*/true);
    const auto session = Make(memory.device());
    if (session.ok()) break;
    EXPECT_NE(session.status().message().find("there is no room on the device cuda"), std::string::npos);
    EXPECT_EQ(kernels::cuda::AllocatedBytes(), before);
  }
}

}  // namespace
}  // namespace wisp::device_classifier_test
