// The noise of AdaFEST's map: it has a deviation of its own, and its slack is charged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/methods/sparse/contribution_map.h"
#include "runtime/methods/sparse/step_rows.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "tests/unit/train/release/release_noise.h"

namespace wisp::map_noise_test {
namespace {

using test::kLarge;

class MapNoise : public test::ReleaseNoise {};

// The noise of the map selects rows. With a ratio of 1/2 it is half the gradient's, with which 0.26 of the rows would
// be selected. 4,200 trials of 0.1: six standard errors, alpha 2e-9.
TEST_F(MapNoise, IsNotThatOfTheGradients) {
  TrainingOptions o = Options({"adafest", Method::kAdaFest});
  o.privacy.noise_multiplier = 1;
  o.sparse.map_noise_ratio = 0.5;
  const double of_map = std::sqrt(1.25), of_gradient = 2 * of_map;
  EXPECT_DOUBLE_EQ(GradientNoise(o), of_gradient);
  EXPECT_DOUBLE_EQ(MapOptions(o).noise_multiplier, of_map);
  EXPECT_DOUBLE_EQ(1 / (of_map * of_map) + 1 / (of_gradient * of_gradient), 1) << "together they are what is charged";
  o.sparse.map_threshold = 1.2815515655 * of_map;
  double rows = 0, trials = 0;
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> noise = GetNoise(o);
    for (size_t row = 0; row < kLarge.num_items; ++row) {
      rows +=
          std::any_of(noise.begin() + static_cast<ptrdiff_t>(row * kLarge.width),
                      noise.begin() + static_cast<ptrdiff_t>((row + 1) * kLarge.width), [](float x) { return x != 0; });
      trials += 1;
    }
  }
  EXPECT_NEAR(rows / trials, 0.1, 6 * std::sqrt(0.1 * 0.9 / trials));
}

// The map's noise deviates from a Gaussian, and that slack is paid for in addition to the gradient's.
TEST_F(MapNoise, SlackIsCharged) {
  TrainingOptions o = Options({"adafest", Method::kAdaFest});
  for (double ratio : {0.25, 1.0, 4.0}) {
    o.sparse.map_noise_ratio = ratio;
    const NoisePair pair = SplitNoise(2, ratio);
    TrainingOptions alone = Options({"phantom", Method::kPhantom});
    const double gradient = StepLossSlack(kLarge, alone, pair.gradient, 3);
    const ContributionMap map(kLarge.num_items, MapOptions(o), nullptr);
    const double of_map = privacy::DiscretisationLoss(
        {.sigma_in_steps = map.sigma_in_steps(), .num_coordinates = kLarge.num_items, .num_steps = 3});
    EXPECT_GT(of_map, 0);
    EXPECT_NEAR(StepLossSlack(kLarge, o, 2, 3) / (gradient + of_map), 1, 1e-4) << ratio;
  }
}

}  // namespace
}  // namespace wisp::map_noise_test
