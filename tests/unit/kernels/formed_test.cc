// The gradients of many records in one call equal those of single records by the same table's ops, except for one
// rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::formed_test {
namespace {

// Records of uneven size, one of them empty; 140 are more than one launch takes.
struct Records : RecordRows {
  explicit Records(size_t num) {
    for (size_t b = 0; b < num; ++b) Add(b == 1 ? 0 : 1 + b * 7 % 5);
  }
};

const std::vector<size_t> kNumbers = {1, 2, 5, 140};

std::vector<const OpTable*> Tables() {
  std::vector<const OpTable*> tables;
  for (const OpTable* ops : TestedOps()) {
    if (ops->record_weight_gradients != nullptr) tables.push_back(ops);
  }
  EXPECT_FALSE(tables.empty());
  return tables;
}

void ExpectSame(GuardedMatrix& one, GuardedMatrix& other, const char* name) {
  for (size_t r = 0; r < one.rows(); ++r) {
    for (size_t c = 0; c < one.cols(); ++c)
      ASSERT_NEAR(*one.at(r, c), *other.at(r, c), 1e-6 * (1 + std::abs(*other.at(r, c)))) << name << " " << r;
  }
  EXPECT_TRUE(one.GuardsIntact() && other.GuardsIntact()) << name;
}

TEST(Formed, WeightGradientsAreThoseOfEachRecord) {
  std::mt19937_64 random(TestSeed(1));
  const std::normal_distribution<float> normal;
  for (const OpTable* ops : Tables()) {
    for (size_t num : kNumbers) {
      const Records records(num);
      for (const auto& [n, k] : std::initializer_list<std::pair<size_t, size_t>>{{1, 1}, {3, 5}, {70, 17}}) {
        if (num > 5 && n > 3) continue;
        GuardedMatrix dy(records.rows(), n, n + 2), x(records.rows(), k, k + 1);
        GuardedMatrix dw(records.num(), n * k, n * k + 3), alone(records.num(), n * k, n * k + 3);
        dy.Fill(random, normal), x.Fill(random, normal), dw.Fill(0.5f), alone.Fill(0.5f);
        ops->record_weight_gradients({.dy_RN = dy.data(),
                                      .lddy = dy.ld(),
                                      .x_RK = x.data(),
                                      .ldx = x.ld(),
                                      .dw_BNK = dw.data(),
                                      .stride = dw.ld(),
                                      .records = records.segments(),
                                      .n = n,
                                      .k = k});
        for (size_t b = 0; b < records.num(); ++b) {
          ops->linear_backward_weight({.dy_RN = dy.at(records.begin[b], 0),
                                       .lddy = dy.ld(),
                                       .x_RK = x.at(records.begin[b], 0),
                                       .ldx = x.ld(),
                                       .dw_NK = alone.at(b, 0),
                                       .lddw = k,
                                       .rows = records.size(b),
                                       .n = n,
                                       .k = k,
                                       .scale = 1.0f,
                                       .store = Store::kAdd});
        }
        ExpectSame(dw, alone, ops->name);
      }
    }
  }
}

TEST(Formed, ScatteredRowsAreThoseOfEachRecord) {
  std::mt19937_64 random(TestSeed(2));
  constexpr size_t kItems = 4, kWidth = 37;
  for (const OpTable* ops : Tables()) {
    for (size_t num : kNumbers) {
      const Records records(num);
      GuardedMatrix dx(records.rows(), kWidth, kWidth + 3);
      GuardedMatrix table(num, kItems * kWidth, kItems * kWidth + 1), alone(num, kItems * kWidth, kItems * kWidth + 1);
      dx.Fill(random, std::normal_distribution<float>());
      table.Fill(0.25f), alone.Fill(0.25f);
      std::vector<int32_t> ids(records.rows());
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % (kItems + 1)) - 1;
      ops->record_scatter_add({.dx_RD = dx.data(),
                               .lddx = dx.ld(),
                               .ids_R = ids.data(),
                               .table_BMD = table.data(),
                               .stride = table.ld(),
                               .records = records.segments(),
                               .d = kWidth,
                               .scale = 1.7f});
      for (size_t b = 0; b < num; ++b) {
        ops->scatter_add({.dx_TD = dx.at(records.begin[b], 0),
                          .lddx = dx.ld(),
                          .ids_T = ids.data() + records.begin[b],
                          .table_MD = alone.at(b, 0),
                          .ldtable = kWidth,
                          .rows = records.size(b),
                          .d = kWidth,
                          .scale = 1.7f});
      }
      ExpectSame(table, alone, ops->name);
    }
  }
}

