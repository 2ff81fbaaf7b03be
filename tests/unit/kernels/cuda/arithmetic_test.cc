// Compares products of a device in each of its arithmetics with double loops written here, within the bounds of
// docs/cuda.md, "arithmetic". Integers must equal the processor's, to the bit.
//
// Every check runs twice: on the table, and on a copy that is wrong in one element, where it must notice.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cuda/cuda.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::arithmetic_test {
namespace {

struct Kind {
  Arithmetic arithmetic;
  double of_factor;  // the most that a factor is off, relative to its magnitude
  double near_zero;  // and the most absolutely, if it is small
};
constexpr Kind kTf32 = {Arithmetic::kTf32, 0x1p-11, 0}, kHalf = {Arithmetic::kFloat16, 0x1p-11, 0x1p-25},
               kBfloat = {Arithmetic::kBfloat16, 0x1p-8, 0};

struct Shape {
  size_t rows, n, k;
};
// Sizes around tiles (64), slices (16 words), the numbers in a word, and warps' parts.
constexpr Shape kShapes[] = {{0, 3, 2},   {3, 0, 2},    {2, 3, 0},    {1, 1, 1},     {1, 64, 16},  {1, 65, 17},
                             {2, 130, 3}, {16, 8, 8},   {17, 9, 33},  {64, 64, 64},  {65, 63, 65}, {31, 33, 31},
                             {7, 5, 130}, {130, 67, 5}, {100, 7, 66}, {48, 100, 129}};

struct Factors {
  Factors(const Shape& s, uint64_t seed) : x(s.rows, s.k, s.k + 3), w(s.n, s.k, s.k + 2), bias(1, s.n, s.n) {
    std::mt19937_64 random(seed);
    for (GuardedMatrix* m : {&x, &w, &bias}) m->Fill(random, std::normal_distribution<float>());
  }
  GuardedMatrix x, w, bias;
};

// Returns the largest error over tolerance of rows of x times rows of w.
template <class X, class W>
double Compare(const GuardedMatrix& y, const Kind& kind, size_t inner, X x, W w, const GuardedMatrix* bias) {
  ErrorMeter meter;
  for (size_t r = 0; r < y.rows(); ++r) {
    for (size_t j = 0; j < y.cols(); ++j) {
      double sum = bias != nullptr ? *bias->at(0, j) : 0, magnitudes = std::abs(sum), near_zero = 0;
      for (size_t i = 0; i < inner; ++i) {
        const double a = x(r, i), b = w(j, i);
        sum += a * b;
        magnitudes += std::abs(a * b);
        near_zero += kind.near_zero * (std::abs(a) + std::abs(b));
      }
      const double rounding = 4 * static_cast<double>(inner + 4) * kEpsilon;
      meter.Add(*y.at(r, j), sum, (2.01 * kind.of_factor + rounding) * magnitudes + near_zero + 1e-30);
    }
  }
  return meter.worst();
}

// Packs and multiplies, and checks the guards.
void Forward(const OpTable& ops, const Shape& s, const Factors& f, GuardedMatrix& y) {
  const size_t size = ops.packed_size(s.n, s.k);
  GuardedMatrix packed(1, size, size);
  ops.pack_weights({.w_NK = f.w.data(), .ldw = f.w.ld(), .packed = packed.data(), .n = s.n, .k = s.k});
  EXPECT_TRUE(packed.GuardsIntact()) << "packing wrote past packed_size()";
  ops.linear_forward({.x_RK = f.x.data(),
                      .ldx = f.x.ld(),
                      .packed = packed.data(),
                      .bias_N = f.bias.data(),
                      .y_RN = y.data(),
                      .ldy = y.ld(),
                      .rows = s.rows,
                      .n = s.n,
                      .k = s.k,
                      .store = Store::kAssign});
  EXPECT_TRUE(y.GuardsIntact()) << "wrote outside the result";
}

double CheckForward(const OpTable& ops, const Kind& kind, const Shape& s, uint64_t seed) {
  const Factors f(s, seed);
  GuardedMatrix y(s.rows, s.n, s.n + 1);
  if (s.rows * s.n > 0) PlanPerturbation(y.at(seed % s.rows, seed % s.n), 1.0 + static_cast<double>(s.k));
  Forward(ops, s, f, y);
  return Compare(
      y, kind, s.k, [&](size_t r, size_t i) { return *f.x.at(r, i); },
      [&](size_t j, size_t i) { return *f.w.at(j, i); }, &f.bias);
}

// Runs check(table, kind, shape, seed) for every shape, correct and perturbed.
template <auto kEntry, class Check>
void HoldKind(const Kind& kind, Check check) {
  const OpTable& ops = cuda::Ops(kind.arithmetic);
  const OpTable wrong = PerturbedTable<kEntry>(ops);
  uint64_t seed = TestSeed(1);
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(::testing::Message() << ops.name << ": rows " << s.rows << ", n " << s.n << ", k " << s.k);
    PlanNoPerturbation();
    EXPECT_LE(check(ops, kind, s, ++seed), 1);
    if (ThePerturbation().at == nullptr) continue;  // the result is empty
    EXPECT_GT(check(wrong, kind, s, seed), 1) << "a wrong element went unnoticed";
  }
}

