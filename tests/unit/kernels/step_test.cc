// The end of a step in a device's memory equals the host's loops.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::step_test {
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
      BasicGuardedMatrix<int64_t> sum(1, n, n), noise(1, n, n);
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

// Rows of a table are named in any order. The named ones move as they would alone, the others stay.
TEST(Step, NamedRowsAreSteppedAndSquared) {
  std::mt19937_64 random(TestSeed(3));
  constexpr size_t kRows = 6, kNamed = 3;
  for (const OpTable* ops : TestedOps()) {
    for (const size_t d : {1, 5, 40}) {
      BasicGuardedMatrix<uint32_t> named(1, kNamed, kNamed);
      const uint32_t order[] = {4, 0, 3};
      std::copy_n(order, kNamed, named.data());
      GuardedMatrix g(kNamed, d, d), w(kRows, d, d), m(kRows, d, d), v(kRows, d, d), variance(kRows, 1, 1);
      g.Fill(random, std::normal_distribution<float>());
      for (GuardedMatrix* x : {&w, &m, &v, &variance}) x->Fill(random, std::exponential_distribution<float>());
      for (const bool is_adam : {true, false}) {
        std::vector<float> of[3];
        for (size_t i = 0; i < 3; ++i) {
          const GuardedMatrix& x = *std::array{&w, &m, &v}[i];
          of[i].assign(x.data(), x.data() + kRows * d);
        }
        AdamArgs<> adam{.w = w.data(), .m = m.data(), .v = v.data(), .g = g.data(), .n = kNamed * d, .rate = 0.1f};
        adam.beta1 = 0.9f, adam.beta2 = 0.99f, adam.epsilon = 1e-3f, adam.decay = 0.1f;
        adam.correction1 = 2, adam.correction2 = 3, adam.row_J = named.data(), adam.d = d;
        SgdArgs<> sgd{.w = w.data(), .m = m.data(), .g = g.data(), .n = kNamed * d, .rate = 0.1f, .momentum = 0.5f};
        sgd.decay = 0.1f, sgd.row_J = named.data(), sgd.d = d;
        is_adam ? ops->adam(adam) : ops->sgd(sgd);
        for (size_t j = 0; j < kNamed; ++j) {
          AdamArgs<> alone = adam;
          const size_t at = order[j] * d;
          alone.w = of[0].data() + at, alone.m = of[1].data() + at, alone.v = of[2].data() + at;
          alone.g = g.at(j, 0), alone.n = d, alone.row_J = nullptr;
          SgdArgs<> alone_sgd = sgd;
          alone_sgd.w = alone.w, alone_sgd.m = alone.m, alone_sgd.g = alone.g, alone_sgd.n = d;
          alone_sgd.row_J = nullptr;
          is_adam ? ReferenceOps().adam(alone) : ReferenceOps().sgd(alone_sgd);
        }
        for (size_t i = 0; i < kRows * d; ++i) {
          ASSERT_NEAR(w.data()[i], of[0][i], 1e-5f) << ops->name << " " << d << " " << i;
          ASSERT_NEAR(m.data()[i], of[1][i], 1e-5f) << ops->name;
          ASSERT_NEAR(v.data()[i], of[2][i], 1e-5f) << ops->name;
        }
      }
      if (ops->add_squared_moves == nullptr) continue;
      const std::vector<float> before(variance.data(), variance.data() + kRows);
      AddSquaredMovesArgs<> moves{
          .v_RN = v.data(), .variance_R = variance.data(), .rows = kNamed, .n = d, .size = 0.1f};
      moves.correction = 1, moves.epsilon = 1e-4f, moves.scale = 2, moves.row_R = named.data();
      ops->add_squared_moves(moves);
      for (size_t r = 0; r < kRows; ++r) {
        double mean = 0;
        for (size_t i = 0; i < d; ++i)
          mean += std::pow(std::min(1.0, 0.1 / (std::sqrt(static_cast<double>(*v.at(r, i))) + 1e-4)), 2) /
                  static_cast<double>(d);
        const bool is_named = std::find(order, order + kNamed, r) != order + kNamed;
        EXPECT_NEAR(*variance.at(r, 0), before[r] + (is_named ? 2 * mean : 0), 1e-4) << ops->name << " " << r;
      }
      EXPECT_TRUE(w.GuardsIntact() && m.GuardsIntact() && v.GuardsIntact() && variance.GuardsIntact());
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::step_test
