// The int8 kernels that run here give the bits of plain loops that quantise, multiply in 64-bit integers and scale.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/int8/kernel.h"
#include "kernels/simd/processor.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::int8_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct PlainRow {
  std::vector<int64_t> q;
  float scale = 0;
};

PlainRow QuantisePlainly(const float* x, size_t k) {
  PlainRow row;
  row.q.assign(k, 0);
  float largest = 0;
  for (size_t i = 0; i < k; ++i) {
    if (!std::isfinite(x[i])) return row.scale = kNan, row;
    largest = std::max(largest, std::abs(x[i]));
  }
  if (largest < 0x1p-100f) return row;
  row.scale = largest / 127.0f;
  const float inverse = 127.0f / largest;
  for (size_t i = 0; i < k; ++i) row.q[i] = static_cast<int64_t>(std::nearbyint(x[i] * inverse));
  return row;
}

struct Shape {
  size_t rows, n, k, pad;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "rows " << s.rows << ", n " << s.n << ", k " << s.k << ", stride + " << s.pad;
}

struct Problem {
  Problem(const Shape& shape, Store how, bool with_bias, std::mt19937_64& random)
      : s(shape),
        store(how),
        biased(with_bias),
        x(s.rows, s.k, s.k + s.pad),
        w(s.n, s.k, s.k + s.pad),
        bias(1, s.n, s.n),
        y(s.rows, s.n, s.n + s.pad) {
    std::normal_distribution<float> normal;
    x.Fill(random, normal), w.Fill(random, normal), bias.Fill(random, normal), y.Fill(random, normal);
    if (store == Store::kAssign) y.Fill(kNan);
  }

  void Run(const int8::Kernel& kernel) {
    const size_t size = int8::PackedSize(kernel, s.n, s.k);
    GuardedMatrix packed(1, size, size);
    packed.Fill(kNan);
    int8::PackWeights(kernel, {.w_NK = w.data(), .ldw = w.ld(), .packed = packed.data(), .n = s.n, .k = s.k});
    EXPECT_TRUE(packed.GuardsIntact());
    int8::LinearForward(kernel, {.x_RK = x.data(),
                                 .ldx = x.ld(),
                                 .packed = packed.data(),
                                 .bias_N = biased ? bias.data() : nullptr,
                                 .y_RN = y.data(),
                                 .ldy = y.ld(),
                                 .rows = s.rows,
                                 .n = s.n,
                                 .k = s.k,
                                 .store = store});
    EXPECT_TRUE(y.GuardsIntact());
  }

  // Returns the expected y, from its current contents.
  std::vector<float> Expected() const {
    std::vector<PlainRow> channels;
    for (size_t j = 0; j < s.n; ++j) channels.push_back(QuantisePlainly(w.at(j, 0), s.k));
    std::vector<float> expected;
    for (size_t r = 0; r < s.rows; ++r) {
      const PlainRow row = QuantisePlainly(x.at(r, 0), s.k);
      for (size_t j = 0; j < s.n; ++j) {
        int64_t sum = 0;
        for (size_t i = 0; i < s.k; ++i) sum += row.q[i] * channels[j].q[i];
        const float scaled = static_cast<float>(sum) * row.scale * channels[j].scale;
        const float value = scaled + (biased ? *bias.at(0, j) : 0.0f);
        expected.push_back(store == Store::kAdd ? *y.at(r, j) + value : value);
      }
    }
    return expected;
  }

  // Runs and compares bit by bit; NaNs equal NaNs.
  void Check(const int8::Kernel& kernel) {
    const std::vector<float> expected = Expected();
    Run(kernel);
    for (size_t r = 0; r < s.rows; ++r) {
      for (size_t j = 0; j < s.n; ++j) {
        const float e = expected[r * s.n + j], actual = *y.at(r, j);
        ASSERT_TRUE(std::isnan(e) ? std::isnan(actual) : actual == e)
            << actual << " for " << e << " at " << r << ", " << j << "; " << s;
      }
    }
  }

  Shape s;
  Store store;
  bool biased;
  GuardedMatrix x, w, bias, y;
};

