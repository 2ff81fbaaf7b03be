// Outer products as integers: rounding without bias, exact norms, and exact sums whatever fits into 32 bits together.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::integers_test {
namespace {

using Integers = BasicGuardedMatrix<int16_t>;

std::vector<const OpTable*> Tables() {
  std::vector<const OpTable*> tables;
  for (const OpTable* ops : TestedOps()) {
    if (ops->quantise_rows != nullptr) tables.push_back(ops);
  }
  return tables;
}

struct Rounded {
  Rounded(size_t rows, size_t n) : y(rows, n, n + 3), largest(rows, -1), squares(rows, -1) {}
  Integers y;
  std::vector<int32_t> largest;
  std::vector<int64_t> squares;
};

void Round(const OpTable& ops, const GuardedMatrix& x, const std::vector<float>& scale,
           const std::vector<uint32_t>& seed, Rounded& out) {
  ops.quantise_rows({.x_RN = x.data(),
                     .ldx = x.ld(),
                     .scale_R = scale.data(),
                     .seed_R = seed.data(),
                     .y_RN = out.y.data(),
                     .ldy = out.y.ld(),
                     .rows = x.rows(),
                     .n = x.cols(),
                     .largest_R = out.largest.data(),
                     .squares_R = out.squares.data()});
}

// Every table rounds to the same integers, and reports them correctly. Rows of scale 0 are zero, NaN or not.
TEST(Integers, EveryTableRoundsToTheSame) {
  std::mt19937_64 random(TestSeed(1));
  for (size_t n : kTestSizes) {
    const size_t rows = 5;
    GuardedMatrix x(rows, n, n + 2);
    x.Fill(random, std::normal_distribution<float>(0, 3));
    const std::vector<float> scale = {100, 1e-3f, 0, 1e6f, 7};
    std::vector<uint32_t> seed;
    for (size_t r = 0; r < rows; ++r) seed.push_back(static_cast<uint32_t>(random()));
    for (size_t i = 0; i < n; ++i) *x.at(2, i) = std::nanf("");
    Rounded expected(rows, n);
    Round(ReferenceOps(), x, scale, seed, expected);
    for (const OpTable* ops : Tables()) {
      Rounded got(rows, n);
      Round(*ops, x, scale, seed, got);
      for (size_t r = 0; r < rows; ++r) {
        int32_t largest = 0;
        int64_t squares = 0;
        for (size_t i = 0; i < n; ++i) {
          const int32_t y = *got.y.at(r, i);
          ASSERT_EQ(y, *expected.y.at(r, i)) << ops->name << " " << r << " " << i;
          ASSERT_LE(std::abs(y), kLargestInteger);
          if (r == 2) {
            ASSERT_EQ(y, 0);
          }
          if (r < 2) {
            ASSERT_LE(std::abs(static_cast<double>(y) - static_cast<double>(*x.at(r, i)) * scale[r]), 1.001);
          }
          largest = std::max(largest, std::abs(y));
          squares += int64_t{y} * y;
        }
        EXPECT_EQ(got.largest[r], largest) << ops->name;
        EXPECT_EQ(got.squares[r], squares) << ops->name;
      }
      EXPECT_TRUE(got.y.GuardsIntact()) << ops->name;
    }
  }
}

// Between two integers, the mean over places and seeds is the value itself, where nearest integers would give 0. The
// bound is 4.5 standard deviations: a false alarm in 1e5 runs.
TEST(Integers, RoundingHasNoBias) {
  std::mt19937_64 random(TestSeed(2));
  const size_t rows = 64, n = 1000;
  for (float value : {0.01f, 0.3f, -0.3f, -7.9f, 200.5f}) {
    GuardedMatrix x(rows, n, n);
    x.Fill(value);
    const std::vector<float> scale(rows, 1);
    std::vector<uint32_t> seed;
    for (size_t r = 0; r < rows; ++r) seed.push_back(static_cast<uint32_t>(random()));
    Rounded got(rows, n);
    Round(BestOps(), x, scale, seed, got);
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < n; ++i) sum += *got.y.at(r, i);
    }
    const double count = static_cast<double>(rows * n), part = value - std::floor(value);
    EXPECT_NEAR(sum / count, value, 4.5 * std::sqrt(part * (1 - part) / count) + 1e-4) << value;
  }
}

struct Factors {
  Factors(size_t rows, size_t n, size_t k, int32_t most, std::mt19937_64& random)
      : a(rows, n, n + 5), b(rows, k, k + 1) {
    std::uniform_int_distribution<int32_t> value(-most, most);
    a.Fill(random, value), b.Fill(random, value);
  }
  // Returns the product A^T B.
  std::vector<int64_t> Product() const {
    std::vector<int64_t> product(a.cols() * b.cols());
    for (size_t r = 0; r < a.rows(); ++r) {
      for (size_t i = 0; i < a.cols(); ++i) {
        for (size_t j = 0; j < b.cols(); ++j) product[i * b.cols() + j] += int64_t{*a.at(r, i)} * *b.at(r, j);
      }
    }
    return product;
  }
  Integers a, b;
};

constexpr std::pair<size_t, size_t> kShapes[] = {{1, 1}, {2, 5}, {33, 7}, {64, 65}, {100, 129}, {384, 70}};

