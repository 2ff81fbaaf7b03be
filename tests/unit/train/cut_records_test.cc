// Records that were cut to fewer positions than the model has: the same bits with less memory, and longer records are
// refused.
#include <gtest/gtest.h>

#include "runtime/train/memory.h"
#include "runtime/train/trainer.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::cut_records_test {
namespace {

constexpr uint32_t kCut = 4;

class CutRecords : public test::RingTraining {
 protected:
  CutRecords() : RingTraining(59), short_(kSmall.num_items, 59, kCut) {}

  TrainingOptions Options(Method method, uint32_t cut_to) {
    return {.method = method,
            .sampling = Sampling::kPoisson,
            .num_steps = 5,
            .expected_batch = 30,
            .num_records_public = 60,
            .optimizer = {.learning_rate = 0.01f},
            .dropout = {.embedding = 0.1f, .attention = 0.2f, .residual = 0.1f},
            .seed = 5,
            .num_threads = 2,
            .privacy = {.noise_multiplier = 1, .ledger = &ledger_, .run = "cut", .reproducible_seed = 4},
            .cut_to = cut_to};
  }

  test::Ring short_;
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(CutRecords, SameBitsWithLessMemory) {
  for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp}) {
    if (!CheckBuilt(kSmall, Options(method, 0)).ok()) continue;
    // Several records pass at once, too, but without dropout, whose masks may depend on a record's place.
    for (const size_t rows_at_once : {size_t{0}, size_t{48}}) {
      std::vector<float> weights[2];
      size_t activations[2];
      for (const bool cut : {false, true}) {
        TrainingOptions o = Options(method, cut ? kCut : 0);
        o.rows_at_once = rows_at_once;
        if (method == Method::kOrdinary) o.optimizer.kind = OptimizerKind::kSgd;
        auto trainer = Trainer::Create(kSmall, start_, short_.records, o);
        ASSERT_TRUE(trainer.ok()) << trainer.status().message();
        for (int step = 0; step < 5; ++step) ASSERT_TRUE((*trainer)->Step().ok());
        weights[cut].assign((*trainer)->weights().begin(), (*trainer)->weights().end());
        const auto plan = PlanTrainingMemory(kSmall, short_.records.size(), o);
        ASSERT_TRUE(plan.ok());
        EXPECT_EQ(plan->total(), (*trainer)->planned_bytes());
        activations[cut] = plan->activations;
      }
      // Ordinary training sums the records that pass together in one product, and more of the shorter ones pass: equal
      // up to rounding.
      const bool sums_together = method == Method::kOrdinary && rows_at_once > 0;
      ASSERT_EQ(weights[0].size(), weights[1].size());
      for (size_t i = 0; i < weights[0].size(); ++i)
        ASSERT_NEAR(weights[0][i], weights[1][i], sums_together ? 1e-6 : 0) << GetName(method) << " " << i;
      if (rows_at_once == 0) {
        EXPECT_LT(activations[1], activations[0] * 3 / 4);
      }
    }
  }
}

TEST_F(CutRecords, LongerOnesStayOut) {
  std::vector<Record> records = short_.records;
  records.push_back(ring_.records[0]);  // 10 positions long
  const Status refused = Trainer::Check(kSmall, start_, records, Options(Method::kOrdinary, kCut));
  EXPECT_EQ(refused.message(), "record 59 has 10 inputs and 10 targets; allowed are 1 to 4 of each, equally many");
  EXPECT_TRUE(Trainer::Check(kSmall, start_, records, Options(Method::kOrdinary, 0)).ok());
  auto trainer = Trainer::Create(kSmall, start_, records, Options(Method::kPhantom, kCut));
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  EXPECT_EQ((*trainer)->num_left_out(), 1u);
  EXPECT_TRUE((*trainer)->Step().ok());
}

}  // namespace
}  // namespace wisp::cut_records_test
