// Matrices of blocks: how they are made, and what every table's ops promise of them.
#include "tests/unit/kernels/blocks_test_util.h"

namespace wisp::kernels {
namespace {

// All tables: within what kernels/blocks.h promises, of x as it is.
TEST(Blocks, EveryTableKeepsItsPromise) {
  std::mt19937_64 random(TestSeed(93));
  for (const OpTable* ops : TestedOps()) {
    for (const BlockBits bits : kAllBits) {
      const Shape s{.rows = 5, .n = 37, .k = 150, .first = 9};
      const Blocks w(bits, s.first + s.n, s.k, random);
      Product p(s, Store::kAssign, random);
      ops->multiply_blocks(p.Args(s, w, Store::kAssign, true));
      for (size_t r = 0; r < s.rows; ++r) {
        for (size_t j = 0; j < s.n; ++j) {
          double sum = *p.bias.at(0, j), allowed = 1e-6;
          for (size_t i = 0; i < s.k; ++i) {
            const size_t begin = i / kBlockColumns * kBlockColumns, end = std::min(s.k, begin + kBlockColumns);
            float largest = 0;
            for (size_t c = begin; c < end; ++c) largest = std::max(largest, std::abs(*p.x.at(r, c)));
            const double weight = w.Weight(s.first + j, i);
            sum += weight * *p.x.at(r, i);
            allowed += std::abs(weight) * (largest / 253.0 + 4 * (s.k + 8) * kEpsilon * std::abs(*p.x.at(r, i)));
          }
          ASSERT_NEAR(*p.y.at(r, j), sum, allowed) << ops->name;
        }
      }
    }
  }
}

TEST(Blocks, WeightsAreTheNearestAndWideningGivesThem) {
  std::mt19937_64 random(TestSeed(94));
  for (const BlockBits bits : kAllBits) {
    const size_t n = 35, k = 77;
    const Blocks w(bits, n, k, random);
    std::vector<float> y(3 * k, kNan);
    WidenBlocks(w.matrix(), 15, 3, k, y.data());
    for (size_t i = 0; i < 3 * k; ++i) ASSERT_EQ(y[i], static_cast<float>(w.Weight(15 + i / k, i % k)));
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < k; ++i) {
        // Half a step, and what the scale is off by: 2^-11 of up to 127 or 8 steps. 7 is the last of 4 bits.
        const double step = std::abs(reference::BlockScale(w.matrix(), j, i, k));
        const double error = std::abs(w.Weight(j, i) - w.floats()[j * k + i]);
        ASSERT_LE(error, step * (bits == BlockBits::kEight ? 0.6 : 1.01)) << j << ", " << i;
      }
    }
  }
}

TEST(Blocks, EmbeddingEqualsItsFormulaToTheBit) {
  std::mt19937_64 random(TestSeed(95));
  const size_t n = 35, d = 77;
  const std::vector<int32_t> ids = {34, -1, 0, 16, 16};
  std::vector<float> positions(ids.size() * d);
  std::vector<Half> halves;
  for (float& x : positions) halves.push_back(ToHalf(x = std::normal_distribution<float>()(random)));
  for (const BlockBits bits : kAllBits) {
    const Blocks w(bits, n, d, random);
    for (const OpTable* ops : TestedOps()) {
      for (int kind = 0; kind < 3; ++kind) {
        std::vector<float> y(ids.size() * d, kNan);
        ops->embed_blocks({.table = w.matrix(),
                           .positions_TD = kind == 1 ? positions.data() : nullptr,
                           .half_positions_TD = kind == 2 ? halves.data() : nullptr,
                           .ids_T = ids.data(),
                           .y_TD = y.data(),
                           .rows = ids.size(),
                           .d = d,
                           .scale = 1.7f});
        for (size_t i = 0; i < y.size(); ++i) {
          const int32_t id = ids[i / d];
          float expected = id < 0 ? 0.0f : 1.7f * static_cast<float>(w.Weight(static_cast<size_t>(id), i % d));
          if (id >= 0 && kind > 0) expected += kind == 1 ? positions[i] : ToFloat(halves[i]);
          ASSERT_EQ(y[i], expected) << ops->name;
        }
      }
    }
  }
}

TEST(Blocks, ScalesBeyondHalvesAreRefused) {
  std::vector<float> w(32, 0.0f);
  alignas(64) std::byte bytes[1024];
  w[5] = 1e7f;
  EXPECT_FALSE(PackBlocks(BlockBits::kEight, w.data(), 1, 32, bytes));
  w[5] = 127 * 65000.0f;
  EXPECT_TRUE(PackBlocks(BlockBits::kEight, w.data(), 1, 32, bytes));
  EXPECT_TRUE(HasFiniteScales({bytes, BlockBits::kEight}, 1, 32));
  reinterpret_cast<Half*>(bytes)[3] = {0x7c00};
  EXPECT_FALSE(HasFiniteScales({bytes, BlockBits::kEight}, 1, 32));
}

}  // namespace
}  // namespace wisp::kernels