TEST(Arithmetic, ForwardStaysWithinItsBound) {
  for (const Kind& kind : {kTf32, kHalf, kBfloat}) HoldKind<&OpTable::linear_forward>(kind, CheckForward);
}

double CheckBackwardInput(const OpTable& ops, const Kind& kind, const Shape& s, uint64_t seed) {
  const Factors f({s.rows, s.k, s.n}, seed);  // dy [rows, n], w^T [k, n]
  GuardedMatrix w(s.n, s.k, s.k + 2), dx(s.rows, s.k, s.k + 1);
  for (size_t j = 0; j < s.n; ++j) {
    for (size_t i = 0; i < s.k; ++i) *w.at(j, i) = *f.w.at(i, j);
  }
  if (s.rows * s.k > 0) PlanPerturbation(dx.at(seed % s.rows, seed % s.k), 1.0 + static_cast<double>(s.n));
  ops.linear_backward_input({.dy_RN = f.x.data(),
                             .lddy = f.x.ld(),
                             .w_NK = w.data(),
                             .ldw = w.ld(),
                             .dx_RK = dx.data(),
                             .lddx = dx.ld(),
                             .rows = s.rows,
                             .n = s.n,
                             .k = s.k,
                             .store = Store::kAssign});
  EXPECT_TRUE(dx.GuardsIntact());
  return Compare(
      dx, kind, s.n, [&](size_t r, size_t j) { return *f.x.at(r, j); },
      [&](size_t i, size_t j) { return *f.w.at(i, j); }, nullptr);
}

double CheckBackwardWeight(const OpTable& ops, const Kind& kind, const Shape& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  GuardedMatrix dy(s.rows, s.n, s.n + 3), x(s.rows, s.k, s.k + 2), dw(s.n, s.k, s.k + 1);
  for (GuardedMatrix* m : {&dy, &x}) m->Fill(random, std::normal_distribution<float>());
  if (s.n * s.k > 0) PlanPerturbation(dw.at(seed % s.n, seed % s.k), 1.0 + static_cast<double>(s.rows));
  ops.linear_backward_weight({.dy_RN = dy.data(),
                              .lddy = dy.ld(),
                              .x_RK = x.data(),
                              .ldx = x.ld(),
                              .dw_NK = dw.data(),
                              .lddw = dw.ld(),
                              .rows = s.rows,
                              .n = s.n,
                              .k = s.k,
                              .scale = 0.5f,
                              .store = Store::kAssign});
  EXPECT_TRUE(dw.GuardsIntact());
  return Compare(
      dw, kind, s.rows, [&](size_t j, size_t r) { return 0.5 * *dy.at(r, j); },
      [&](size_t i, size_t r) { return *x.at(r, i); }, nullptr);
}

TEST(Arithmetic, GradientsInTf32StayWithinTheirBound) {
  HoldKind<&OpTable::linear_backward_input>(kTf32, CheckBackwardInput);
  HoldKind<&OpTable::linear_backward_weight>(kTf32, CheckBackwardWeight);
}

