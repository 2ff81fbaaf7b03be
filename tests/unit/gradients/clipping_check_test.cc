// The check of a record's actual contribution: its bound is that of the grid, and it counts every coordinate.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/release/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp::clipping_check_test {
namespace {

// A contribution may be as long as 2^30 steps, which stand for the clipping norm, and a millionth; a longer one is
// dropped.
TEST(ClippingCheck, TheBoundOfASumIsThatOfItsGrid) {
  for (double clipping_norm : {0.01, 1.0, 30.0}) {
    TrainingOptions o;
    o.privacy.clipping_norm = clipping_norm;
    const privacy::ExactGrid grid = MakeGrid(o, 1000);
    EXPECT_EQ(grid.clipping_norm(), clipping_norm);
    const GridGradientSum::Grid sum = SumGrid(grid);
    EXPECT_LE(std::sqrt(sum.max_sum_squares), 0x1p30 * (1 + 1.001e-6));
    EXPECT_GE(std::sqrt(sum.max_sum_squares), 0x1p30);
    EXPECT_NEAR(sum.steps_per_unit * clipping_norm / 0x1p30, 1, 1e-6);
    for (ClipKind kind : {ClipKind::kFlat, ClipKind::kAutomatic}) {
      const ClipRule rule = ClipOnGrid(kind, grid);
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
