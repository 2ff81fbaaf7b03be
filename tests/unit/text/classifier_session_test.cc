// A classifier's session: the memory that was planned, and 8-bit files.
#include "runtime/text/classifier_session.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/core/stored_tensor.h"
#include "runtime/model/model_file.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::classifier_session_test {
namespace {

TEST(ClassifierSession, HoldsWhatIsPlanned) {
  for (const Architecture& a : test::SmallClassifiers()) {
    const std::vector<float> made = test::RandomClassifierWeights(a, 5);
    const AlignedArray<float> weights(made.size());
    std::copy(made.begin(), made.end(), weights.data());
    std::vector<StoredTensor> tensors;
    for (const ParameterSpec& p : ListParameters(a)) tensors.push_back({.floats = weights.data() + p.offset});
    for (const size_t threads : {1, 2, 3}) {
      const auto plan = ClassifierSession::PlanBytes(a, threads);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const auto session = ClassifierSession::Create(a, tensors, {.num_threads = threads});
      ASSERT_TRUE(session.ok()) << session.status().message();
      EXPECT_EQ(plan->total, (*session)->bytes());
      EXPECT_GT(plan->packed_weights, 0u);
    }
  }
  EXPECT_FALSE(ClassifierSession::PlanBytes(test::SmallClassifiers()[0], 1 << 20).ok());
}

// A file of 8-bit weights, and one of the same values as floats.
TEST(ClassifierSession, EightBits_RepresentAsTheirFloatsDo) {
  const Architecture a = test::SmallClassifiers().front();
  const std::vector<float> weights = test::RandomWeights(a, 80);
  const test::TemporaryFolder folder;
  ModelContents contents{
      .architecture = a, .classifier = ClassifierDescription(), .weights = weights, .storage = WeightStorage::kInt8};
  ASSERT_TRUE(WriteModel(folder / "blocks.wisp", contents).ok());
  const auto blocks = ModelFile::Open(folder / "blocks.wisp", Verify::kFull, Accept::kAny);
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  std::vector<float> room;
  contents.weights = blocks->AllWeights(room);
  contents.storage = WeightStorage::kFloat;
  ASSERT_TRUE(WriteModel(folder / "floats.wisp", contents).ok());
  const auto floats = ModelFile::Open(folder / "floats.wisp", Verify::kFull, Accept::kAny);
  ASSERT_TRUE(floats.ok()) << floats.status().message();
  const std::vector<int32_t> text = test::RandomRecord(a.num_items, a.max_length, 81).inputs;
  std::vector<float> h(a.width), expected(a.width);
  for (const auto& [file, to] : {std::pair(&*blocks, &h), std::pair(&*floats, &expected)}) {
    const auto session = ClassifierSession::Create(a, file->tensors(), {.name = "m"});
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE((*session)->Represent(text, *to).ok());
    const auto plan = ClassifierSession::PlanBytes(file->architecture(), 1, file->tensors());
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->total, (*session)->bytes()) << "what is planned is what is held";
  }
  double squares = 0, all = 0;
  for (size_t i = 0; i < h.size(); ++i) {
    squares += std::pow(static_cast<double>(h[i]) - expected[i], 2);
    all += std::pow(static_cast<double>(expected[i]), 2);
  }
  EXPECT_LT(std::sqrt(squares / all), 0.06);
}

}  // namespace
}  // namespace wisp::classifier_session_test