// Each record's gradient goes to its stride and is added to what is there. The bits are those of the record alone.
TEST(Arithmetic, RecordsGradientsInTf32AreThoseOfEachAlone) {
  const OpTable& ops = cuda::Ops(Arithmetic::kTf32);
  constexpr size_t kN = 70, kK = 35, kStride = kN * kK + 5;
  const uint32_t begin[] = {0, 1, 18, 18, 90};
  GuardedMatrix dy(90, kN, kN), x(90, kK, kK), together(4, kStride, kStride), alone(4, kStride, kStride);
  std::mt19937_64 random(TestSeed(2));
  for (GuardedMatrix* m : {&dy, &x}) m->Fill(random, std::normal_distribution<float>());
  for (GuardedMatrix* m : {&together, &alone}) m->Fill(1.0f);
  const auto run = [&](const Segments& records, size_t first_row, float* dw) {
    ops.record_weight_gradients({.dy_RN = dy.at(first_row, 0),
                                 .lddy = kN,
                                 .x_RK = x.at(first_row, 0),
                                 .ldx = kK,
                                 .dw_BNK = dw,
                                 .stride = kStride,
                                 .records = records,
                                 .n = kN,
                                 .k = kK});
  };
  run({.begin_B = begin, .num_records = 4, .rows = 90}, 0, together.data());
  for (size_t b = 0; b < 4; ++b) {
    if (begin[b] < begin[b + 1]) run({.rows = begin[b + 1] - begin[b]}, begin[b], alone.at(b, 0));
  }
  EXPECT_EQ(std::memcmp(together.data(), alone.data(), 4 * kStride * sizeof(float)), 0);
  double sum = 1;
  for (size_t r = 18; r < 90; ++r) sum += static_cast<double>(*dy.at(r, 69)) * *x.at(r, 34);
  EXPECT_NEAR(*together.at(3, 69 * kK + 34), sum, 0.2);
  EXPECT_EQ(*together.at(3, kN * kK), 1.0f);
}

// A row's result depends on no other row, in any arithmetic.
TEST(Arithmetic, RowsDoNotDependOnHowManyPass) {
  for (const Arithmetic a : {Arithmetic::kTf32, Arithmetic::kFloat16, Arithmetic::kBfloat16, Arithmetic::kInt8}) {
    const OpTable& ops = cuda::Ops(a);
    const Shape s = {70, 66, 37};
    const Factors f(s, TestSeed(3));
    GuardedMatrix whole(s.rows, s.n, s.n), one(1, s.n, s.n);
    Forward(ops, s, f, whole);
    for (const size_t r : {size_t{0}, size_t{17}, size_t{69}}) {
      Factors row({1, s.n, s.k}, 0);
      std::memcpy(row.x.data(), f.x.at(r, 0), s.k * sizeof(float));
      for (size_t j = 0; j < s.n; ++j) std::memcpy(row.w.at(j, 0), f.w.at(j, 0), s.k * sizeof(float));
      std::memcpy(row.bias.data(), f.bias.data(), s.n * sizeof(float));
      Forward(ops, {1, s.n, s.k}, row, one);
      EXPECT_EQ(std::memcmp(one.data(), whole.at(r, 0), s.n * sizeof(float)), 0) << ops.name << ", row " << r;
    }
  }
}

// The whole numbers, the scales and the order in which they are combined are those of the processor.
TEST(Arithmetic, IntegersAreThoseOfTheProcessor) {
  const OpTable *host = Int8Ops(), &device = cuda::Ops(Arithmetic::kInt8);
  if (host == nullptr) GTEST_SKIP() << "this processor has no 8-bit kernels";
  uint64_t seed = TestSeed(4);
  for (const Shape& s : kShapes) {
    if (s.k == 0) continue;  // the processor computes these with floats
    Factors f(s, ++seed);
    if (seed % 2 == 0) f.bias.Fill(0.0f);  // otherwise tiny numbers are lost in it
    if (s.rows > 2) {
      for (size_t i = 0; i < s.k; ++i) *f.x.at(1, i) = 0x1p-101f;
      *f.x.at(2, s.k - 1) = std::numeric_limits<float>::infinity();
    }
    GuardedMatrix here(s.rows, s.n, s.n), there(s.rows, s.n, s.n);
    Forward(*host, s, f, here);
    Forward(device, s, f, there);
    for (size_t r = 0; r < s.rows; ++r) {
      for (size_t j = 0; j < s.n; ++j) {
        const float a = *here.at(r, j), b = *there.at(r, j);
        EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
            << a << " and " << b << ", rows " << s.rows << ", n " << s.n << ", k " << s.k << ", at " << r << " " << j;
      }
    }
  }
}