class Int8Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (int8::Kernels().empty()) GTEST_SKIP() << "no kernel for this processor";
    for (const int8::Kernel* kernel : int8::Kernels()) std::cout << kernel->name << "\n";
  }
  std::mt19937_64 random_{TestSeed(71)};
};

TEST_F(Int8Test, EveryKernelGivesTheBitsOfPlainLoops) {
  std::vector<Shape> shapes = {{0, 0, 0, 0},    {0, 5, 3, 1},     {5, 0, 3, 1},     {5, 3, 0, 1},     {1, 1, 1, 0},
                               {1, 300, 64, 0}, {14, 32, 64, 0},  {15, 33, 300, 3}, {29, 64, 513, 0}, {45, 200, 130, 1},
                               {150, 7, 9, 1},  {27, 130, 66, 5}, {3, 97, 4096, 0}};
  for (size_t rows = 1; rows <= 30; ++rows)
    shapes.push_back({rows, PickSize(random_), PickSize(random_), random_() % 6});
  for (size_t n = 1; n <= 130; n += n < 40 ? 1 : 7)
    shapes.push_back({PickSize(random_), n, PickSize(random_), random_() % 6});
  for (size_t n = 1; n <= 130; n += 3) shapes.push_back({1, n, PickSize(random_), random_() % 6});
  for (size_t k = 1; k <= 70; ++k) shapes.push_back({PickSize(random_), PickSize(random_), k, random_() % 6});
  for (const int8::Kernel* kernel : int8::Kernels()) {
    for (const Shape& s : shapes) {
      SCOPED_TRACE(kernel->name);
      Problem(s, random_() % 2 == 0 ? Store::kAssign : Store::kAdd, random_() % 2 == 0, random_).Check(*kernel);
      if (HasFatalFailure()) return;
    }
  }
}

// The products above are quantised by the best instruction set alone. Here half of the numbers lie halfway between two
// integers.
TEST_F(Int8Test, EveryInstructionSetQuantisesAlike) {
  using int8::Format;
  std::normal_distribution<float> normal;
  for (int64_t left = ProcessorTargets(); left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    const auto quantise = int8::Quantiser(target);
    const auto quantise_blocks = int8::BlockQuantiser(target);
    if (quantise == nullptr || quantise_blocks == nullptr) continue;
    for (size_t k = 1; k <= 2 * kBlockColumns + 7; ++k) {
      SCOPED_TRACE(testing::Message() << "target " << target << ", k " << k);
      std::vector<float> x(k);
      for (float& v : x) v = random_() % 2 == 0 ? 20 * normal(random_) : static_cast<float>(random_() % 254) - 126.5f;
      for (size_t i = 0; i < k; i += kBlockColumns) x[i + random_() % std::min(kBlockColumns, k - i)] = 127;
      for (float& v : x) v = std::clamp(v, -127.0f, 127.0f);
      const std::vector<int64_t> q = QuantisePlainly(x.data(), k).q;
      const int64_t sum = std::accumulate(q.begin(), q.end(), int64_t{0});
      for (const Format format : {Format::kSigned, Format::kShifted, Format::kWide}) {
        std::vector<int8_t> row(int8::RowBytes(format));
        std::vector<int16_t> wide(int8::kMaxInner);
        int32_t added = 0;
        for (int32_t* sums : {static_cast<int32_t*>(nullptr), format == Format::kSigned ? &added : nullptr}) {
          ASSERT_EQ(quantise(x.data(), k, format, reinterpret_cast<uint8_t*>(row.data()), sums), 1);
          std::memcpy(wide.data(), row.data(), format == Format::kWide ? 2 * k : 0);
          for (size_t i = 0; i < k; ++i) {
            const int actual = format == Format::kWide ? wide[i] : format == Format::kSigned ? row[i] : row[i] ^ -128;
            ASSERT_EQ(static_cast<int8_t>(actual), q[i]) << x[i];
          }
        }
        if (format == Format::kSigned) {
          EXPECT_EQ(added, sum);
        }
        if (format == Format::kShifted) continue;
        const auto blocks = std::make_unique<int8::BlockRow>();
        quantise_blocks(x.data(), k, format, PanelBits::kEight, *blocks);
        std::memcpy(wide.data(), blocks->q, 2 * k);
        for (size_t i = 0; i < k; ++i) ASSERT_EQ(format == Format::kWide ? wide[i] : blocks->q[i], q[i]) << x[i];
      }
    }
  }
}

