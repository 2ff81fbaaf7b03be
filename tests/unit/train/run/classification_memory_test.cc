// DP-FP's memory is known before there is a trainer and equals the allocations; a steady step allocates nothing.
// Needs dp_fp.
#include "tests/unit/core/counting_allocator.h"

#include <gtest/gtest.h>

#include "runtime/train/trainer.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/train/memory_test_util.h"

namespace wisp::classification_memory_test {
namespace {

using test::allocated_bytes;
using test::ExpectEqual;
using test::num_allocations;

class ClassificationMemory : public test::ClassifierTraining {
 protected:
  // Makes this many texts of four tokens, all alike.
  explicit ClassificationMemory(size_t count = 500) : records_(count, test::Labelled(tokens_, 1)) {}

  TrainingOptions Options(DpFpMode mode, size_t threads, privacy::Ledger* ledger) {
    TrainingOptions o{.method = Method::kDpFp,
                      .sampling = Sampling::kPoisson,
                      .num_steps = 50,
                      .expected_batch = 20,
                      .num_records_public = 500,
                      .optimizer = {.kind = OptimizerKind::kAdamW},
                      .num_threads = threads,
                      .privacy = {.noise_multiplier = 1,
                                  .run = "r" + std::to_string(runs_++),
                                  .steps_per_charge = 50,
                                  .reproducible_seed = 1},
                      .dp_fp = {.mode = mode, .micro_batches = 4, .noise_multiplier = 1}};
    if (mode != DpFpMode::kPaper) o.privacy.ledger = ledger;
    return o;
  }

  const std::vector<int32_t> tokens_ = {1, 2, 3, 2};
  const std::vector<Record> records_;
  int runs_ = 0;
};

TEST_F(ClassificationMemory, TrainerHoldsWhatIsPlanned) {
  privacy::Ledger ledger = OpenLedger("l");
  std::vector<Architecture> all = test::SmallClassifiers();
  all.push_back(UniformArchitecture{.num_items = 3000,
                                    .max_length = 64,
                                    .width = 32,
                                    .num_heads = 2,
                                    .num_blocks = 2,
                                    .inner_width = 64,
                                    .attend = Attend::kAll,
                                    .num_classes = 7});
  for (const Architecture& a : all) {
    const std::vector<float> weights = test::StartClassifier(a, {.table_deviation = 0.5f});
    const size_t objects = ListParameters(a).size() * 2048 + 4096;
    for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper}) {
      for (const size_t threads : {1, 3}) {
        for (const NormForm form : {NormForm::kFormed, NormForm::kGram}) {
          TrainingOptions o = Options(mode, threads, &ledger);
          o.privacy.norm_form = form;
          if (form == NormForm::kGram) o.optimizer = {.kind = OptimizerKind::kSgd};
          size_t before = allocated_bytes;
          const auto planned = PlanTrainingMemory(a, records_.size(), o);
          ASSERT_TRUE(planned.ok()) << planned.status().message();
          EXPECT_LE(allocated_bytes - before, objects) << "planning allocates what it plans";
          before = allocated_bytes;
          const auto trainer = Trainer::Create(a, weights, records_, o);
          ASSERT_TRUE(trainer.ok()) << trainer.status().message();
          EXPECT_GE(allocated_bytes - before, planned->total());
          EXPECT_LE(allocated_bytes - before, planned->total() + objects + threads * 8192);
          ExpectEqual(*planned, (*trainer)->memory());
          size_t most = 0;
          for (int step = 0; step < 3; ++step) {
            const StepReport report = *(*trainer)->Step();
            most = std::max(most, mode == DpFpMode::kPaper ? report.num_records : report.num_head_records);
          }
          ExpectEqual(*planned, (*trainer)->memory());
          EXPECT_GT(most, 0u);
          EXPECT_LE(most, planned->records_at_most);
        }
      }
    }
  }
}

TEST_F(ClassificationMemory, SteadyStepAllocatesNothing) {
  privacy::Ledger ledger = OpenLedger("l");
  const Architecture a = test::SmallClassifiers()[0];
  const std::vector<float> weights = test::StartClassifier(a, {.table_deviation = 0.5f});
  for (const DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper}) {
    const auto trainer = *Trainer::Create(a, weights, records_, Options(mode, 2, &ledger));
    ASSERT_TRUE(trainer->Step().ok());  // charges
    const size_t before = num_allocations;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(trainer->Step().ok());
    EXPECT_EQ(num_allocations - before, 0u) << "mode " << static_cast<int>(mode);
  }
}

}  // namespace
}  // namespace wisp::classification_memory_test
