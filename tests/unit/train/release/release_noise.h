// The noise of a release, seen alone: steps with an empty batch, and what their numbers must look like.
#ifndef WISP_TESTS_UNIT_TRAIN_RELEASE_RELEASE_NOISE_H_
#define WISP_TESTS_UNIT_TRAIN_RELEASE_RELEASE_NOISE_H_

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::test {

// Each 32 neighbours together have the variance 1. The sum of 32 squares lies outside of [4, 110] with a chance of
// 5e-10 below and 2e-10 above; all of these tests have about 1e4 blocks: alpha 1e-5. With half the noise the sum is 8
// in the mean, without noise 0.
inline void ExpectStandardNormal(const std::vector<double>& z, const std::string& what) {
  constexpr size_t kBlock = 32;
  ASSERT_GE(z.size(), kBlock) << what;
  for (size_t first = 0; first < z.size(); first += kBlock) {
    const size_t begin = std::min(first, z.size() - kBlock);
    double squares = 0;
    for (size_t i = begin; i < begin + kBlock; ++i) squares += z[i] * z[i];
    ASSERT_TRUE(squares > 4 && squares < 110)
        << what << ": coordinates from " << begin << " have the squares " << squares;
  }
  for (size_t i = 0; i < z.size(); ++i) ASSERT_NE(z[i], 0) << what << ": coordinate " << i;
  const double n = static_cast<double>(z.size());
  const double squares = std::inner_product(z.begin(), z.end(), z.begin(), 0.0);
  EXPECT_NEAR(squares / n, 1, 6 * std::sqrt(2 / n)) << what << ": six standard errors, alpha 2e-9";
}

struct Way {
  const char* name;
  Method method;
  uint32_t num_negatives = 0;
};

// Larger than a worker's piece of an update (4,096 coordinates): a table in three pieces, two matrices in two.
inline constexpr UniformArchitecture kLarge{.num_items = 700,
                                            .max_length = 12,
                                            .width = 16,
                                            .num_heads = 2,
                                            .num_blocks = 1,
                                            .inner_width = 320,
                                            .embedding_scale = 4.0f};

class ReleaseNoise : public test::RingTraining {
 protected:
  ReleaseNoise() : RingTraining(59) {
    for (int32_t row = 0; row < 700; row += 2) rows_.push_back(row);
  }

  TrainingOptions Options(const Way& way) {
    TrainingOptions o{.method = way.method,
                      .sampling = Sampling::kPoisson,
                      .num_steps = 20,
                      .expected_batch = 30,
                      .num_records_public = 60,
                      // 30 / 0.25: in units of the clipping norm.
                      .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 120.0f},
                      .seed = 5,
                      .num_threads = 3,
                      .privacy = {.noise_multiplier = 2, .clipping_norm = 0.25, .ledger = &ledger_, .run = way.name},
                      .sparse = {.map_threshold = 1e-3}};  // half of the rows are selected
    // Carriers are not used, so each coordinate shows its own noise.
    o.rgp.item_tables = o.rgp.positions = o.rgp.matrices = RgpTrain::kFull;
    if (way.method == Method::kFest || way.method == Method::kAdaFestPlus) o.sparse.rows = rows_;
    return o;
  }
  // Returns the result of a step with an empty batch on weights that are 0: exactly the noise.
  std::vector<float> GetNoise(const TrainingOptions& o) {
    const std::vector<float> zero(FlatSize(ListParameters(kLarge)), 0.0f);
    auto trainer = Trainer::Create(kLarge, zero, {}, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    EXPECT_TRUE((*trainer)->Step().ok());
    return {(*trainer)->weights().begin(), (*trainer)->weights().end()};
  }
  // Returns the coordinates that a step moves: all that are trained, and of the table those of selected rows.
  static std::vector<size_t> Moved(const std::vector<float>& noise) {
    std::vector<size_t> moved;
    for (const ParameterSpec& p : ListParameters(kLarge)) {
      if (!p.trained) continue;
      for (size_t row = 0; row < p.size(); row += p.offset == 0 ? kLarge.width : p.size()) {
        const size_t first = p.offset + row, n = p.offset == 0 ? kLarge.width : p.size();
        const bool in = p.offset != 0 ||
                        std::any_of(noise.begin() + static_cast<ptrdiff_t>(first),
                                    noise.begin() + static_cast<ptrdiff_t>(first + n), [](float x) { return x != 0; });
        for (size_t i = first; in && i < first + n; ++i) moved.push_back(i);
      }
    }
    return moved;
  }

  privacy::Ledger ledger_ = OpenLedger("l");
  std::vector<int32_t> rows_;
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TRAIN_RELEASE_RELEASE_NOISE_H_