// All factors are 127 or -127: the largest possible sums, and the largest that the shift makes.
TEST_F(Int8Test, TheLargestSumsAreExact) {
  for (const int8::Kernel* kernel : int8::Kernels()) {
    for (float sign : {1.0f, -1.0f}) {
      SCOPED_TRACE(kernel->name);
      Problem p({15, 40, int8::kMaxInner, 0}, Store::kAssign, false, random_);
      p.x.Fill(127);
      p.w.Fill(sign * 127);
      p.Run(*kernel);
      EXPECT_EQ(*p.y.at(0, 0), sign * 127 * 127 * int8::kMaxInner);
      EXPECT_EQ(*p.y.at(14, 39), sign * 127 * 127 * int8::kMaxInner);
    }
  }
}

TEST_F(Int8Test, RowsWithoutAScaleAreDefined) {
  for (const int8::Kernel* kernel : int8::Kernels()) {
    SCOPED_TRACE(kernel->name);
    Problem p({16, 37, 45, 2}, Store::kAssign, true, random_);
    for (size_t i = 0; i < 45; ++i) {
      *p.x.at(3, i) = 0;
      *p.x.at(4, i) = i % 2 == 0 ? 0.0f : 1e-40f;  // subnormal
      *p.x.at(5, i) *= 1e37f;
      *p.x.at(6, i) *= 1e-37f;
      *p.x.at(7, i) *= 1e-28f;
      *p.w.at(36, i) = -0.0f;
    }
    *p.x.at(8, 44) = kNan;
    *p.x.at(9, 1) = kInfinity;
    *p.x.at(10, 0) = -kInfinity;
    *p.x.at(15, 7) = -kNan;
    *p.w.at(2, 3) = kInfinity;
    *p.w.at(33, 44) = kNan;
    p.Check(*kernel);
    EXPECT_EQ(*p.y.at(3, 0), *p.bias.at(0, 0));
    EXPECT_EQ(*p.y.at(0, 36), *p.bias.at(0, 36));
    EXPECT_TRUE(std::isnan(*p.y.at(9, 0)));
    EXPECT_TRUE(std::isnan(*p.y.at(0, 33)));
    EXPECT_TRUE(std::isfinite(*p.y.at(0, 0)));
  }
}

// The key/value cache of a session relies on this.
TEST_F(Int8Test, ARowDoesNotDependOnItsNeighbours) {
  for (const int8::Kernel* kernel : int8::Kernels()) {
    SCOPED_TRACE(kernel->name);
    Problem p({33, 150, 70, 1}, Store::kAssign, true, random_);
    std::vector<float> packed(int8::PackedSize(*kernel, p.s.n, p.s.k)), alone(p.s.n);
    int8::PackWeights(*kernel, {.w_NK = p.w.data(), .ldw = p.w.ld(), .packed = packed.data(), .n = p.s.n, .k = p.s.k});
    p.Run(*kernel);
    for (size_t r = 0; r < p.s.rows; ++r) {
      int8::LinearForward(*kernel, {.x_RK = p.x.at(r, 0),
                                    .ldx = p.s.k,
                                    .packed = packed.data(),
                                    .bias_N = p.bias.data(),
                                    .y_RN = alone.data(),
                                    .ldy = p.s.n,
                                    .rows = 1,
                                    .n = p.s.n,
                                    .k = p.s.k,
                                    .store = Store::kAssign});
      for (size_t j = 0; j < p.s.n; ++j) ASSERT_EQ(alone[j], *p.y.at(r, j)) << r << ", " << j;
    }
  }
}