TEST(Formed, RowsAreAddedAndSquared) {
  std::mt19937_64 random(TestSeed(3));
  for (const OpTable* ops : Tables()) {
    for (size_t rows : kNumbers) {
      for (size_t n : {size_t{1}, size_t{33}, size_t{1025}}) {
        GuardedMatrix x(rows, n, n + 2), y(rows, n, n + 1);
        x.Fill(random, std::normal_distribution<float>()), y.Fill(2.0f);
        ops->add_rows({.x_BN = x.data(), .ldx = x.ld(), .y_BN = y.data(), .ldy = y.ld(), .rows = rows, .n = n});
        std::vector<double> squares(rows, -1);
        ops->squares_of_rows({.x_BN = x.data(), .ldx = x.ld(), .rows = rows, .n = n, .squares_B = squares.data()});
        for (size_t b = 0; b < rows; ++b) {
          double expected = 0;
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(*y.at(b, i), 2.0f + *x.at(b, i)) << ops->name;
            expected += std::pow(static_cast<double>(*x.at(b, i)), 2);
          }
          EXPECT_NEAR(squares[b], expected, 1e-12 * expected) << ops->name << " " << rows << " " << n;
        }
        EXPECT_TRUE(y.GuardsIntact());
      }
    }
  }
}

// Magnitudes whose squares floats cannot hold, alone and beside larger ones.
TEST(Formed, SquaresHaveTheirPrecisionAtEveryMagnitude) {
  std::mt19937_64 random(TestSeed(6));
  for (const OpTable* ops : Tables()) {
    for (const float size : {1e-38f, 1e-25f, 1e-17f, 1e-12f, 1e-6f, 1.0f, 1e12f, 1e18f, 1e30f}) {
      for (const float other : {size, 1.0f, 0.0f}) {
        constexpr size_t kSize = 24;
        GuardedMatrix x(1, kSize, kSize);
        x.Fill(random, std::normal_distribution<float>());
        double expected = 0;
        for (size_t i = 0; i < kSize; ++i) {
          *x.at(0, i) *= i % 3 == 0 ? size : other;
          expected += std::pow(static_cast<double>(*x.at(0, i)), 2);
        }
        double squares = -1;
        ops->squares_of_rows({.x_BN = x.data(), .ldx = kSize, .rows = 1, .n = kSize, .squares_B = &squares});
        EXPECT_NEAR(squares, expected, 1e-12 * expected) << ops->name << ": " << size << " beside " << other;
      }
    }
    std::vector<float> strange(10, 1.0f);
    for (const float value : {NAN, INFINITY}) {
      strange[7] = value;
      double squares = -1;
      ops->squares_of_rows({.x_BN = strange.data(), .ldx = 10, .rows = 1, .n = 10, .squares_B = &squares});
      EXPECT_FALSE(std::isfinite(squares)) << ops->name;
    }
  }
}

// A row that is far outside of the bound must not come out as one within it.
TEST(Formed, SquaresOnTheGridNeverWrapAround) {
  for (const OpTable* ops : Tables()) {
    for (const size_t n : {1, 3, 4, 5, 16, 64, 256, 4096}) {
      std::vector<float> x(n, -1.0f);
      std::vector<int64_t> sum(n);
      std::vector<int32_t> slots(n);
      for (size_t i = 0; i < n; ++i) slots[i] = static_cast<int32_t>(i);
      const float scale = 0x1p30f;
      double squares = -1;
      ops->accumulate_rows_on_grid({.x_BN = x.data(),
                                    .ldx = n,
                                    .sum = sum.data(),
                                    .rows = 1,
                                    .n = n,
                                    .scale_B = &scale,
                                    .sign = 1,
                                    .squares_B = &squares});
      const double expected = 0x1p60 * static_cast<double>(n);
      EXPECT_TRUE(n < 4 ? squares == expected : squares >= 0x1p62) << ops->name << " " << n << " " << squares;
      ops->accumulate_slots_on_grid({.x_BJD = x.data(),
                                     .stride = n,
                                     .slot_BJ = slots.data(),
                                     .sum = sum.data(),
                                     .rows = 1,
                                     .slots = n,
                                     .d = 1,
                                     .scale_B = &scale,
                                     .sign = -1,
                                     .squares_B = &squares});
      EXPECT_TRUE(n < 4 ? squares == expected : squares >= 0x1p62) << ops->name << " " << n << " " << squares;
      for (const int64_t s : sum) ASSERT_EQ(s, 0);
    }
  }
}

