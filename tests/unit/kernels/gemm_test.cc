// Compares products of every op table with double loops written here.
//
// Every check runs twice: on the table, where the error must stay within the contract of kernels/kernels.h, and on a
// copy that is wrong by four tolerances in one element, where the same check must notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::gemm_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double ProductTolerance(size_t inner, double sum_of_magnitudes) {
  return 4 * static_cast<double>(inner + 4) * kEpsilon * sum_of_magnitudes;
}

struct Shape {
  size_t rows, n, k;
  size_t pad;  // strides exceed widths by this
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "rows " << s.rows << ", n " << s.n << ", k " << s.k << ", stride + " << s.pad;
}

// Chosen corners, then a random part of the cube of sizes.
std::vector<Shape> Shapes(std::mt19937_64& random) {
  std::vector<Shape> shapes = {{0, 0, 0, 0},     {0, 5, 3, 1},      {5, 0, 3, 1},    {5, 3, 0, 1},    {1, 1, 1, 0},
                               {1, 300, 64, 0},  {2, 300, 64, 2},   {3, 300, 64, 5}, {14, 32, 64, 0}, {15, 33, 300, 3},
                               {29, 64, 513, 0}, {45, 600, 530, 1}, {513, 7, 9, 1},  {300, 65, 2, 0}, {9, 600, 3, 4},
                               {200, 64, 64, 0}, {40, 61, 61, 3},   {70, 62, 30, 2}};
  for (size_t size : kTestSizes) {
    shapes.push_back({size, PickSize(random), PickSize(random), PickSize(random, {0, 1, 5})});
    shapes.push_back({PickSize(random), size, PickSize(random), PickSize(random, {0, 1, 5})});
    shapes.push_back({PickSize(random), PickSize(random), size, PickSize(random, {0, 1, 5})});
  }
  for (int i = 0; i < 60; ++i) {
    shapes.push_back({PickSize(random), PickSize(random), PickSize(random), PickSize(random, {0, 1, 5})});
  }
  return shapes;
}

// The data of one product check: operands, a result with its previous contents, and the element to perturb.
struct Problem {
  Problem(std::mt19937_64& random, size_t out_rows, size_t out_cols, size_t pad, Store how)
      : out(out_rows, out_cols, out_cols + pad), store(how), before(out_rows * out_cols) {
    out.Fill(random, std::normal_distribution<float>());
    if (store == Store::kAssign) out.Fill(kNan);
    for (size_t r = 0; r < out_rows; ++r) {
      for (size_t c = 0; c < out_cols; ++c) before[r * out_cols + c] = store == Store::kAdd ? *out.at(r, c) : 0;
    }
    at_row = out_rows == 0 ? 0 : random() % out_rows;
    at_col = out_cols == 0 ? 0 : random() % out_cols;
  }

  // Runs `call`, then compares with `factor * terms + bias + before`. terms(r, c) returns {sum, sum of magnitudes}.
  template <class Call, class Terms>
  double Run(size_t inner, Call call, Terms terms) {
    const auto expected = [&](size_t r, size_t c) {
      auto [sum, magnitude] = terms(r, c);
      const double old = before[r * out.cols() + c];
      return std::pair<double, double>(sum + old, ProductTolerance(inner, magnitude + std::abs(old)));
    };
    const bool empty = out.rows() == 0 || out.cols() == 0;
    // Without any term the tolerance is zero; then any change counts.
    PlanPerturbation(empty ? nullptr : out.at(at_row, at_col),
                     empty ? 0 : std::max(4 * expected(at_row, at_col).second, 1e-3 * (inner == 0)));
    call();
    ErrorMeter meter;
    for (size_t r = 0; r < out.rows(); ++r) {
      for (size_t c = 0; c < out.cols(); ++c) {
        const auto [value, tolerance] = expected(r, c);
        meter.Add(*out.at(r, c), value, tolerance);
      }
    }
    EXPECT_TRUE(out.GuardsIntact()) << "wrote outside the result";
    return meter.worst();
  }

