// If one snapshot of a machine is restored twice, each copy samples other items.
#include <gtest/gtest.h>

#include "runtime/private_sampling/private_sampling.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/core/unseen_copy.h"

namespace wisp::restored_sampler_test {
namespace {

#ifdef __linux__

TEST(RestoredSampler, Samples_AreOthers) {
  constexpr uint32_t kSamples = 100;
  const test::TemporaryFolder folder;
  auto ledger = *privacy::Ledger::Open(folder / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  PrivateSamplerOptions o;
  o.num_items = 5;
  o.lambda = 0.5;
  o.ledger = &ledger;
  o.run = "test";
  o.samples_per_charge = kSamples;
  auto sampler = *PrivateSampler::Create(o);
  const std::vector<float> scores = {0.5f, -1, 2, 0, 1};
  ASSERT_TRUE(sampler.Sample({.scores = scores, .count = 1}).ok());  // pays for all
  const auto sample = [&] {
    std::vector<int32_t> items;
    for (uint32_t i = 1; i < kSamples; ++i) items.push_back(sampler.Sample({.scores = scores, .count = 1})->front());
    return items;
  };
  const std::vector<int32_t> copy = test::InAnUnseenCopy(sample), mine = sample();
  ASSERT_EQ(copy.size(), mine.size());
  EXPECT_NE(copy, mine);
}

#endif

}  // namespace
}  // namespace wisp::restored_sampler_test
