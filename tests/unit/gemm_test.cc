// Products and softmax tiles of every op table against double loops written here.
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
#include "tests/unit/kernel_test_util.h"

namespace wisp::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

double ProductTolerance(size_t inner, double sum_of_magnitudes) {
  return 4 * static_cast<double>(inner + 4) * kEpsilon * sum_of_magnitudes;
}

struct Shape {
  size_t rows, n, k;
  size_t pad;  // how much strides exceed widths
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "rows " << s.rows << ", n " << s.n << ", k " << s.k << ", stride + " << s.pad;
}

// The corners by hand, then a random part of the cube of sizes.
std::vector<Shape> Shapes(std::mt19937_64& random) {
  std::vector<Shape> shapes = {{0, 0, 0, 0},  {0, 5, 3, 1},    {5, 0, 3, 1},   {5, 3, 0, 1},    {1, 1, 1, 0},
                               {1, 300, 64, 0}, {2, 300, 64, 2}, {3, 300, 64, 5}, {14, 32, 64, 0}, {15, 33, 300, 3},
                               {29, 64, 513, 0}, {513, 7, 9, 1}, {300, 65, 2, 0}, {9, 600, 3, 4},  {200, 64, 64, 0}};
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

// What one product check needs: operands, a result with what was there before, and where to perturb.
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
  return problem.Run(
      s.k,
      [&] {
        ops.linear_forward({.x_RK = x.data(), .ldx = x.ld(), .packed = packed.data(),
                            .bias_N = with_bias ? bias.data() : nullptr, .y_RN = problem.out.data(),
                            .ldy = problem.out.ld(), .rows = s.rows, .n = s.n, .k = s.k, .store = store});
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
        ops.linear_backward_input({.dy_RN = dy.data(), .lddy = dy.ld(), .w_NK = w.data(), .ldw = w.ld(),
                                   .dx_RK = problem.out.data(), .lddx = problem.out.ld(), .rows = s.rows, .n = s.n,
                                   .k = s.k, .store = store});
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
        ops.linear_backward_weight({.dy_RN = dy.data(), .lddy = dy.ld(), .x_RK = x.data(), .ldx = x.ld(),
                                    .dw_NK = problem.out.data(), .lddw = problem.out.ld(), .rows = s.rows, .n = s.n,
                                    .k = s.k, .scale = scale, .store = store});
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
        ops.column_sum({.x_RN = x.data(), .ldx = x.ld(), .out_N = problem.out.data(), .rows = s.rows, .n = s.n,
                        .scale = scale, .store = store});
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

// Runs `check(table, shape, store, case number)` over all shapes and tables, whole and perturbed.
template <auto kEntry, class Check>
void HoldToContract(uint64_t usual_seed, Check check) {
  std::mt19937_64 random(TestSeed(usual_seed));
  const std::vector<Shape> shapes = Shapes(random);
  for (const OpTable* ops : AllOps()) {
    const OpTable perturbed = PerturbedTable<kEntry>(*ops);
    double worst = 0;
    uint64_t number = 0;
    for (const Shape& s : shapes) {
      for (Store store : {Store::kAssign, Store::kAdd}) {
        SCOPED_TRACE(testing::Message() << ops->name << ": " << s << (store == Store::kAdd ? ", add" : ", assign"));
        const uint64_t seed = usual_seed + ++number;
        bool empty = false;
        const double error = check(*ops, s, store, seed, empty);
        EXPECT_LE(error, 1);
        worst = std::max(worst, error);
        if (!empty) {
          EXPECT_GT(check(perturbed, s, store, seed, empty), 1) << "a wrong element went unnoticed";
        }
      }
    }
    std::cout << ops->name << ": largest error " << worst << " of the tolerance\n";
  }
}

TEST(LinearForward, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::linear_forward>(1, [](const OpTable& ops, const Shape& s, Store store, uint64_t seed, bool& empty) {
    empty = s.rows == 0 || s.n == 0;
    return CheckForward(ops, s, store, seed % 3 != 0, seed);
  });
}

TEST(LinearBackwardInput, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::linear_backward_input>(2, [](const OpTable& ops, const Shape& s, Store store, uint64_t seed, bool& empty) {
    empty = s.rows == 0 || s.k == 0;
    return CheckBackwardInput(ops, s, store, seed);
  });
}

TEST(LinearBackwardWeight, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::linear_backward_weight>(3, [](const OpTable& ops, const Shape& s, Store store, uint64_t seed, bool& empty) {
    empty = s.n == 0 || s.k == 0;
    return CheckBackwardWeight(ops, s, store, seed % 2 == 0 ? 1.0f : -0.37f, seed);
  });
}

TEST(ColumnSum, EveryTableStaysWithinContract) {
  HoldToContract<&OpTable::column_sum>(4, [](const OpTable& ops, const Shape& s, Store store, uint64_t seed, bool& empty) {
    empty = s.n == 0;
    return CheckColumnSum(ops, s, store, seed % 2 == 0 ? 1.0f : -0.37f, seed);
  });
}

// Generation with a key/value cache computes one row where training computed many: the bits must agree.
TEST(LinearForward, RowDoesNotDependOnHowManyRowsAreInTheCall) {
  std::mt19937_64 random(TestSeed(5));
  for (const OpTable* ops : AllOps()) {
    for (const auto& [n, k] : {std::pair<size_t, size_t>{64, 64}, {333, 64}, {64, 600}, {17, 31}}) {
      SCOPED_TRACE(testing::Message() << ops->name << ": n " << n << ", k " << k);
      const size_t rows = 47;
      std::vector<float> x(rows * k), w(n * k), bias(n), packed(ops->packed_size(n, k)), whole(rows * n), part(rows * n);
      std::normal_distribution<float> normal;
      for (std::vector<float>* values : {&x, &w, &bias}) {
        for (float& value : *values) value = normal(random);
      }
      ops->pack_weights({.w_NK = w.data(), .ldw = k, .packed = packed.data(), .n = n, .k = k});
      const auto run = [&](size_t first, size_t count, std::vector<float>& y) {
        ops->linear_forward({.x_RK = &x[first * k], .ldx = k, .packed = packed.data(), .bias_N = bias.data(),
                             .y_RN = &y[first * n], .ldy = n, .rows = count, .n = n, .k = k, .store = Store::kAssign});
      };
      run(0, rows, whole);
      for (size_t count : {1, 2, 3, 5, 13, 14, 16}) {
        for (size_t first = 0; first < rows; first += count) run(first, std::min(count, rows - first), part);
        EXPECT_EQ(std::memcmp(whole.data(), part.data(), whole.size() * sizeof(float)), 0) << count << " rows a call";
      }
    }
  }
}

// ---- Softmax over tiles. --------------------------------------------------------------------------------------------

struct Logits {
  size_t rows, classes, pad;
  float spread;
};

// lse and target logits of `classes` classes, fed in tiles of random width.
double CheckSoftmaxStats(const OpTable& ops, const Logits& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  GuardedMatrix z(s.rows, s.classes, s.classes + s.pad), stats(3, s.rows, s.rows + 3);
  z.Fill(random, std::normal_distribution<float>(0, s.spread));
  if (s.classes > 1) *z.at(0, s.classes - 1) = -kInfinity;  // an excluded class
  std::vector<int32_t> target(s.rows);
  for (int32_t& t : target) t = static_cast<int32_t>(random() % (s.classes + 1)) - 1;
  for (size_t r = 0; r < s.rows; ++r) {
    *stats.at(0, r) = -kInfinity;
    *stats.at(1, r) = 0;
    *stats.at(2, r) = 123;  // stays where no tile holds the target
  }
  std::vector<double> lse;
  for (size_t r = 0; r < s.rows; ++r) {
    double largest = -kInfinity, sum = 0;
    for (size_t j = 0; j < s.classes; ++j) largest = std::max<double>(largest, *z.at(r, j));
    for (size_t j = 0; j < s.classes; ++j) sum += std::exp(*z.at(r, j) - largest);
    lse.push_back(largest + std::log(sum));
  }
  const auto tolerance = [&](size_t r) { return 2e-6 * std::max(1.0, std::abs(lse[r])); };
  const size_t wrong = random() % s.rows;
  for (size_t first = 0; first < s.classes;) {
    const size_t n = std::min(s.classes - first, 1 + random() % (random() % 2 ? 16 : 100));
    // In the last tile: an error of max is one of lse.
    PlanPerturbation(first + n == s.classes ? stats.at(0, wrong) : nullptr, 4 * tolerance(wrong));
    ops.softmax_stats({.z_RN = z.at(0, first), .ldz = z.ld(), .target_R = target.data(), .max_R = stats.at(0, 0),
                       .sum_R = stats.at(1, 0), .target_logit_R = stats.at(2, 0), .rows = s.rows, .n = n,
                       .first = static_cast<int32_t>(first)});
    first += n;
  }
  ErrorMeter meter;
  for (size_t r = 0; r < s.rows; ++r) {
    meter.Add(*stats.at(0, r) + std::log(static_cast<double>(*stats.at(1, r))), lse[r], tolerance(r));
    EXPECT_EQ(*stats.at(2, r), target[r] < 0 ? 123 : *z.at(r, target[r])) << "target logit of row " << r;
  }
  EXPECT_TRUE(z.GuardsIntact() && stats.GuardsIntact());
  return meter.worst();
}

double CheckCrossEntropyGradient(const OpTable& ops, const Logits& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int32_t first = 1000;
  GuardedMatrix z(s.rows, s.classes, s.classes + s.pad), lse(1, s.rows, s.rows), weight(1, s.rows, s.rows);
  z.Fill(random, std::normal_distribution<float>(0, s.spread));
  if (s.classes > 1) *z.at(0, 1) = -kInfinity;
  weight.Fill(random, std::uniform_real_distribution<float>(0.001f, 2));
  if (s.rows > 1) {
    *weight.at(0, 1) = 0;  // padding: zero whatever the row holds
    *z.at(1, s.classes - 1) = kNan;
  }
  std::vector<int32_t> target(s.rows);
  for (int32_t& t : target) t = first - 2 + static_cast<int32_t>(random() % (s.classes + 4));
  std::vector<double> logits;
  for (size_t r = 0; r < s.rows; ++r) {
    double sum = 0;
    for (size_t j = 0; j < s.classes; ++j) {
      logits.push_back(*z.at(r, j));
      sum += std::exp(logits.back());
    }
    *lse.at(0, r) = static_cast<float>(std::log(sum) + (random() % 2 ? 0 : 3));  // other tiles hold the rest
  }
  const size_t row = random() % s.rows;
  PlanPerturbation(z.at(row, random() % s.classes), 4 * 2e-6 * std::max(*weight.at(0, row), 1e-6f));
  ops.cross_entropy_gradient({.z_RN = z.data(), .ldz = z.ld(), .target_R = target.data(), .lse_R = lse.data(),
                              .weight_R = weight.data(), .rows = s.rows, .n = s.classes, .first = first});
  ErrorMeter meter;
  for (size_t r = 0; r < s.rows; ++r) {
    const double w = *weight.at(0, r);
    for (size_t j = 0; j < s.classes; ++j) {
      const double hit = target[r] == first + static_cast<int32_t>(j) ? 1 : 0;
      const double expected = w == 0 ? 0 : (std::exp(logits[r * s.classes + j] - *lse.at(0, r)) - hit) * w;
      meter.Add(*z.at(r, j), expected, 2e-6 * w);
    }
  }
  EXPECT_TRUE(z.GuardsIntact() && lse.GuardsIntact() && weight.GuardsIntact());
  return meter.worst();
}

template <auto kEntry, class Check>
void HoldSoftmaxToContract(uint64_t usual_seed, Check check) {
  std::mt19937_64 random(TestSeed(usual_seed));
  for (const OpTable* ops : AllOps()) {
    const OpTable perturbed = PerturbedTable<kEntry>(*ops);
    double worst = 0;
    for (size_t classes : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 256, 777}) {
      for (float spread : {0.1f, 1.0f, 10.0f, 60.0f}) {
        const Logits s{1 + random() % 9, classes, random() % 4, spread};
        const uint64_t seed = random();
        SCOPED_TRACE(testing::Message() << ops->name << ": rows " << s.rows << ", classes " << classes << ", spread " << spread);
        const double error = check(*ops, s, seed);
        EXPECT_LE(error, 1);
        worst = std::max(worst, error);
        EXPECT_GT(check(perturbed, s, seed), 1) << "a wrong element went unnoticed";
      }
    }
    std::cout << ops->name << ": largest error " << worst << " of the tolerance\n";
  }
}

TEST(SoftmaxStats, EveryTableStaysWithinContract) { HoldSoftmaxToContract<&OpTable::softmax_stats>(6, CheckSoftmaxStats); }

TEST(CrossEntropyGradient, EveryTableStaysWithinContract) {
  HoldSoftmaxToContract<&OpTable::cross_entropy_gradient>(7, CheckCrossEntropyGradient);
}

TEST(Softmax, NoRowsAndNoClassesTouchNothing) {
  for (const OpTable* ops : AllOps()) {
    GuardedMatrix z(3, 0, 4), stats(3, 3, 3);
    const int32_t target[] = {0, 1, 2};
    stats.Fill(7);
    PlanPerturbation(nullptr, 0);
    for (size_t rows : {0, 3}) {
      ops->softmax_stats({.z_RN = z.data(), .ldz = 4, .target_R = target, .max_R = stats.at(0, 0), .sum_R = stats.at(1, 0),
                          .target_logit_R = stats.at(2, 0), .rows = rows, .n = rows == 0 ? size_t{5} : 0, .first = 0});
      ops->cross_entropy_gradient({.z_RN = z.data(), .ldz = 4, .target_R = target, .lse_R = stats.at(0, 0),
                                   .weight_R = stats.at(1, 0), .rows = rows, .n = rows == 0 ? size_t{5} : 0, .first = 0});
    }
    EXPECT_TRUE(z.GuardsIntact());
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(*stats.at(i / 3, i % 3), 7);
  }
}

// A diverged record must be seen to be one: its norm is what is tested later.
TEST(Softmax, NanLogitsReachTheSumAndTheGradient) {
  for (const OpTable* ops : AllOps()) {
    for (size_t n : {5, 16, 70}) {
      for (size_t at : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> z(n, 0.5f);
        z[at] = kNan;
        float max = -kInfinity, sum = 0, target_logit = 0;
        const int32_t target = 0;
        ops->softmax_stats({.z_RN = z.data(), .ldz = n, .target_R = &target, .max_R = &max, .sum_R = &sum,
                            .target_logit_R = &target_logit, .rows = 1, .n = n, .first = 0});
        EXPECT_TRUE(std::isnan(max + std::log(sum))) << ops->name << ", " << at << " of " << n;
        const float lse = 2, weight = 1;
        ops->cross_entropy_gradient({.z_RN = z.data(), .ldz = n, .target_R = &target, .lse_R = &lse, .weight_R = &weight,
                                     .rows = 1, .n = n, .first = 0});
        EXPECT_TRUE(std::isnan(z[at])) << ops->name << ", " << at << " of " << n;
      }
    }
  }
}

TEST(AllOps, ReferenceComesFirstAndEveryTableIsFoundByName) {
  ASSERT_FALSE(AllOps().empty());
  EXPECT_EQ(AllOps()[0], &ReferenceOps());
  for (const OpTable* ops : AllOps()) EXPECT_EQ(FindOps(ops->name), ops);
  EXPECT_EQ(FindOps("no such table"), nullptr);
  EXPECT_EQ(&BestOps(), AllOps().size() > 1 ? AllOps()[1] : AllOps()[0]);
}

}  // namespace
}  // namespace wisp::kernels