  GuardedMatrix out;
  Store store;
  std::vector<double> before;
  size_t at_row, at_col;
};

using Sums = std::pair<double, double>;

double CheckForward(const OpTable& ops, const Shape& s, Store store, bool with_bias, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::normal_distribution<float> normal;
  GuardedMatrix x(s.rows, s.k, s.k + s.pad), w(s.n, s.k, s.k + s.pad), bias(1, s.n, s.n);
  GuardedMatrix packed(1, ops.packed_size(s.n, s.k), ops.packed_size(s.n, s.k));
  x.Fill(random, normal);
  w.Fill(random, normal);
  bias.Fill(random, normal);
  packed.Fill(kNan);
  Problem problem(random, s.rows, s.n, s.pad, store);
  ops.pack_weights({.w_NK = w.data(), .ldw = w.ld(), .packed = packed.data(), .n = s.n, .k = s.k});
  EXPECT_TRUE(packed.GuardsIntact()) << "packing wrote past packed_size()";
  for (size_t i = 0; i < packed.cols(); ++i) EXPECT_FALSE(std::isnan(*packed.at(0, i))) << "packing left out " << i;
  return problem.Run(
      s.k,
      [&] {
        ops.linear_forward({.x_RK = x.data(),
                            .ldx = x.ld(),
                            .packed = packed.data(),
                            .bias_N = with_bias ? bias.data() : nullptr,
                            .y_RN = problem.out.data(),
                            .ldy = problem.out.ld(),
                            .rows = s.rows,
                            .n = s.n,
                            .k = s.k,
                            .store = store});
      },
      [&](size_t r, size_t j) {
        Sums sums = with_bias ? Sums(*bias.at(0, j), std::abs(*bias.at(0, j))) : Sums(0, 0);
        for (size_t i = 0; i < s.k; ++i) {
          const double term = static_cast<double>(*x.at(r, i)) * *w.at(j, i);
          sums.first += term;
          sums.second += std::abs(term);
        }
        return sums;
      });
}

double CheckBackwardInput(const OpTable& ops, const Shape& s, Store store, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::normal_distribution<float> normal;
  GuardedMatrix dy(s.rows, s.n, s.n + s.pad), w(s.n, s.k, s.k + s.pad);
  dy.Fill(random, normal);
  w.Fill(random, normal);
  Problem problem(random, s.rows, s.k, s.pad, store);
  return problem.Run(
      s.n,
      [&] {
        ops.linear_backward_input({.dy_RN = dy.data(),
                                   .lddy = dy.ld(),
                                   .w_NK = w.data(),
                                   .ldw = w.ld(),
                                   .dx_RK = problem.out.data(),
                                   .lddx = problem.out.ld(),
                                   .rows = s.rows,
                                   .n = s.n,
                                   .k = s.k,
                                   .store = store});
      },
      [&](size_t r, size_t i) {
        Sums sums(0, 0);
        for (size_t j = 0; j < s.n; ++j) {
          const double term = static_cast<double>(*dy.at(r, j)) * *w.at(j, i);
          sums.first += term;
          sums.second += std::abs(term);
        }
        return sums;
      });
}

double CheckBackwardWeight(const OpTable& ops, const Shape& s, Store store, float scale, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::normal_distribution<float> normal;
  GuardedMatrix dy(s.rows, s.n, s.n + s.pad), x(s.rows, s.k, s.k + s.pad);
  dy.Fill(random, normal);
  x.Fill(random, normal);
  Problem problem(random, s.n, s.k, s.pad, store);
  return problem.Run(
      s.rows,
      [&] {
        ops.linear_backward_weight({.dy_RN = dy.data(),
                                    .lddy = dy.ld(),
                                    .x_RK = x.data(),
                                    .ldx = x.ld(),
                                    .dw_NK = problem.out.data(),
                                    .lddw = problem.out.ld(),
                                    .rows = s.rows,
                                    .n = s.n,
                                    .k = s.k,
                                    .scale = scale,
                                    .store = store});
      },
      [&](size_t j, size_t i) {
        Sums sums(0, 0);
        for (size_t r = 0; r < s.rows; ++r) {
          const double term = static_cast<double>(scale) * *dy.at(r, j) * *x.at(r, i);
          sums.first += term;
          sums.second += std::abs(term);
        }
        return sums;
      });
}