TEST(Formed, RowsOnTheGridAreThoseOfEachRecordAndUndoThemselves) {
  std::mt19937_64 random(TestSeed(4));
  for (const OpTable* ops : Tables()) {
    for (size_t rows : kNumbers) {
      for (size_t n : {size_t{1}, size_t{1500}, size_t{1501}}) {
        GuardedMatrix x(rows, n, n + 1 + n % 2 * 2);
        x.Fill(random, std::normal_distribution<float>());
        std::vector<float> scales(rows);
        for (size_t b = 0; b < rows; ++b) scales[b] = b % 3 == 1 ? 0.0f : 1e3f * static_cast<float>(b + 1);
        // A row that is left out may hold anything.
        if (rows > 1) *x.at(1, 0) = NAN;
        BasicGuardedMatrix<int64_t> sum(1, n, n);
        std::vector<int64_t> alone(n), before(n);
        for (size_t i = 0; i < n; ++i) alone[i] = before[i] = sum.data()[i] = static_cast<int64_t>(random()) >> 2;
        std::vector<double> squares(rows, -1);
        AccumulateRowsOnGridArgs<> args{.x_BN = x.data(),
                                        .ldx = x.ld(),
                                        .sum = sum.data(),
                                        .rows = rows,
                                        .n = n,
                                        .scale_B = scales.data(),
                                        .sign = 1,
                                        .squares_B = squares.data()};
        ops->accumulate_rows_on_grid(args);
        for (size_t b = 0; b < rows; ++b) {
          const double expected =
              scales[b] == 0 ? 0 : ops->accumulate_on_grid({x.at(b, 0), alone.data(), n, scales[b], 1});
          EXPECT_NEAR(squares[b], expected, 1e-12 * expected) << ops->name << " " << b;
        }
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(sum.data()[i], alone[i]) << ops->name << " " << rows << " " << i;
        args.sign = -1;
        ops->accumulate_rows_on_grid(args);
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(sum.data()[i], before[i]) << ops->name << " " << i;
        EXPECT_TRUE(sum.GuardsIntact());
      }
    }
  }
}

// The slots decide where each record's rows go, two of them to one row. The square is that of the record's
// contribution.
TEST(Formed, SlotsOnTheGridAreThoseOfEachRecordAndUndoThemselves) {
  std::mt19937_64 random(TestSeed(5));
  constexpr size_t kRows = 9;  // rows of the sum
  for (const OpTable* ops : Tables()) {
    for (size_t num : kNumbers) {
      for (const auto& [slots, d] : std::initializer_list<std::pair<size_t, size_t>>{{1, 1}, {3, 5}, {7, 300}}) {
        if (num > 5 && d > 5) continue;
        GuardedMatrix x(num, slots * d, slots * d + 3);
        x.Fill(random, std::normal_distribution<float>());
        BasicGuardedMatrix<int32_t> slot(num, slots, slots);
        for (size_t i = 0; i < num * slots; ++i) slot.data()[i] = static_cast<int32_t>(random() % (kRows + 1)) - 1;
        slot.data()[num * slots - 1] = slot.data()[0];
        std::vector<float> scales(num);
        for (size_t b = 0; b < num; ++b) scales[b] = b % 3 == 1 ? 0.0f : 1e3f * static_cast<float>(b + 1);
        if (num > 1) *x.at(1, 0) = NAN;  // belongs to a record that is left out
        BasicGuardedMatrix<int64_t> sum(kRows, d, d);
        for (size_t i = 0; i < kRows * d; ++i) sum.data()[i] = static_cast<int64_t>(random()) >> 2;
        const std::vector<int64_t> before(sum.data(), sum.data() + kRows * d);
        std::vector<int64_t> alone = before;
        std::vector<double> squares(num, -1);
        AccumulateSlotsOnGridArgs<> args{.x_BJD = x.data(),
                                         .stride = x.ld(),
                                         .slot_BJ = slot.data(),
                                         .sum = sum.data(),
                                         .rows = num,
                                         .slots = slots,
                                         .d = d,
                                         .scale_B = scales.data(),
                                         .sign = 1,
                                         .squares_B = squares.data()};
        ops->accumulate_slots_on_grid(args);
        for (size_t b = 0; b < num; ++b) {
          double expected = 0;
          for (size_t j = 0; j < slots; ++j) {
            const int32_t to = slot.data()[b * slots + j];
            if (to < 0 || scales[b] == 0) continue;
            expected += ReferenceOps().accumulate_on_grid(
                {x.at(b, j * d), alone.data() + static_cast<size_t>(to) * d, d, scales[b], 1});
          }
          EXPECT_NEAR(squares[b], expected, 1e-12 * expected) << ops->name << " " << b;
        }
        for (size_t i = 0; i < kRows * d; ++i)
          ASSERT_EQ(sum.data()[i], alone[i]) << ops->name << " " << num << " " << i;
        args.sign = -1;
        ops->accumulate_slots_on_grid(args);
        for (size_t i = 0; i < kRows * d; ++i) ASSERT_EQ(sum.data()[i], before[i]) << ops->name << " " << i;
        EXPECT_TRUE(sum.GuardsIntact());
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::formed_test
