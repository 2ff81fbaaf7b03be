// Compares products with matrices of blocks, by every kernel that this processor runs, with plain loops over the
// integers.
#include <tuple>

#include "kernels/int8/kernel.h"
#include "tests/unit/kernels/panels_test_util.h"

namespace wisp::kernels::block_kernels_test {
namespace {

// Computes a kernel's result in plain loops: x rounded block by block, exact sums, then double.
double Rounded(const StoredPanels& w, const float* x, size_t row, size_t k) {
  double y = 0;
  for (size_t first = 0; first < k; first += kBlockColumns) {
    const size_t end = std::min(k, first + kBlockColumns);
    float largest = 0;
    for (size_t i = first; i < end; ++i) {
      if (!std::isfinite(x[i])) return kNan;
      largest = std::max(largest, std::abs(x[i]));
    }
    if (largest < 0x1p-100f) continue;
    const float inverse = 127.0f / largest;
    for (size_t i = first; i < end; ++i)
      y += w.Weight(row, i) * std::nearbyint(x[i] * inverse) * (static_cast<double>(largest) / 127.0);
  }
  return y;
}

void CheckKernel(const int8::Kernel& kernel, PanelBits bits, const PanelShape& s, Store store,
                 std::mt19937_64& random) {
  const bool biased = store == Store::kAssign;
  SCOPED_TRACE(testing::Message() << kernel.name << ", bits " << static_cast<int>(bits) << ", rows " << s.rows << ", n "
                                  << s.n << ", k " << s.k << ", first " << s.first);
  const StoredPanels w(bits, s.first + s.n + 3, s.k, random);
  PanelProduct p(s, store, random);
  int8::MultiplyBlocks(kernel, p.Args(s, w, store, biased));
  ASSERT_TRUE(p.y.GuardsIntact());
  for (size_t r = 0; r < s.rows; ++r) {
    for (size_t j = 0; j < s.n; ++j) {
      const double expected =
          Rounded(w, p.x.at(r, 0), s.first + j, s.k) + (biased ? *p.bias.at(0, j) : 0.0) + p.before[r * s.n + j];
      double magnitude = std::abs(p.before[r * s.n + j]) + 4;
      for (size_t i = 0; i < s.k; ++i) magnitude += std::abs(w.Weight(s.first + j, i) * *p.x.at(r, i));
      ASSERT_NEAR(*p.y.at(r, j), expected, 4 * static_cast<double>(s.k + 8) * kEpsilon * magnitude) << r << ", " << j;
    }
  }
}

TEST(BlockKernels, EveryKernelEqualsPlainLoops) {
  ASSERT_FALSE(int8::Kernels().empty());
  std::mt19937_64 random(TestSeed(90));
  const PanelShape shapes[] = {{1, 16, 32},      {1, 1, 1},          {2, 17, 33},   {3, 40, 64, 16}, {5, 7, 31, 3},
                               {13, 33, 96, 15}, {26, 16, 65},       {1, 50, 2080}, {4, 20, 4100},   {12, 64, 100, 1},
                               {7, 129, 160},    {1, 300, 768, 256}, {0, 5, 32},    {3, 0, 32}};
  for (const int8::Kernel* kernel : int8::Kernels()) {
    for (const PanelBits bits : kIntegerBits) {
      for (const PanelShape& s : shapes) {
        CheckKernel(*kernel, bits, s, Store::kAssign, random);
        CheckKernel(*kernel, bits, s, Store::kAdd, random);
      }
    }
  }
}

// Every integer that a block can hold meets the largest x, so that sums reach their extremes.
TEST(BlockKernels, ExtremesAreExact) {
  for (const int8::Kernel* kernel : int8::Kernels()) {
    for (const PanelBits bits : kIntegerBits) {
      for (const float sign : {-1.0f, 1.0f}) {
        const size_t k = 96;
        std::vector<float> w(16 * k, sign * 127), x(k, 127.0f);
        alignas(64) std::byte bytes[8192];
        ASSERT_LE(PanelMatrixBytes(bits, 16, k), sizeof(bytes));
        ASSERT_TRUE(PackPanels(bits, w.data(), 16, k, bytes));
        float y[16];
        int8::MultiplyBlocks(*kernel, {.w = {bytes, bits},
                                       .first = 0,
                                       .x_RK = x.data(),
                                       .ldx = k,
                                       .bias_N = nullptr,
                                       .y_RN = y,
                                       .ldy = 16,
                                       .rows = 1,
                                       .n = 16,
                                       .k = k,
                                       .store = Store::kAssign});
        // With 4 bits the scale is 127 / -8, which float16 holds exactly.
        for (const float value : y) ASSERT_EQ(value, sign * 127 * 127 * 96) << kernel->name;
      }
    }
  }
}

TEST(BlockKernels, ARowDependsOnNothingBesideIt) {
  std::mt19937_64 random(TestSeed(91));
  for (const int8::Kernel* kernel : int8::Kernels()) {
    for (const PanelBits bits : kIntegerBits) {
      const PanelShape all{.rows = 29, .n = 70, .k = 200};
      const StoredPanels w(bits, all.n, all.k, random);
      PanelProduct together(all, Store::kAssign, random);
      int8::MultiplyBlocks(*kernel, together.Args(all, w, Store::kAssign, true));
      for (const auto& [row, first, n] : {std::tuple<size_t, size_t, size_t>{0, 0, 70}, {28, 17, 30}, {13, 69, 1}}) {
        std::vector<float> alone(n);
        MultiplyPanelsArgs a = together.Args(all, w, Store::kAssign, true);
        a.x_RK = together.x.at(row, 0), a.bias_N = together.bias.at(0, first);
        a.y_RN = alone.data(), a.ldy = n, a.rows = 1, a.first = first, a.n = n;
        int8::MultiplyBlocks(*kernel, a);
        for (size_t j = 0; j < n; ++j) ASSERT_EQ(alone[j], *together.y.at(row, first + j)) << kernel->name;
      }
    }
  }
}

TEST(BlockKernels, NonFiniteNumbers_GiveNansOnlyInTheirRow) {
  std::mt19937_64 random(TestSeed(92));
  for (const int8::Kernel* kernel : int8::Kernels()) {
    const PanelShape s{.rows = 3, .n = 20, .k = 100};
    const StoredPanels w(PanelBits::kEight, s.n, s.k, random);
    for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
      PanelProduct p(s, Store::kAssign, random);
      *p.x.at(1, 70) = bad;
      int8::MultiplyBlocks(*kernel, p.Args(s, w, Store::kAssign, false));
      for (size_t j = 0; j < s.n; ++j) {
        EXPECT_TRUE(std::isfinite(*p.y.at(0, j)) && std::isfinite(*p.y.at(2, j)));
        EXPECT_TRUE(std::isnan(*p.y.at(1, j)));
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::block_kernels_test