double CheckColumnSum(const OpTable& ops, const Shape& s, Store store, float scale, uint64_t seed) {
  std::mt19937_64 random(seed);
  GuardedMatrix x(s.rows, s.n, s.n + s.pad);
  x.Fill(random, std::normal_distribution<float>());
  Problem problem(random, 1, s.n, 0, store);
  return problem.Run(
      s.rows,
      [&] {
        ops.column_sum({.x_RN = x.data(),
                        .ldx = x.ld(),
                        .out_N = problem.out.data(),
                        .rows = s.rows,
                        .n = s.n,
                        .scale = scale,
                        .store = store});
      },
      [&](size_t, size_t j) {
        Sums sums(0, 0);
        for (size_t r = 0; r < s.rows; ++r) {
          sums.first += static_cast<double>(scale) * *x.at(r, j);
          sums.second += std::abs(static_cast<double>(scale) * *x.at(r, j));
        }
        return sums;
      });
}

struct Case {
  const OpTable* ops;
  Shape shape;
  Store store;
  uint64_t seed;
};

// Runs `check` over all shapes and tables, correct and perturbed.
template <auto kEntry, class Check>
void HoldToContract(uint64_t usual_seed, Check check) {
  const uint64_t first_seed = TestSeed(usual_seed);
  std::mt19937_64 random(first_seed);
  const std::vector<Shape> shapes = Shapes(random);
  for (const OpTable* ops : TestedOps()) {
    const OpTable perturbed = PerturbedTable<kEntry>(*ops);
    double worst = 0;
    uint64_t number = 0;
    for (const Shape& s : shapes) {
      for (Store store : {Store::kAssign, Store::kAdd}) {
        SCOPED_TRACE(testing::Message() << ops->name << ": " << s << (store == Store::kAdd ? ", add" : ", assign"));
        const uint64_t seed = first_seed + ++number;
        const double error = check({ops, s, store, seed});
        EXPECT_LE(error, 1);
        worst = std::max(worst, error);
        if (ThePerturbation().at == nullptr) continue;  // the result is empty
        EXPECT_GT(check({&perturbed, s, store, seed}), 1) << "a wrong element went unnoticed";
      }
    }
    std::cout << ops->name << ": largest error " << worst << " of the tolerance\n";
  }
}

TEST(LinearForward, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::linear_forward>(
      1, [](const Case& c) { return CheckForward(*c.ops, c.shape, c.store, c.seed % 3 != 0, c.seed); });
}

TEST(LinearBackwardInput, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::linear_backward_input>(
      2, [](const Case& c) { return CheckBackwardInput(*c.ops, c.shape, c.store, c.seed); });
}

TEST(LinearBackwardWeight, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::linear_backward_weight>(3, [](const Case& c) {
    return CheckBackwardWeight(*c.ops, c.shape, c.store, c.seed % 2 == 0 ? 1.0f : -0.37f, c.seed);
  });
}

// A device splits the rows between blocks. Vectors are used where strides allow.
TEST(LinearBackwardWeight, ManyRowsDoToo) {
  const uint64_t seed = TestSeed(8);
  for (const OpTable* ops : TestedOps()) {
    const OpTable perturbed = PerturbedTable<&OpTable::linear_backward_weight>(*ops);
    for (const Shape& s : {Shape{129, 3, 5, 1}, {1000, 64, 64, 0}, {700, 2, 132, 4}, {2111, 65, 7, 3}}) {
      for (const Store store : {Store::kAssign, Store::kAdd}) {
        SCOPED_TRACE(testing::Message() << ops->name << ": " << s);
        EXPECT_LE(CheckBackwardWeight(*ops, s, store, -0.37f, seed), 1);
        EXPECT_GT(CheckBackwardWeight(perturbed, s, store, -0.37f, seed), 1) << "a wrong element went unnoticed";
      }
    }
  }
}

