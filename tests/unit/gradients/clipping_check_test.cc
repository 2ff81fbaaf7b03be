// The check of a record's actual contribution: its bound is that of the grid, and it counts every coordinate.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/train/step_sum.h"

namespace wisp::clipping_check_test {
namespace {

// A contribution may be as long as 2^30 steps, which stand for the clipping norm, and a millionth; a longer one is
// dropped.
TEST(ClippingCheck, TheBoundOfASumIsThatOfItsGrid) {
  for (double clipping_norm : {0.01, 1.0, 30.0}) {
    for (ClipKind kind : {ClipKind::kFlat, ClipKind::kAutomatic}) {
      const TrainingOptions o{.method = Method::kPhantom,
                              .num_threads = 1,
                              .privacy = {.noise_multiplier = 1, .clipping_norm = clipping_norm, .clipping = kind}};
      StepSum sum(kernels::BestOps(), o, 1000, 1000);
      const double bound = std::sqrt(sum.integers().MaxSumSquares());
      EXPECT_LE(bound, 0x1p30 * (1 + 1.001e-6));
      EXPECT_GE(bound, 0x1p30);
      EXPECT_NEAR(sum.integers().steps_per_unit() * clipping_norm / 0x1p30, 1, 1e-6);
      const ClipRule rule = sum.clip();
      for (double norm : {clipping_norm / 10, clipping_norm, 50 * clipping_norm})
        EXPECT_LT(rule.Factor(norm) * norm, clipping_norm) << norm;
    }
  }
}

// A sum is added to in stretches, each under its own lock; the squares of all of them count.
TEST(ClippingCheck, TheSquaresOfAllStretchesAreCounted) {
  const size_t size = 100000;
  GridGradientSum sum(kernels::BestOps(), size, {.steps_per_unit = 1, .max_sum_squares = 1e9});
  sum.Clear();
  const std::vector<float> g(size, 3.0f);
  for (size_t offset : {0u, 5u, 40000u}) {
    const double squares = sum.Add(0, offset, g.data(), size - offset, 1, 1);
    EXPECT_DOUBLE_EQ(squares, 9.0 * static_cast<double>(size - offset));
    EXPECT_DOUBLE_EQ(sum.Add(0, offset, g.data(), size - offset, 1, -1), squares);
  }
  for (int64_t s : sum.sum()) ASSERT_EQ(s, 0);
}

}  // namespace
}  // namespace wisp::clipping_check_test
