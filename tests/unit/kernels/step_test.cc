// The end of a step in a device's memory: what the host's loops give.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels {
namespace {

std::vector<const OpTable*> Tables() {
  std::vector<const OpTable*> tables;
  for (const OpTable* ops : TestedOps()) {
    if (ops->noised_sum != nullptr) tables.push_back(ops);
  }
  EXPECT_FALSE(tables.empty());
  return tables;
}

// Sums beyond 2^24 are rounded once when they become floats.
TEST(Step, NoiseIsAddedAsIntegersAndScaledAsFloats) {
  std::mt19937_64 random(TestSeed(1));
  for (const OpTable* ops : Tables()) {
    for (size_t n : kTestSizes) {
      GuardedMatrixOf<int64_t> sum(1, n, n), noise(1, n, n);
      GuardedMatrix y(1, n, n);
      for (size_t i = 0; i < n; ++i) {
        *sum.at(0, i) = static_cast<int64_t>(random()) >> (8 + i % 50);
        *noise.at(0, i) = static_cast<int64_t>(random()) >> (8 + i % 53);
      }
      ops->noised_sum({.sum = sum.data(), .noise = noise.data(), .y = y.data(), .n = n, .scale = 1.3e-5f});
      for (size_t i = 0; i < n; ++i) {
        const auto whole = static_cast<float>(*sum.at(0, i) + *noise.at(0, i));
        ASSERT_EQ(*y.at(0, i), whole * 1.3e-5f) << ops->name << " " << i;
      }
      EXPECT_TRUE(y.GuardsIntact() && sum.GuardsIntact());
    }
  }
}

TEST(Step, MovesAreSquaredHeldToOneAndAveragedByRow) {
  std::mt19937_64 random(TestSeed(2));
  for (const OpTable* ops : Tables()) {
    for (const auto& [rows, n] : std::initializer_list<std::pair<size_t, size_t>>{{0, 3}, {1, 1}, {5, 33}, {2, 700}}) {
      GuardedMatrix v(rows, n, n), variance(rows, 1, 1);
      v.Fill(random, std::exponential_distribution<float>(10.0f)), variance.Fill(0.5f);
      if (rows > 0) *v.at(0, 0) = 0;
      ops->add_squared_moves({.v_RN = v.data(),
                              .variance_R = variance.data(),
                              .rows = rows,
                              .n = n,
                              .size = 0.2f,
                              .correction = 1.7f,
                              .epsilon = 1e-4f,
                              .scale = 3});
      for (size_t r = 0; r < rows; ++r) {
        double mean = 0;
        for (size_t i = 0; i < n; ++i) {
          const double move = std::min(1.0, 0.2 / (std::sqrt(1.7 * static_cast<double>(*v.at(r, i))) + 1e-4));
          mean += move * move / static_cast<double>(n);
        }
        EXPECT_NEAR(*variance.at(r, 0), 0.5 + 3 * mean, 1e-5 * (0.5 + 3 * mean)) << ops->name << " " << n;
      }
      EXPECT_TRUE(variance.GuardsIntact());
    }
  }
}

TEST(Step, WithoutMomentsEveryMoveIsOfTheSameSize) {
  for (const OpTable* ops : Tables()) {
    std::vector<float> variance(3, 0.5f);
    ops->add_squared_moves({.v_RN = nullptr, .variance_R = variance.data(), .rows = 3, .n = 40, .size = 2, .scale = 3});
    for (float v : variance) EXPECT_NEAR(v, 12.5f, 1e-5f) << ops->name;
  }
}

}  // namespace
}  // namespace wisp::kernels