TEST(ColumnSum, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::column_sum>(4, [](const Case& c) {
    return CheckColumnSum(*c.ops, c.shape, c.store, c.seed % 2 == 0 ? 1.0f : -0.37f, c.seed);
  });
}

// Generation with a key/value cache computes one row where training computed many: the bits must agree.
TEST(LinearForward, RowDoesNotDependOnHowManyRowsAreInTheCall) {
  std::mt19937_64 random(TestSeed(5));
  for (const OpTable* ops : TestedOps()) {
    for (const auto& shape : {std::pair<size_t, size_t>{64, 64}, {333, 64}, {64, 600}, {200, 600}, {17, 31}}) {
      const size_t n = shape.first, k = shape.second;
      SCOPED_TRACE(testing::Message() << ops->name << ": n " << n << ", k " << k);
      const size_t rows = 47;
      std::vector<float> x(rows * k), w(n * k), bias(n), packed(ops->packed_size(n, k));
      std::vector<float> whole(rows * n), part(rows * n);
      std::normal_distribution<float> normal;
      for (std::vector<float>* values : {&x, &w, &bias}) {
        for (float& value : *values) value = normal(random);
      }
      ops->pack_weights({.w_NK = w.data(), .ldw = k, .packed = packed.data(), .n = n, .k = k});
      const auto run = [&](size_t first, size_t count, std::vector<float>& y) {
        ops->linear_forward({.x_RK = &x[first * k],
                             .ldx = k,
                             .packed = packed.data(),
                             .bias_N = bias.data(),
                             .y_RN = &y[first * n],
                             .ldy = n,
                             .rows = count,
                             .n = n,
                             .k = k,
                             .store = Store::kAssign});
      };
      run(0, rows, whole);
      for (size_t count : {1, 2, 3, 5, 13, 14, 16}) {
        for (size_t first = 0; first < rows; first += count) run(first, std::min(count, rows - first), part);
        EXPECT_EQ(std::memcmp(whole.data(), part.data(), whole.size() * sizeof(float)), 0) << count << " rows a call";
      }
    }
  }
}

TEST(Products, NothingIsReadOrWrittenPastTheEndOfABuffer) {
  std::mt19937_64 random(TestSeed(8));
  for (const OpTable* ops : TestedOps()) {
    for (int i = 0; i < 100; ++i) {
      const size_t rows = PickSize(random), n = PickSize(random), k = PickSize(random);
      SCOPED_TRACE(testing::Message() << ops->name << ": rows " << rows << ", n " << n << ", k " << k);
      PageEndFloats x(rows * k), w(n * k), bias(n), packed(ops->packed_size(n, k)), y(rows * n), sums(n);
      const Store store = i % 2 == 0 ? Store::kAssign : Store::kAdd;
      ops->pack_weights({.w_NK = w.data(), .ldw = k, .packed = packed.data(), .n = n, .k = k});
      ops->linear_forward({.x_RK = x.data(),
                           .ldx = k,
                           .packed = packed.data(),
                           .bias_N = bias.data(),
                           .y_RN = y.data(),
                           .ldy = n,
                           .rows = rows,
                           .n = n,
                           .k = k,
                           .store = store});
      ops->linear_backward_input({.dy_RN = y.data(),
                                  .lddy = n,
                                  .w_NK = w.data(),
                                  .ldw = k,
                                  .dx_RK = x.data(),
                                  .lddx = k,
                                  .rows = rows,
                                  .n = n,
                                  .k = k,
                                  .store = store});
      ops->linear_backward_weight({.dy_RN = y.data(),
                                   .lddy = n,
                                   .x_RK = x.data(),
                                   .ldx = k,
                                   .dw_NK = w.data(),
                                   .lddw = k,
                                   .rows = rows,
                                   .n = n,
                                   .k = k,
                                   .scale = 1,
                                   .store = store});
      ops->column_sum(
          {.x_RN = y.data(), .ldx = n, .out_N = sums.data(), .rows = rows, .n = n, .scale = 1, .store = store});
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::gemm_test
