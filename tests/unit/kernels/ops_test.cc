// Scaling, variances, embedding, reductions and optimizers of every table against the reference in double or dual
// numbers, correct and perturbed. Each check runs over the test sizes, misaligned, with guards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/dual.h"
#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::ops_test {
namespace {

double CheckLinearVariance(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 5, k = PickSize(random);
  Row mean(rows * k, random, 2.0f), variance(rows * k, random, 1.0f), y(rows * n, random, 1.0f);
  for (size_t i = 0; i < rows * k; ++i) variance.data()[i] = std::abs(variance.data()[i]);
  if (variant != 3) y.Fill(random, std::uniform_real_distribution<float>(0, 3));  // variant 3: some fall below 0
  const bool given = variant % 2 == 0;
  const std::vector<double> md = mean.Double(), vd = variance.Double();
  std::vector<double> yd = y.Double();
  reference::LinearVariance<double>({.mean_RK = md.data(),
                                     .ldmean = k,
                                     .variance_RK = given ? vd.data() : nullptr,
                                     .ldvariance = k,
                                     .y_RN = yd.data(),
                                     .ldy = n,
                                     .rows = rows,
                                     .n = n,
                                     .k = k,
                                     .weight_variance = 0.25,
                                     .bias_variance = 0.125});
  if (n > 0) PlanPerturbation(y.data(), 8e-5 * Largest(yd.data(), n));
  ops.linear_variance({.mean_RK = mean.data(),
                       .ldmean = k,
                       .variance_RK = given ? variance.data() : nullptr,
                       .ldvariance = k,
                       .y_RN = y.data(),
                       .ldy = n,
                       .rows = rows,
                       .n = n,
                       .k = k,
                       .weight_variance = 0.25f,
                       .bias_variance = 0.125f});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * n; ++i) meter.Add(y.data()[i], yd[i], 2e-5 * Largest(yd.data() + i / n * n, n));
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckLayerNormVariance(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 5;
  Row x(rows * d), gain(d, random, 1.0f), rstd(rows, random, 1.0f), y(rows * d);
  x.Fill(random, std::uniform_real_distribution<float>(0, 3));
  const std::vector<double> xd = x.Double(), gd = gain.Double(), rd = rstd.Double();
  std::vector<double> yd(rows * d);
  reference::LayerNormVariance<double>(
      {.x_RD = xd.data(), .gain_D = gd.data(), .rstd_R = rd.data(), .y_RD = yd.data(), .rows = rows, .d = d});
  GuardedMatrix& out = variant % 2 == 0 ? x : y;
  if (d > 0) PlanPerturbation(out.data(), 8e-5 * Largest(yd.data(), d));
  ops.layer_norm_variance(
      {.x_RD = x.data(), .gain_D = gain.data(), .rstd_R = rstd.data(), .y_RD = out.data(), .rows = rows, .d = d});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) meter.Add(out.data()[i], yd[i], 2e-5 * Largest(yd.data() + i / d * d, d));
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

double CheckActivationVariance(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Row mean(n, random, variant == 3 ? 30.0f : 1.5f), x(n), y(n);
  x.Fill(random, std::uniform_real_distribution<float>(-0.2f, 2));  // below 0: no variance
  if (n > 2) x.data()[1] = 0, x.data()[2] = 1e-30f;
  const std::vector<double> md = mean.Double(), xd = x.Double();
  std::vector<double> yd(n);
  reference::ActivationVariance<double>({md.data(), xd.data(), yd.data(), n});
  GuardedMatrix& out = variant % 2 == 0 ? x : y;
  const auto tolerance = [&](size_t i) { return 2e-5 * std::max(1e-3, xd[i]); };
  if (n > 0) PlanPerturbation(out.data(), 4 * tolerance(0) + 1e-9);
  ops.activation_variance({mean.data(), x.data(), out.data(), n});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) meter.Add(out.data()[i], yd[i], tolerance(i));
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

double CheckScale(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Store store = variant % 2 == 0 ? Store::kAssign : Store::kAdd;
  Row x(n, random, 1.0f), y(n, random, 1.0f);
  std::vector<double> xd = x.Double(), yd = y.Double();
  reference::Scale<double>({xd.data(), yd.data(), n, -1.25, store});
  if (store == Store::kAssign) y.Fill(NAN);
  GuardedMatrix& out = variant == 2 ? x : y;
  if (n > 0) PlanPerturbation(out.data(), 4 * 4 * kUlp * (1 + std::abs(yd[0])));
  ops.scale({x.data(), out.data(), n, -1.25f, store});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) meter.Add(out.data()[i], yd[i], 4 * kUlp * (1 + std::abs(yd[i])) * 0.9);
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

double CheckApplyKeep(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Row x(n, random, 1.0f), y(n);
  std::vector<uint8_t> keep(n);
  for (uint8_t& k : keep) k = random() % 2;
  for (size_t i = 0; i < n; ++i) {
    if (keep[i] == 0 && random() % 3 == 0) x.data()[i] = NAN;  // dropped, so its value does not matter
  }
  const std::vector<float> before(x.data(), x.data() + n);
  GuardedMatrix& out = variant % 2 == 0 ? x : y;
  if (n > 0) PlanPerturbation(out.data(), 1e-5);
  ops.apply_keep({x.data(), keep.data(), out.data(), n, 1.5f});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i)
    meter.Add(out.data()[i], keep[i] ? 1.5 * before[i] : 0, 4 * kUlp * (keep[i] ? std::abs(before[i]) + 1e-3 : 1e-3));
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

double CheckEmbed(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 6, items = 5;
  Row table(items * d, random, 1.0f), positions(rows * d, random, 1.0f), y(rows * d);
  std::vector<int32_t> ids(rows);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % (items + 1)) - 1;
  std::vector<double> td = table.Double(), pd = positions.Double(), yd(rows * d);
  const bool with = variant % 3 != 0;
  std::vector<int32_t> position(rows);  // the position of each row; -1 for padding
  for (size_t t = 0; t < rows; ++t) position[t] = ids[t] < 0 ? -1 : static_cast<int32_t>(rows - 1 - t);
  const int32_t* position_T = variant % 3 == 2 ? position.data() : nullptr;
  reference::EmbedForward<double>({.table_MD = td.data(),
                                   .positions_TD = with ? pd.data() : nullptr,
                                   .ids_T = ids.data(),
                                   .y_TD = yd.data(),
                                   .rows = rows,
                                   .d = d,
                                   .scale = 3.5,
                                   .position_T = position_T});
  y.Fill(NAN);
  if (d > 0) PlanPerturbation(y.data(), 1e-4);
  ops.embed_forward({.table_MD = table.data(),
                     .positions_TD = with ? positions.data() : nullptr,
                     .ids_T = ids.data(),
                     .y_TD = y.data(),
                     .rows = rows,
                     .d = d,
                     .scale = 3.5f,
                     .position_T = position_T});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) meter.Add(y.data()[i], yd[i], 8 * kUlp * (1 + std::abs(yd[i])));
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckScatter(const OpTable& ops, size_t d, int, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 9, items = 4;
  GuardedMatrix dx(rows, d, d + 3), table(items, d, d + 2);
  dx.Fill(random, std::normal_distribution<float>(0, 1));
  table.Fill(random, std::normal_distribution<float>(0, 1));
  std::vector<int32_t> ids(rows);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % (items + 1)) - 1;
  std::vector<double> dxd, td;
  for (size_t r = 0; r < rows; ++r) dxd.insert(dxd.end(), dx.at(r, 0), dx.at(r, 0) + d);
  for (size_t r = 0; r < items; ++r) td.insert(td.end(), table.at(r, 0), table.at(r, 0) + d);
  reference::ScatterAdd<double>({.dx_TD = dxd.data(),
                                 .lddx = d,
                                 .ids_T = ids.data(),
                                 .table_MD = td.data(),
                                 .ldtable = d,
                                 .rows = rows,
                                 .d = d,
                                 .scale = 0.75});
  if (d > 0) PlanPerturbation(table.at(0, d - 1), 1e-4);
  ops.scatter_add({.dx_TD = dx.data(),
                   .lddx = dx.ld(),
                   .ids_T = ids.data(),
                   .table_MD = table.data(),
                   .ldtable = table.ld(),
                   .rows = rows,
                   .d = d,
                   .scale = 0.75f});
  ErrorMeter meter;
  for (size_t r = 0; r < items; ++r) {
    for (size_t i = 0; i < d; ++i) meter.Add(*table.at(r, i), td[r * d + i], 4 * kUlp * (10 + std::abs(td[r * d + i])));
  }
  EXPECT_TRUE(table.GuardsIntact());
  return meter.worst();
}