// The norm of the integers is exact: it equals that of the product, formed and squared. Some rows are at the limit of
// 32 bits.
TEST(Integers, SquaresAreThoseOfTheFormedProduct) {
  std::mt19937_64 random(TestSeed(3));
  for (const OpTable* ops : Tables()) {
    for (const auto& [n, k] : kShapes) {
      for (size_t rows : {0, 1, 2, 3, 4, 5, 9, 22}) {
        for (const int32_t most : {3, 200, 2300}) {
          Factors f(rows, n, k, most, random);
          if (rows > 0 && most == 2300) {  // squares just below 2^31
            for (size_t i = 0; i < n; ++i) *f.a.at(rows / 2, i) = 0;
            *f.a.at(rows / 2, n - 1) = -kLargestInteger;
            if (n > 1) *f.a.at(rows / 2, 0) = kLargestInteger;
          }
          __extension__ __int128 squares = 0;
          for (int64_t p : f.Product()) squares += static_cast<__int128>(p) * p;
          const double got = ops->integer_outer_squares(
              {.a_RN = f.a.data(), .lda = f.a.ld(), .b_RK = f.b.data(), .ldb = f.b.ld(), .rows = rows, .n = n, .k = k});
          EXPECT_EQ(got, static_cast<double>(squares)) << ops->name << " " << n << " " << k << " " << rows;
        }
      }
    }
  }
}

TEST(Integers, SquaresOfFloatsAreThoseOfTheFormedProduct) {
  std::mt19937_64 random(TestSeed(4));
  for (const OpTable* ops : Tables()) {
    for (const auto& [n, k] : kShapes) {
      for (size_t rows : {0, 1, 3, 4, 13}) {
        GuardedMatrix a(rows, n, n + 5), b(rows, k, k + 1);
        a.Fill(random, std::normal_distribution<float>()), b.Fill(random, std::normal_distribution<float>());
        double expected = 0;
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; j < k; ++j) {
            double product = 0;
            for (size_t r = 0; r < rows; ++r)
              product += static_cast<double>(*a.at(r, i)) * static_cast<double>(*b.at(r, j));
            expected += product * product;
          }
        }
        std::vector<double> a_squares(rows), b_squares(rows);
        const double got = ops->outer_squares({.a_RN = a.data(),
                                               .lda = a.ld(),
                                               .b_RK = b.data(),
                                               .ldb = b.ld(),
                                               .rows = rows,
                                               .n = n,
                                               .k = k,
                                               .a_squares_R = a_squares.data(),
                                               .b_squares_R = b_squares.data()});
        double sum = 0;
        for (size_t r = 0; r < rows; ++r) {
          const double a2 = ops->sum_squares(a.at(r, 0), n), b2 = ops->sum_squares(b.at(r, 0), k);
          EXPECT_NEAR(a_squares[r], a2, 1e-5 * a2) << ops->name;
          EXPECT_NEAR(b_squares[r], b2, 1e-5 * b2) << ops->name;
          sum += std::sqrt(a2 * b2);
        }
        EXPECT_NEAR(got, expected, 1e-5 * sum * sum) << ops->name << " " << n << " " << k << " " << rows;
      }
    }
  }
}

void Accumulate(const OpTable& ops, const Factors& f, BasicGuardedMatrix<int64_t>& sum) {
  const size_t rows = f.a.rows(), n = f.a.cols(), k = f.b.cols();
  std::vector<int32_t> largest_a(rows), largest_b(rows), scratch(OuterScratch(rows, n, k));
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; ++i) largest_a[r] = std::max<int32_t>(largest_a[r], std::abs(*f.a.at(r, i)));
    for (size_t j = 0; j < k; ++j) largest_b[r] = std::max<int32_t>(largest_b[r], std::abs(*f.b.at(r, j)));
  }
  ops.accumulate_outer({.a_RN = f.a.data(),
                        .lda = f.a.ld(),
                        .largest_a_R = largest_a.data(),
                        .b_RK = f.b.data(),
                        .ldb = f.b.ld(),
                        .largest_b_R = largest_b.data(),
                        .sum_NK = sum.data(),
                        .ldsum = sum.ld(),
                        .rows = rows,
                        .n = n,
                        .k = k,
                        .scratch = scratch.data()});
}

// Sums equal those of plain loops, also if rows hold the largest integers, of which two fit into 32 bits.
TEST(Integers, SumsAreExactAlsoBeyond32Bits) {
  std::mt19937_64 random(TestSeed(5));
  for (const OpTable* ops : Tables()) {
    for (const auto& [n, k] : kShapes) {
      for (size_t rows : {0, 1, 2, 5, 8, 70}) {
        for (const int32_t most : {1, 300, kLargestInteger}) {
          Factors f(rows, n, k, most, random);
          if (most == kLargestInteger) f.a.Fill(kLargestInteger), f.b.Fill(-kLargestInteger);
          BasicGuardedMatrix<int64_t> sum(n, k, k + 3);
          sum.Fill(int64_t{1} << 40);
          Accumulate(*ops, f, sum);
          const std::vector<int64_t> product = f.Product();
          for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < k; ++j)
              ASSERT_EQ(*sum.at(i, j), product[i * k + j] + (int64_t{1} << 40))
                  << ops->name << " " << rows << " " << most;
          }
          EXPECT_TRUE(sum.GuardsIntact()) << ops->name;
        }
      }
    }
  }
}

// More rows than are packed together.
TEST(Integers, SumsOfManyRows) {
  std::mt19937_64 random(TestSeed(6));
  for (const OpTable* ops : Tables()) {
    const Factors f(1100, 9, 67, 90, random);
    BasicGuardedMatrix<int64_t> sum(9, 67, 67);
    Accumulate(*ops, f, sum);
    const std::vector<int64_t> product = f.Product();
    for (size_t i = 0; i < product.size(); ++i) ASSERT_EQ(*sum.at(i / 67, i % 67), product[i]) << ops->name;
  }
}

}  // namespace
}  // namespace wisp::kernels::integers_test