// Numbers at the edges: ties, the largest float16 and beyond, NaN.
TEST(Arithmetic, FactorsAreRoundedToTheNearest) {
  const auto product = [](Arithmetic arithmetic, float x_value, float w_value) {
    const OpTable& ops = cuda::Ops(arithmetic);
    std::vector<float> x = {x_value}, w = {w_value}, packed(ops.packed_size(1, 1)), y(1);
    ops.pack_weights({.w_NK = w.data(), .ldw = 1, .packed = packed.data(), .n = 1, .k = 1});
    ops.linear_forward({.x_RK = x.data(),
                        .ldx = 1,
                        .packed = packed.data(),
                        .bias_N = nullptr,
                        .y_RN = y.data(),
                        .ldy = 1,
                        .rows = 1,
                        .n = 1,
                        .k = 1,
                        .store = Store::kAssign});
    return y[0];
  };
  EXPECT_EQ(product(Arithmetic::kTf32, 1 + 0x1p-11f, 1), 1 + 0x1p-10f);  // away from zero
  EXPECT_EQ(product(Arithmetic::kTf32, -1 - 0x1p-12f, 1), -1.0f);
  EXPECT_EQ(product(Arithmetic::kTf32, 0x1.002p127f, 0.25f), 0x1.004p125f);
  EXPECT_EQ(product(Arithmetic::kFloat16, 1 + 0x1p-11f, 1), 1.0f);  // to even
  EXPECT_EQ(product(Arithmetic::kFloat16, 1, 1 + 3 * 0x1p-11f), 1 + 0x1p-9f);
  EXPECT_EQ(product(Arithmetic::kFloat16, 65504, 2), 131008.0f);
  EXPECT_TRUE(std::isinf(product(Arithmetic::kFloat16, 65520, 1)));
  EXPECT_EQ(product(Arithmetic::kBfloat16, 1 + 0x1p-8f, 1), 1.0f);
  EXPECT_EQ(product(Arithmetic::kBfloat16, 1, 1 + 3 * 0x1p-8f), 1 + 0x1p-6f);
  EXPECT_EQ(product(Arithmetic::kBfloat16, 1e30f, 1e-30f), product(Arithmetic::kBfloat16, 1e-30f, 1e30f));
  for (const Arithmetic a : {Arithmetic::kTf32, Arithmetic::kFloat16, Arithmetic::kBfloat16, Arithmetic::kInt8}) {
    EXPECT_TRUE(std::isnan(product(a, std::numeric_limits<float>::quiet_NaN(), 1))) << cuda::Ops(a).name;
    EXPECT_FALSE(std::isfinite(product(a, 1, std::numeric_limits<float>::infinity()))) << cuda::Ops(a).name;
  }
}

// Scores by tiles that were packed one by one, the last of them narrower.
TEST(Arithmetic, ScoresOfTilesAreProducts) {
  for (const Arithmetic a : {Arithmetic::kTf32, Arithmetic::kFloat16, Arithmetic::kBfloat16, Arithmetic::kInt8}) {
    const OpTable& ops = cuda::Ops(a);
    constexpr size_t kTile = 80, kK = 21;
    const Shape s = {3, 190, kK};
    const Factors f(s, TestSeed(5));
    const size_t stride = ops.packed_size(kTile, kK);
    std::vector<float> packed(3 * stride), x(s.rows * kK);
    GuardedMatrix whole(s.rows, s.n, s.n), tiles(s.rows, s.n, s.n);
    for (size_t first = 0; first < s.n; first += kTile) {
      ops.pack_weights({.w_NK = f.w.at(first, 0),
                        .ldw = f.w.ld(),
                        .packed = &packed[first / kTile * stride],
                        .n = std::min(kTile, s.n - first),
                        .k = kK});
    }
    for (size_t r = 0; r < s.rows; ++r) std::memcpy(&x[r * kK], f.x.at(r, 0), kK * sizeof(float));
    Forward(ops, s, f, whole);
    ops.score_tiles({.x_RK = x.data(),
                     .packed = packed.data(),
                     .tile = kTile,
                     .tile_stride = stride,
                     .bias_N = f.bias.data(),
                     .y_RN = tiles.data(),
                     .rows = s.rows,
                     .n = s.n,
                     .k = kK});
    EXPECT_TRUE(tiles.GuardsIntact());
    for (size_t r = 0; r < s.rows; ++r)
      EXPECT_EQ(std::memcmp(whole.at(r, 0), tiles.at(r, 0), s.n * sizeof(float)), 0) << ops.name << ", row " << r;
  }
}

}  // namespace
}  // namespace wisp::kernels::arithmetic_test