double CheckAdam(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Row w(n, random, 1.0f), m(n, random, 0.1f), v(n, random, 0.1f), g(n, random, 1.0f);
  for (size_t i = 0; i < n; ++i) v.data()[i] = std::abs(v.data()[i]);
  std::vector<double> wd = w.Double(), md = m.Double(), vd = v.Double(), gd = g.Double();
  const float decay = variant % 2 == 0 ? 0.0f : 0.1f;
  reference::Adam<double>({.w = wd.data(),
                           .m = md.data(),
                           .v = vd.data(),
                           .g = gd.data(),
                           .n = n,
                           .rate = 0.01f,
                           .beta1 = 0.9f,
                           .beta2 = 0.99f,
                           .epsilon = 1e-6f,
                           .decay = decay,
                           .correction1 = 1.5f,
                           .correction2 = 2.5f});
  if (n > 0) PlanPerturbation(w.data() + n - 1, 4 * 8 * kUlp * (1 + std::abs(wd[n - 1])));
  ops.adam({.w = w.data(),
            .m = m.data(),
            .v = v.data(),
            .g = g.data(),
            .n = n,
            .rate = 0.01f,
            .beta1 = 0.9f,
            .beta2 = 0.99f,
            .epsilon = 1e-6f,
            .decay = decay,
            .correction1 = 1.5f,
            .correction2 = 2.5f});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) {
    meter.Add(w.data()[i], wd[i], 8 * kUlp * (1 + std::abs(wd[i])) * 0.9);
    meter.Add(m.data()[i], md[i], 8 * kUlp * (0.1 + std::abs(md[i])));
    meter.Add(v.data()[i], vd[i], 8 * kUlp * vd[i]);
  }
  EXPECT_TRUE(w.GuardsIntact() && m.GuardsIntact() && v.GuardsIntact());
  return meter.worst();
}