// Operands end where a page does, so a read or write past them crashes.
TEST_F(Int8Test, NothingIsReadPastTheEnds) {
  for (const int8::Kernel* kernel : int8::Kernels()) {
    for (size_t n : {1, 31, 37, 64, 129}) {
      for (size_t k : {1, 7, 16, 65}) {
        const size_t rows = 15;
        PageEndFloats x(rows * k), w(n * k), bias(n), y(rows * n), packed(int8::PackedSize(*kernel, n, k));
        std::fill_n(x.data(), rows * k, 1.0f), std::fill_n(w.data(), n * k, 2.0f), std::fill_n(bias.data(), n, 3.0f);
        int8::PackWeights(*kernel, {.w_NK = w.data(), .ldw = k, .packed = packed.data(), .n = n, .k = k});
        int8::LinearForward(*kernel, {.x_RK = x.data(),
                                      .ldx = k,
                                      .packed = packed.data(),
                                      .bias_N = bias.data(),
                                      .y_RN = y.data(),
                                      .ldy = n,
                                      .rows = rows,
                                      .n = n,
                                      .k = k,
                                      .store = Store::kAssign});
        EXPECT_NEAR(y.data()[rows * n - 1], 3.0f + 2.0f * static_cast<float>(k), 1e-3f);
      }
    }
  }
}

// Compares the table with exact products: each factor is off by at most half of its scale.
TEST_F(Int8Test, TheTableKeepsTheErrorOfQuantising) {
  const OpTable* ops = Int8Ops();
  ASSERT_NE(ops, nullptr);
  EXPECT_STREQ(ops->name, int8::Kernels()[0]->name);
  const size_t rows = 20, n = 100, k = 200;
  EXPECT_LT(ops->packed_size(n, k), BestOps().packed_size(n, k) / 2);
  Problem p({rows, n, k, 0}, Store::kAssign, true, random_);
  std::vector<float> packed(ops->packed_size(n, k));
  ops->pack_weights({.w_NK = p.w.data(), .ldw = k, .packed = packed.data(), .n = n, .k = k});
  ops->linear_forward({.x_RK = p.x.data(),
                       .ldx = k,
                       .packed = packed.data(),
                       .bias_N = p.bias.data(),
                       .y_RN = p.y.data(),
                       .ldy = n,
                       .rows = rows,
                       .n = n,
                       .k = k,
                       .store = Store::kAssign});
  for (size_t r = 0; r < rows; ++r) {
    for (size_t j = 0; j < n; ++j) {
      const double sx = QuantisePlainly(p.x.at(r, 0), k).scale, sw = QuantisePlainly(p.w.at(j, 0), k).scale;
      double exact = *p.bias.at(0, j), bound = 0;
      for (size_t i = 0; i < k; ++i) {
        const double x = *p.x.at(r, i), w = *p.w.at(j, i);
        exact += x * w;
        bound += (sx * std::abs(w) + sw * std::abs(x) + sx * sw / 2) / 2;
      }
      ASSERT_NEAR(*p.y.at(r, j), exact, bound * 1.0001);
    }
  }
}

TEST_F(Int8Test, LongerProductsStayFloat) {
  const OpTable* ops = Int8Ops();
  const size_t k = int8::kMaxInner + 1;
  EXPECT_EQ(ops->packed_size(3, k), BestOps().packed_size(3, k));
  std::vector<float> x(k, 1.0f), w(3 * k, 0.001f), y(3), packed(ops->packed_size(3, k));
  x[0] = 1000;  // would cost the others most of their digits
  ops->pack_weights({.w_NK = w.data(), .ldw = k, .packed = packed.data(), .n = 3, .k = k});
  ops->linear_forward({.x_RK = x.data(),
                       .ldx = k,
                       .packed = packed.data(),
                       .bias_N = nullptr,
                       .y_RN = y.data(),
                       .ldy = 3,
                       .rows = 1,
                       .n = 3,
                       .k = k,
                       .store = Store::kAssign});
  for (float v : y) EXPECT_NEAR(v, 0.001 * (1000 + int8::kMaxInner), 1e-3);
}

}  // namespace
}  // namespace wisp::kernels::int8_test
