// If one snapshot of a machine is restored twice, each copy samples other batches and other noise.
// Otherwise anybody could subtract the noise of two releases.
#include <gtest/gtest.h>

#include "runtime/train/trainer.h"
#include "tests/unit/core/unseen_copy.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::restored_snapshot_test {
namespace {

#ifdef __linux__

constexpr int kSteps = 20;

class RestoredSnapshot : public test::RingTraining {
 protected:
  RestoredSnapshot() : RingTraining(60) {}

  // After one step, which paid for all of them.
  std::unique_ptr<Trainer> Running(privacy::Ledger* ledger, uint32_t expected_batch) {
    TrainingOptions o{.num_steps = kSteps, .expected_batch = expected_batch, .seed = 5, .num_threads = 1};
    o.method = Method::kPhantom;
    o.sampling = Sampling::kPoisson;
    o.num_records_public = 60;
    o.privacy = {.noise_multiplier = 1, .clipping_norm = 1, .ledger = ledger, .run = "test"};
    o.privacy.steps_per_charge = kSteps;
    auto trainer = Trainer::Create(kSmall, start_, ring_.records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    EXPECT_TRUE((*trainer)->Step().ok());
    return *std::move(trainer);
  }
};

TEST_F(RestoredSnapshot, Steps_HaveOtherNoise) {
  privacy::Ledger ledger = OpenLedger("l");
  const auto trainer = Running(&ledger, 60);  // everybody takes part in every step
  const auto step = [&] {
    EXPECT_TRUE(trainer->Step().ok());
    return std::vector<float>(trainer->weights().begin(), trainer->weights().end());
  };
  const std::vector<float> copy = test::InAnUnseenCopy(step), mine = step();
  ASSERT_EQ(copy.size(), mine.size());
  size_t same = 0;
  for (size_t i = 0; i < mine.size(); ++i) same += copy[i] == mine[i] ? 1 : 0;
  EXPECT_LT(same, mine.size() / 10);
}

TEST_F(RestoredSnapshot, Steps_HaveOtherBatches) {
  privacy::Ledger ledger = OpenLedger("l");
  const auto trainer = Running(&ledger, 16);
  const auto sizes = [&] {
    std::vector<size_t> sizes;
    for (int i = 1; i < kSteps; ++i) sizes.push_back(trainer->Step()->num_records);
    return sizes;
  };
  const std::vector<size_t> copy = test::InAnUnseenCopy(sizes), mine = sizes();
  ASSERT_EQ(copy.size(), mine.size());
  EXPECT_NE(copy, mine) << "by chance once in 10^20";
}

#endif

}  // namespace
}  // namespace wisp::restored_snapshot_test