double CheckSgd(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Row w(n, random, 1.0f), m(n, random, 1.0f), g(n, random, 1.0f);
  std::vector<double> wd = w.Double(), md = m.Double(), gd = g.Double();
  const bool momentum = variant % 2 == 0;
  reference::Sgd<double>({.w = wd.data(),
                          .m = momentum ? md.data() : nullptr,
                          .g = gd.data(),
                          .n = n,
                          .rate = 0.1f,
                          .momentum = 0.9f,
                          .decay = 0.05f});
  if (n > 0) PlanPerturbation(w.data(), 4 * 8 * kUlp * (1 + std::abs(wd[0])));
  ops.sgd({.w = w.data(),
           .m = momentum ? m.data() : nullptr,
           .g = g.data(),
           .n = n,
           .rate = 0.1f,
           .momentum = 0.9f,
           .decay = 0.05f});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) {
    meter.Add(w.data()[i], wd[i], 8 * kUlp * (1 + std::abs(wd[i])) * 0.9);
    meter.Add(m.data()[i], md[i], 8 * kUlp * (1 + std::abs(md[i])));
  }
  EXPECT_TRUE(w.GuardsIntact() && m.GuardsIntact());
  return meter.worst();
}

TEST(LinearVariance, EqualsReferenceInDouble) { Hold<&OpTable::linear_variance>(11, CheckLinearVariance); }
TEST(LayerNormVariance, EqualsReferenceInDouble) { Hold<&OpTable::layer_norm_variance>(12, CheckLayerNormVariance); }
TEST(ActivationVariance, EqualsReferenceInDouble) { Hold<&OpTable::activation_variance>(13, CheckActivationVariance); }
TEST(Scale, EqualsReferenceInDouble) { Hold<&OpTable::scale>(5, CheckScale); }
TEST(ApplyKeep, EqualsReferenceInDouble) { Hold<&OpTable::apply_keep>(6, CheckApplyKeep); }
TEST(Embed, EqualsReferenceInDouble) { Hold<&OpTable::embed_forward>(7, CheckEmbed); }
TEST(Scatter, EqualsReferenceInDouble) { Hold<&OpTable::scatter_add>(8, CheckScatter); }
TEST(Adam, EqualsReferenceInDouble) { Hold<&OpTable::adam>(9, CheckAdam); }
TEST(Sgd, EqualsReferenceInDouble) { Hold<&OpTable::sgd>(10, CheckSgd); }

