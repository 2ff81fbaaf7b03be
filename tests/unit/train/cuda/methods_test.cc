// Every method's steps in memory that the host cannot touch: weights equal those of the same run on the host, noise
// included; memory is as planned; other records in the batch do not affect a record.
#include <gtest/gtest.h>

#include "tests/unit/train/cuda/cuda_train_test_util.h"
#include "tests/unit/train/memory_test_util.h"

namespace wisp::methods_test {
namespace {

class CudaMethods : public test::CudaTraining {
 protected:
  TrainingOptions Of(Method method) {
    TrainingOptions o = Private();
    o.method = method;
    o.rgp.rank = 3;
    o.sparse.rows = rows_;
    o.sparse.map_threshold = 3;
    if (!NamesRows(method)) o.sparse.rows = {};
    if (method == Method::kOrdinary) o = Ordinary();
    return o;
  }
  static TrainingOptions Sampled(TrainingOptions o) {
    o.num_negatives = 5;
    return o;
  }
  std::vector<TrainingOptions> All() {
    return {Of(Method::kRgp),
            Of(Method::kFest),
            Of(Method::kAdaFest),
            Of(Method::kAdaFestPlus),
            Sampled(Of(Method::kOrdinary)),
            Sampled(Of(Method::kPhantom)),
            Sampled(Of(Method::kFest)),
            Sampled(Of(Method::kAdaFest)),
            Sampled(Of(Method::kAdaFestPlus))};
  }
  static std::string GetName(const TrainingOptions& o) {
    return std::string(wisp::GetName(o.method)) + " " + std::to_string(o.num_negatives);
  }

  // Some rows that records name, and some that none names.
  std::vector<int32_t> rows_{0, 1, 2, 3, 5, 8, 9, 13, 21, 24, 29};
};

TEST_F(CudaMethods, StepsAreTheHostsNoiseIncluded) {
  for (TrainingOptions o : All()) {
    SCOPED_TRACE(GetName(o));
    ExpectSameRun(o);
    o.dropout = {.embedding = 0.1f, .attention = 0.1f, .residual = 0.1f};
    o.num_threads = 3;
    o.privacy.clipping = ClipKind::kFlat;
    ExpectSameRun(o);
  }
}

TEST_F(CudaMethods, OptimizersAndVariancesAreTheHosts) {
  Architecture a = kSmall;
  a.re_attention = ReAttention::kOn;
  for (TrainingOptions o : All()) {
    if (!IsPrivate(o)) continue;
    SCOPED_TRACE(GetName(o));
    ExpectSameRun(o, a);
    // Adam's moments of rows that a step does not touch must stay.
    o.optimizer = {.learning_rate = 0.01f, .epsilon = 1e-2f};
    ExpectSameRun(o, a);
  }
}

TEST_F(CudaMethods, AveragedWeightsOfASampledSoftmaxAreTheHosts) {
  for (const Method method : {Method::kOrdinary, Method::kPhantom}) {
    TrainingOptions o = Sampled(Of(method));
    o.ema_decay = 0.5f;
    ExpectSameRun(o);
  }
}

TEST_F(CudaMethods, RowsOfACosineHeadTrain) {
  Architecture cosine = kSmall;
  cosine.head.temperature = 0.2f;
  ExpectSameRun(Of(Method::kFest), cosine);
  ExpectSameRun(Of(Method::kAdaFest), cosine);
}

TEST_F(CudaMethods, GroupsOfRgpTrainAsTheyAreTold) {
  TrainingOptions o = Of(Method::kRgp);
  o.rgp.item_tables = RgpTrain::kFull;
  o.rgp.vectors = RgpTrain::kFrozen;
  ExpectSameRun(o);
  o.rgp.item_tables = RgpTrain::kFrozen;
  o.rgp.positions = RgpTrain::kFull;
  o.rgp.matrices = RgpTrain::kFull;
  ExpectSameRun(o);
  // A matrix is the last to have a factor.
  o.rgp.positions = RgpTrain::kFrozen;
  o.rgp.matrices = RgpTrain::kProjected;
  ExpectSameRun(o);
}

// More items than a block of the head has.
TEST_F(CudaMethods, LargerCataloguesTrain) {
  Architecture a = kSmall;
  a.num_items = 600;
  rows_ = {0, 3, 5, 24, 29, 255, 256, 257, 511, 599};
  for (const Method method : {Method::kRgp, Method::kFest, Method::kAdaFest}) {
    SCOPED_TRACE(wisp::GetName(method));
    TrainingOptions o = Of(method);
    o.num_steps = 2;
    ExpectSameRun(o, a);
  }
}

TEST_F(CudaMethods, CompanyOfARecordChangesNoBitOfAPrivateRun) {
  for (TrainingOptions o : All()) {
    if (!IsPrivate(o)) continue;
    SCOPED_TRACE(GetName(o));
    o = OnDevice(o);
    o.optimizer = {.learning_rate = 0.01f};
    const std::vector<float> together = Run(o);
    for (const size_t records : {1, 3}) {
      o.rows_at_once = records * kSmall.max_length;
      EXPECT_EQ(Run(o), together);
    }
  }
}

// Rows outside of the set keep every bit, and so do their moments.
TEST_F(CudaMethods, RowsOutsideOfTheSetStay) {
  const std::vector<float> weights = Run(OnDevice(Of(Method::kFest)));
  for (size_t row = 0; row < kSmall.num_items; ++row) {
    const bool trains = std::find(rows_.begin(), rows_.end(), static_cast<int32_t>(row)) != rows_.end();
    const auto begin = static_cast<std::ptrdiff_t>(row * kSmall.width), end = begin + kSmall.width;
    EXPECT_EQ(std::equal(weights.begin() + begin, weights.begin() + end, start_.begin() + begin), !trains) << row;
  }
}

TEST_F(CudaMethods, HoldWhatWasPlanned) {
  for (const TrainingOptions& given : All()) {
    SCOPED_TRACE(GetName(given));
    const TrainingOptions o = OnDevice(given);
    const auto plan = PlanTrainingMemory(kSmall, ring_.records.size(), o);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const size_t before = kernels::cuda::AllocatedBytes();
    auto trainer = Make(o);
    test::ExpectEqual(*plan, trainer->memory());
    const size_t held = kernels::cuda::AllocatedBytes() - before;
    EXPECT_LE(held, plan->total());
    EXPECT_GT(held, plan->total() / 2) << "most of it lies on the device";
    ASSERT_TRUE(trainer->Step().ok());
    EXPECT_EQ(kernels::cuda::AllocatedBytes() - before, held) << "a step allocates nothing there";
  }
}

}  // namespace
}  // namespace wisp::methods_test
