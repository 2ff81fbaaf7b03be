// Float16: conversions bit by bit, and the ops over float16 tables compared with double, on every table, correct and
// perturbed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::half_test {
namespace {

// Converts by the standard, in double.
double ComputeValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryFloat16_IsConvertedExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const Half h{static_cast<uint16_t>(bits)};
    const double expected = ComputeValue(h.bits), found = ToFloat(h);
    ASSERT_EQ(IsFinite(h), std::isfinite(expected)) << bits;
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(found)
                                     : found == expected && std::signbit(found) == std::signbit(expected))
        << bits;
    ASSERT_TRUE(std::isnan(expected) || ToHalf(found).bits == h.bits) << bits;
  }
}

TEST(Half, RoundsToTheNearestTiesToEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1), even = bits % 2 == 0 ? bits : next;
    // exact: one bit more than a float16 has
    const auto middle = static_cast<float>((ComputeValue(bits) + ComputeValue(next)) / 2);
    ASSERT_EQ(ToHalf(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(ToHalf(middle).bits, even);
    ASSERT_EQ(ToHalf(std::nextafter(middle, INFINITY)).bits, next);
    ASSERT_EQ(ToHalf(-middle).bits, even | 0x8000);
  }
  EXPECT_EQ(ToHalf(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  for (float beyond : {65520.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(ToHalf(beyond).bits, 0x7c00);
    EXPECT_EQ(ToHalf(-beyond).bits, 0xfc00);
  }
  EXPECT_EQ(ToHalf(1e-40f).bits, 0);
  EXPECT_EQ(ToHalf(-0.0f).bits, 0x8000);
  EXPECT_FALSE(IsFinite(ToHalf(NAN)));
  EXPECT_TRUE(std::isnan(ToFloat(ToHalf(NAN))));
}

// Finite float16 numbers of all magnitudes: mostly those of weights, but also subnormal ones, the largest and zeros.
// They end where a page does.
class Halves {
 public:
  explicit Halves(size_t n)
      : room_((n + 1) / 2), data_(reinterpret_cast<Half*>(room_.data() + (n + 1) / 2) - n), size_(n) {}
  Halves(size_t n, std::mt19937_64& random) : Halves(n) {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t kind = random() % 16;
      data_[i] = kind == 0   ? Half{static_cast<uint16_t>(random() % 2048 | random() % 2 << 15)}
                 : kind == 1 ? ToHalf(-kLargestHalf)
                             : ToHalf(normal(random));
    }
  }
  Half* data() { return data_; }
  const Half& operator[](size_t i) const { return data_[i]; }
  size_t size() const { return size_; }

 private:
  PageEndFloats room_;
  Half* data_;
  size_t size_;
};

double CheckScale(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Halves x(n, random);
  GuardedMatrix y(1, n, std::max<size_t>(1, n));
  y.Fill(random, std::normal_distribution<float>());
  const Store store = variant % 2 == 0 ? Store::kAssign : Store::kAdd;
  const float a = variant < 2 ? 1.0f : 8.3f;
  std::vector<double> expected, tolerance;
  for (size_t i = 0; i < n; ++i) {
    const double product = static_cast<double>(a) * ToFloat(x[i]), old = store == Store::kAdd ? *y.at(0, i) : 0.0;
    expected.push_back(product + old);
    // One times a float16 is exact, and so is its conversion.
    tolerance.push_back(store == Store::kAssign && a == 1 ? 1e-30
                                                          : 8 * kEpsilon * (std::abs(product) + std::abs(old)) + 1e-30);
  }
  if (store == Store::kAssign) y.Fill(NAN);
  if (n > 0) PlanPerturbation(y.at(0, n - 1), 4 * tolerance[n - 1] + 4 * kEpsilon * std::abs(expected[n - 1]) + 1e-9);
  ops.scale_half({.x = x.data(), .y = y.data(), .n = n, .a = a, .store = store});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) meter.Add(*y.at(0, i), expected[i], tolerance[i]);
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckMultiply(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t k = variant == 0 ? 64 : PickSize(random), ld = k + random() % 5;
  Halves w(n == 0 ? 0 : (n - 1) * ld + k, random);
  PageEndFloats x(k);
  for (size_t i = 0; i < k; ++i) x.data()[i] = std::normal_distribution<float>()(random);
  GuardedMatrix bias(1, n, std::max<size_t>(1, n)), y(1, n, std::max<size_t>(1, n));
  bias.Fill(random, std::normal_distribution<float>());
  y.Fill(NAN);
  const bool biased = variant % 2 == 1;
  std::vector<double> expected(n), tolerance(n);
  for (size_t j = 0; j < n; ++j) {
    double sum = biased ? *bias.at(0, j) : 0.0, magnitude = std::abs(sum);
    for (size_t i = 0; i < k; ++i) {
      const double term = static_cast<double>(ToFloat(w[j * ld + i])) * x.data()[i];
      sum += term;
      magnitude += std::abs(term);
    }
    expected[j] = sum;
    tolerance[j] = 4 * static_cast<double>(k + 4) * kEpsilon * magnitude + 1e-30;
  }
  const size_t at = n > 0 ? random() % n : 0;
  if (n > 0) PlanPerturbation(y.at(0, at), 4 * tolerance[at] + 1e-9 + 4 * kEpsilon * std::abs(expected[at]));
  ops.multiply_half({.w_NK = w.data(),
                     .ldw = ld,
                     .x_K = x.data(),
                     .bias_N = biased ? bias.data() : nullptr,
                     .y_N = y.data(),
                     .n = n,
                     .k = k});
  ErrorMeter meter;
  for (size_t j = 0; j < n; ++j) meter.Add(*y.at(0, j), expected[j], tolerance[j]);
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

TEST(HalfOps, ScaleEqualsDouble) { Hold<&OpTable::scale_half>(81, CheckScale, 6); }
TEST(HalfOps, MultiplyEqualsDouble) { Hold<&OpTable::multiply_half>(82, CheckMultiply, 6); }

// Every finite float16 by every table, also by tables without an instruction for the conversion.
TEST(HalfOps, EveryTable_ConvertsExactly) {
  std::vector<Half> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    if (const Half h{static_cast<uint16_t>(bits)}; IsFinite(h)) all.push_back(h);
  }
  std::vector<float> y(all.size());
  for (const OpTable* ops : TestedOps()) {
    ops->scale_half({.x = all.data(), .y = y.data(), .n = all.size(), .a = 1.0f, .store = Store::kAssign});
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(y[i], ToFloat(all[i])) << ops->name << ", " << all[i].bits;
  }
}

// A row's product has the same bits wherever the row stands, among others or alone at the end.
TEST(HalfOps, ARowDoesNotDependOnItsNeighbours) {
  std::mt19937_64 random(TestSeed(83));
  for (const OpTable* ops : TestedOps()) {
    for (size_t k : {1, 15, 64, 100}) {
      const size_t n = 37;
      Halves w(n * k, random);
      std::vector<float> x(k), bias(n), y(n);
      for (float& v : x) v = std::normal_distribution<float>()(random);
      for (float& v : bias) v = std::normal_distribution<float>()(random);
      ops->multiply_half(
          {.w_NK = w.data(), .ldw = k, .x_K = x.data(), .bias_N = bias.data(), .y_N = y.data(), .n = n, .k = k});
      for (size_t j = 0; j < n; ++j) {
        std::vector<float> alone(1);
        ops->multiply_half({.w_NK = w.data() + j * k,
                            .ldw = k,
                            .x_K = x.data(),
                            .bias_N = bias.data() + j,
                            .y_N = alone.data(),
                            .n = 1,
                            .k = k});
        ASSERT_EQ(alone[0], y[j]) << ops->name << ", row " << j << ", k " << k;
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::half_test
