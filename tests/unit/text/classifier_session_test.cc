// A classifier's session holds the memory that was planned.
#include "runtime/text/classifier_session.h"

#include <gtest/gtest.h>

#include "runtime/core/stored_tensor.h"
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

}  // namespace
}  // namespace wisp::classifier_session_test