TEST(Reductions, EqualSumsInLongDouble) {
  std::mt19937_64 random(TestSeed(11));
  for (const OpTable* ops : TestedOps()) {
    for (size_t n : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 10007}) {
      Row x(n, random, 1.0f), y(n, random, 1.0f);
      long double dot = 0, squares = 0, terms = 0;
      for (size_t i = 0; i < n; ++i) {
        dot += static_cast<long double>(x.data()[i]) * y.data()[i];
        terms += std::abs(static_cast<long double>(x.data()[i]) * y.data()[i]);
        squares += static_cast<long double>(x.data()[i]) * x.data()[i];
      }
      EXPECT_NEAR(ops->dot(x.data(), y.data(), n), static_cast<double>(dot), 1e-12 * static_cast<double>(terms))
          << ops->name << " " << n;
      EXPECT_NEAR(ops->sum_squares(x.data(), n), static_cast<double>(squares), 1e-12 * static_cast<double>(squares))
          << ops->name << " " << n;
    }
  }
}

TEST(ExpDouble, IsWithinFourUnitsInTheLastPlace) {
  std::mt19937_64 random(TestSeed(14));
  for (const OpTable* ops : TestedOps()) {
    for (size_t n : {0, 1, 2, 3, 5, 8, 15, 16, 17, 4099}) {
      std::vector<double> x(n), y(n + 1, 42.0);  // one more: nothing is written past the end
      // The range of the usual arguments, and all numbers.
      for (size_t i = 0; i < n; ++i)
        x[i] = std::uniform_real_distribution<double>(i % 2 == 0 ? -30 : -700, i % 2 == 0 ? 0 : 700)(random);
      ops->exp_double({.x = x.data(), .y = y.data(), .n = n});
      for (size_t i = 0; i < n; ++i) {
        const long double truth = std::exp(static_cast<long double>(x[i]));
        const double unit = std::nextafter(static_cast<double>(truth), HUGE_VAL) - static_cast<double>(truth);
        ASSERT_LE(std::abs(static_cast<long double>(y[i]) - truth), 4.0L * unit) << ops->name << " exp(" << x[i] << ")";
      }
      EXPECT_EQ(y[n], 42.0) << ops->name << " " << n;
      ops->exp_double({.x = x.data(), .y = x.data(), .n = n});
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(x[i], y[i]) << ops->name << ": in place";
    }
    const std::vector<double> far = {-HUGE_VAL, -1e300, -800, 800, 1e300, HUGE_VAL};
    std::vector<double> y(6);
    ops->exp_double({.x = far.data(), .y = y.data(), .n = 6});
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(y[i] >= 0 && y[i] <= std::exp(-699.0)) << ops->name << " " << far[i];
    for (size_t i = 3; i < 6; ++i) EXPECT_GE(y[i], std::exp(699.0)) << ops->name << " " << far[i];
  }
}

TEST(AccumulateOnGrid, RoundsTiesToEvenAddsExactlyAndUndoesItself) {
  std::mt19937_64 random(TestSeed(12));
  for (const OpTable* ops : TestedOps()) {
    for (size_t n : kTestSizes) {
      Row x(n, random, 1.0f);
      // Ties at scale 4.
      for (size_t i = 0; i + 1 < n; i += 2) x.data()[i] = static_cast<float>(static_cast<int>(random() % 41) - 20) / 8;
      BasicGuardedMatrix<int64_t> sum(1, n, std::max<size_t>(1, n));
      std::vector<int64_t> before, expected;
      double squares = 0;
      for (float scale : {4.0f, 1e8f}) {
        before.clear(), expected.clear(), squares = 0;
        for (size_t i = 0; i < n; ++i) {
          sum.data()[i] = static_cast<int64_t>(random()) >> 2;
          before.push_back(sum.data()[i]);
          const auto r = static_cast<int64_t>(std::nearbyint(x.data()[i] * scale));
          expected.push_back(before.back() + r);
          squares += static_cast<double>(r) * static_cast<double>(r);
        }
        EXPECT_NEAR(ops->accumulate_on_grid({x.data(), sum.data(), n, scale, 1}), squares, 1e-12 * squares)
            << ops->name;
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(sum.data()[i], expected[i]) << ops->name << " " << i;
        ops->accumulate_on_grid({x.data(), sum.data(), n, scale, -1});
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(sum.data()[i], before[i]) << ops->name << " " << i;
        EXPECT_TRUE(sum.GuardsIntact());
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::ops_test
