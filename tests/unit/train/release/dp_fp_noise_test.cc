// The noise of DP-FP: that of the encoder's step, and that of the releases from which the head is made.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/methods/dp_fp/head_releases.h"
#include "runtime/train/trainer.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/train/release/release_noise.h"

namespace wisp::dp_fp_noise_test {
namespace {

using test::ExpectStandardNormal;

class DpFpNoise : public test::ClassifierTraining {
 protected:
  static constexpr UniformArchitecture kWide{.num_items = 700,
                                             .max_length = 10,
                                             .width = 16,
                                             .num_heads = 2,
                                             .num_blocks = 1,
                                             .inner_width = 320,
                                             .attend = Attend::kAll,
                                             .num_classes = 2};
  // The weights are 0, and nobody is sampled.
  std::unique_ptr<Trainer> Step() {
    const TrainingOptions o{
        .method = Method::kDpFp,
        .sampling = Sampling::kPoisson,
        .num_steps = 3,
        .expected_batch = 8,
        .num_records_public = 80,
        .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 32.0f},
        .num_threads = 3,
        .privacy = {.noise_multiplier = 2.5, .clipping_norm = 0.25, .ledger = &ledger_, .run = "test"},
        .dp_fp = {.mode = DpFpMode::kClipped, .micro_batches = 4, .clipping_norm = 1, .noise_multiplier = 1}};
    auto trainer = Trainer::Create(kWide, std::vector<float>(FlatSize(ListParameters(kWide)), 0.0f), {}, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    EXPECT_TRUE((*trainer)->Step().ok());
    return *std::move(trainer);
  }
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(DpFpNoise, EveryCoordinateOfTheEncoder_HasIndependentNoise) {
  const auto a = Step(), b = Step();
  std::vector<double> z;
  size_t equal = 0;
  for (const ParameterSpec& p : a->graph().parameters()) {
    for (size_t i = p.offset; i < p.offset + p.size(); ++i) {
      equal += a->weights()[i] == b->weights()[i];
      if (!p.name.starts_with("head.")) z.push_back(a->weights()[i] / 2.5);
    }
  }
  EXPECT_GT(z.size(), 20000u);
  ExpectStandardNormal(z, "encoder");
  EXPECT_LE(equal, 2u) << "the head included: as above";
}

TEST_F(DpFpNoise, EveryCoordinateOfAHeadReleaseHasItsNoise) {
  // There are more coordinates than in a piece of an update. The sum itself shows the release.
  HeadReleases releases(kernels::BestOps(), {.num_classes = 4,
                                             .width = 1200,
                                             .micro_batches = 2,
                                             .clipping_norm = 0.5,
                                             .noise_multiplier = 3,
                                             .sampling_probability = 0.1,
                                             .num_records_public = 100});
  auto noise = *privacy::RandomStream::Secure();
  releases.Clear();
  releases.Release(noise);
  std::vector<double> z;
  for (int64_t a : releases.matrices()) z.push_back(static_cast<double>(a) * releases.grid().grid() / (3 * 0.5));
  ASSERT_EQ(z.size(), 2u * 4 * 1200);
  ExpectStandardNormal(z, "head");
}

}  // namespace
}  // namespace wisp::dp_fp_noise_test
