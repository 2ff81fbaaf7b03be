// A build without a method refuses to train by it, before anything is charged, and says why. Each build tests what it
// leaves out (tools/dev core leaves out all).
#include <gtest/gtest.h>

#include "runtime/train/memory.h"
#include "runtime/train/method_table.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::left_out_test {
namespace {

class LeftOut : public test::RingTraining {
 protected:
  LeftOut() : RingTraining(20) {}

  // Every door refuses the run if this build lacks its folder.
  void Expect(bool is_built, const std::string& folder, const Architecture& a, const TrainingOptions& o) {
    EXPECT_EQ(CheckBuilt(a, o).ok(), is_built) << folder;
    if (is_built) return;
    for (const Status& status :
         {PlanTrainingMemory(a, ring_.records.size(), o).status(), PrivacyPlan::Create(a, o).status(),
          Trainer::Check(a, test::StartWeights(a), ring_.records, o)}) {
      EXPECT_EQ(status.code(), StatusCode::kUnsupported);
      EXPECT_NE(status.message().find("needs " + folder + " of runtime/methods"), std::string::npos)
          << status.message();
    }
  }

  TrainingOptions Options(Method method) const {
    return {.method = method, .num_steps = 2, .expected_batch = 4, .num_records_public = 20};
  }
};

TEST_F(LeftOut, Methods_areRefusedByName) {
  Expect(kHasRgp, "rgp", kSmall, Options(Method::kRgp));
  for (const Method method : {Method::kFest, Method::kAdaFest, Method::kAdaFestPlus})
    Expect(kHasSparse, "sparse", kSmall, Options(method));
  Expect(kHasDpFp, "dp_fp", kSmall, Options(Method::kDpFp));
}

TEST_F(LeftOut, SampledSoftmax_isRefused) {
  for (const Method method : {Method::kOrdinary, Method::kPhantom}) {
    TrainingOptions o = Options(method);
    o.num_negatives = 8;
    Expect(kHasSparse, "sparse", kSmall, o);
  }
}

TEST_F(LeftOut, ReAttention_isRefusedInPrivateTrainingAlone) {
  UniformArchitecture a = kSmall;
  a.re_attention = ReAttention::kOn;
  Expect(kHasReAttention, "re_attention", a, Options(Method::kPhantom));
  EXPECT_TRUE(CheckBuilt(a, Options(Method::kOrdinary)).ok());
}

TEST_F(LeftOut, PhantomClipping_isInEveryBuild) {
  EXPECT_TRUE(CheckBuilt(kSmall, Options(Method::kPhantom)).ok());
  EXPECT_TRUE(CheckBuilt(kSmall, Options(Method::kOrdinary)).ok());
}

}  // namespace
}  // namespace wisp::left_out_test
