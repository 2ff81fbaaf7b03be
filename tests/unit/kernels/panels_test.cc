// Matrices of blocks: how they are made, and what every table's ops promise for them.
#include "tests/unit/kernels/panels_test_util.h"

namespace wisp::kernels::panels_test {
namespace {

// All tables stay within the promise of kernels/panels.h, for the given x.
TEST(Panels, EveryTableKeepsItsPromise) {
  std::mt19937_64 random(TestSeed(93));
  for (const OpTable* ops : TestedOps()) {
    for (const PanelBits bits : kAllBits) {
      const PanelShape s{.rows = 5, .n = 37, .k = 150, .first = 9};
      const StoredPanels w(bits, s.first + s.n, s.k, random);
      PanelProduct p(s, Store::kAssign, random);
      ops->multiply_panels(p.Args(s, w, Store::kAssign, true));
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

TEST(Panels, Weights_AreTheNearestAndConvertBack) {
  std::mt19937_64 random(TestSeed(94));
  for (const PanelBits bits : kAllBits) {
    const size_t n = 35, k = 77;
    const StoredPanels w(bits, n, k, random);
    std::vector<float> y(3 * k, kNan);
    WidenPanels(w.matrix(), 15, 3, k, y.data());
    for (size_t i = 0; i < 3 * k; ++i) ASSERT_EQ(y[i], static_cast<float>(w.Weight(15 + i / k, i % k)));
    if (bits == PanelBits::kThirtyTwo) {
      ASSERT_TRUE(std::equal(y.begin(), y.end(), w.floats().begin() + 15 * k));
      continue;
    }
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < k; ++i) {
        // Half a step, and the error of the scale: 2^-11 of up to 127 or 8 steps. 7 is the largest with 4 bits.
        const double step = std::abs(reference::BlockScale(w.matrix(), j, i, k));
        const double error = std::abs(w.Weight(j, i) - w.floats()[j * k + i]);
        ASSERT_LE(error, step * (bits == PanelBits::kEight ? 0.6 : 1.01)) << j << ", " << i;
      }
    }
  }
}

// A model of floats answers the same whether its weights are packed on opening or multiplied in place.
void CheckAsIfPacked(const OpTable& ops, const PanelShape& s, Store store, bool biased, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << ops.name << ", rows " << s.rows << ", n " << s.n << ", k " << s.k << ", first "
                                  << s.first << ", biased " << biased);
  const StoredPanels w(PanelBits::kThirtyTwo, s.first + s.n + 3, s.k, random);
  PanelProduct p(s, store, random);
  std::vector<float> packed(ops.packed_size(s.n, s.k)), expected(s.rows * s.n);
  for (size_t i = 0; i < expected.size() && store == Store::kAdd; ++i) expected[i] = p.before[i];
  ops.pack_weights(
      {.w_NK = w.floats().data() + s.first * s.k, .ldw = s.k, .packed = packed.data(), .n = s.n, .k = s.k});
  ops.linear_forward({.x_RK = p.x.data(),
                      .ldx = p.x.ld(),
                      .packed = packed.data(),
                      .bias_N = biased ? p.bias.data() : nullptr,
                      .y_RN = expected.data(),
                      .ldy = s.n,
                      .rows = s.rows,
                      .n = s.n,
                      .k = s.k,
                      .store = store});
  ops.multiply_panels(p.Args(s, w, store, biased));
  ASSERT_TRUE(p.y.GuardsIntact());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(*p.y.at(i / s.n, i % s.n), expected[i]) << i;
}

TEST(Panels, FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked) {
  std::mt19937_64 random(TestSeed(96));
  const PanelShape shapes[] = {{1, 32, 32},       {1, 1, 1},      {1, 768, 100},    {2, 200, 33},  {3, 40, 64, 16},
                               {5, 7, 31, 3},     {9, 20, 5, 30}, {13, 33, 96, 15}, {26, 96, 300}, {29, 70, 513, 40},
                               {60, 90, 260, 31}, {4, 64, 1, 1},  {0, 5, 32},       {3, 0, 32, 5}, {14, 300, 260},
                               {1, 400, 200},     {2, 400, 200}};
  for (const OpTable* ops : AllOps()) {
    if (ops == &ReferenceOps()) continue;  // plain loops, in another order
    for (const PanelShape& s : shapes) {
      for (const bool biased : {false, true}) {
        CheckAsIfPacked(*ops, s, Store::kAssign, biased, random);
        CheckAsIfPacked(*ops, s, Store::kAdd, biased, random);
      }
    }
  }
}

TEST(Panels, NonFiniteFloats_AreFound) {
  const size_t n = 33, k = 5;
  std::vector<float> w(n * k, 1.0f);
  std::vector<float> room(PanelMatrixBytes(PanelBits::kThirtyTwo, n, k) / sizeof(float));
  auto* bytes = reinterpret_cast<std::byte*>(room.data());
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    ASSERT_TRUE(PackPanels(PanelBits::kThirtyTwo, w.data(), n, k, bytes));
    EXPECT_TRUE(HasFiniteNumbers({bytes, PanelBits::kThirtyTwo}, n, k));
    room[32 * k] = bad;  // in row 32
    EXPECT_FALSE(HasFiniteNumbers({bytes, PanelBits::kThirtyTwo}, n, k));
  }
}

TEST(Panels, EmbeddingEqualsItsFormulaToTheBit) {
  std::mt19937_64 random(TestSeed(95));
  const size_t n = 35, d = 77;
  const std::vector<int32_t> ids = {34, -1, 0, 16, 16};
  std::vector<float> positions(ids.size() * d);
  std::vector<Half> halves;
  for (float& x : positions) halves.push_back(ToHalf(x = std::normal_distribution<float>()(random)));
  for (const PanelBits bits : kAllBits) {
    const StoredPanels w(bits, n, d, random);
    for (const OpTable* ops : TestedOps()) {
      for (int kind = 0; kind < 3; ++kind) {
        std::vector<float> y(ids.size() * d, kNan);
        ops->embed_panels({.table = w.matrix(),
                           .positions_TD = kind == 1 ? positions.data() : nullptr,
                           .half_positions_TD = kind == 2 ? halves.data() : nullptr,
                           .ids_T = ids.data(),
                           .y_TD = y.data(),
                           .rows = ids.size(),
                           .d = d,
                           .scale = 1.7f});
        if (bits == PanelBits::kThirtyTwo && kind < 2 && ops != &ReferenceOps()) {
          std::vector<float> expected(y.size());
          ops->embed_forward({.table_MD = w.floats().data(),
                              .positions_TD = kind == 1 ? positions.data() : nullptr,
                              .ids_T = ids.data(),
                              .y_TD = expected.data(),
                              .rows = ids.size(),
                              .d = d,
                              .scale = 1.7f});
          ASSERT_EQ(y, expected) << ops->name;
          continue;
        }
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

TEST(Panels, ScalesBeyondFloat16_AreRefused) {
  std::vector<float> w(32, 0.0f);
  alignas(64) std::byte bytes[1024];
  w[5] = 1e7f;
  EXPECT_FALSE(PackPanels(PanelBits::kEight, w.data(), 1, 32, bytes));
  w[5] = 127 * 65000.0f;
  EXPECT_TRUE(PackPanels(PanelBits::kEight, w.data(), 1, 32, bytes));
  EXPECT_TRUE(HasFiniteNumbers({bytes, PanelBits::kEight}, 1, 32));
  reinterpret_cast<Half*>(bytes)[3] = {0x7c00};
  EXPECT_FALSE(HasFiniteNumbers({bytes, PanelBits::kEight}, 1, 32));
}

}  // namespace
}  // namespace wisp::kernels::panels_test
