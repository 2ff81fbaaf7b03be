// Layer norm and RMS norm of every table against the reference in double or dual numbers, correct and perturbed. Each
// check runs over the test sizes, misaligned, with guards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "kernels/reference/dual.h"
#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::norms_test {
namespace {

// Fewer rows than a vector has lanes, as many, and more.
size_t SomeRows(std::mt19937_64& random) {
  constexpr size_t kRows[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 33};
  return kRows[random() % std::size(kRows)];
}

double CheckLayerNormForward(const OpTable& ops, size_t d, int, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = SomeRows(random);
  Row x(rows * d, random, 2.0f), gain(d, random, 1.0f), bias(d, random, 1.0f), y(rows * d), mean(rows), rstd(rows);
  y.Fill(NAN);
  std::vector<double> xd = x.Double(), gd = gain.Double(), bd = bias.Double(), yd(rows * d), md(rows), rd(rows);
  reference::LayerNormForward<double>({.x_RD = xd.data(),
                                       .gain_D = gd.data(),
                                       .bias_D = bd.data(),
                                       .y_RD = yd.data(),
                                       .mean_R = md.data(),
                                       .rstd_R = rd.data(),
                                       .rows = rows,
                                       .d = d,
                                       .epsilon = 1e-5});
  // If entries hardly differ, their differences from the mean are a few units of their last place.
  const auto relative = [&](size_t r) { return 1e-5 + (d > 1 ? std::ldexp(std::abs(md[r]) * rd[r], -21) : 0.0); };
  if (d > 0) PlanPerturbation(y.data(), 4 * relative(0) * Largest(yd.data(), d));
  ops.layer_norm_forward({.x_RD = x.data(),
                          .gain_D = gain.data(),
                          .bias_D = bias.data(),
                          .y_RD = y.data(),
                          .mean_R = mean.data(),
                          .rstd_R = rstd.data(),
                          .rows = rows,
                          .d = d,
                          .epsilon = 1e-5f});
  ErrorMeter meter;
  for (size_t r = 0; d > 0 && r < rows; ++r) {
    meter.Add(mean.data()[r], md[r], 1e-5 * (1 + Largest(xd.data() + r * d, d)));
    if (d > 1) meter.Add(rstd.data()[r], rd[r], relative(r) * rd[r]);
    for (size_t i = r * d; i < (r + 1) * d; ++i) meter.Add(y.data()[i], yd[i], relative(r) * Largest(&yd[r * d], d));
  }
  EXPECT_TRUE(y.GuardsIntact() && mean.GuardsIntact() && rstd.GuardsIntact());
  return meter.worst();
}

double CheckLayerNormBackward(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = SomeRows(random);
  const Store store = variant % 2 == 0 ? Store::kAssign : Store::kAdd;
  Row x(rows * d, random, 2.0f), dy(rows * d, random, 1.0f), gain(d, random, 1.0f), dx(rows * d, random, 1.0f),
      dgain(d), dbias(d), mean(rows), rstd(rows);
  std::vector<double> xd = x.Double(), dyd = dy.Double(), gd = gain.Double(), dxd = dx.Double(), dgd(d), dbd(d),
                      yd(rows * d), md(rows), rd(rows);
  const std::vector<double> zero(d);
  // A variance near zero would only test the conditioning. Width 1 has no variance at all.
  reference::LayerNormForward<double>({.x_RD = xd.data(),
                                       .gain_D = gd.data(),
                                       .bias_D = zero.data(),
                                       .y_RD = yd.data(),
                                       .mean_R = md.data(),
                                       .rstd_R = rd.data(),
                                       .rows = rows,
                                       .d = d,
                                       .epsilon = 1e-1});
  for (size_t r = 0; r < rows; ++r) {
    mean.data()[r] = static_cast<float>(md[r]);
    rstd.data()[r] = static_cast<float>(rd[r]);
  }
  reference::LayerNormBackward<double>({.dy_RD = dyd.data(),
                                        .x_RD = xd.data(),
                                        .gain_D = gd.data(),
                                        .mean_R = md.data(),
                                        .rstd_R = rd.data(),
                                        .dx_RD = dxd.data(),
                                        .dgain_D = dgd.data(),
                                        .dbias_D = dbd.data(),
                                        .rows = rows,
                                        .d = d,
                                        .store = store});
  if (store == Store::kAssign) dx.Fill(NAN);
  dgain.Fill(NAN);
  const double tolerance = 1e-5 * (Largest(dxd.data(), dxd.size()) + 1);
  if (d > 0) PlanPerturbation(dx.data(), 4 * tolerance);
  ops.layer_norm_backward({.dy_RD = dy.data(),
                           .x_RD = x.data(),
                           .gain_D = gain.data(),
                           .mean_R = mean.data(),
                           .rstd_R = rstd.data(),
                           .dx_RD = dx.data(),
                           .dgain_D = dgain.data(),
                           .dbias_D = dbias.data(),
                           .rows = rows,
                           .d = d,
                           .store = store});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) meter.Add(dx.data()[i], dxd[i], tolerance);
  for (size_t i = 0; i < d; ++i) {
    meter.Add(dgain.data()[i], dgd[i], 1e-5 * (Largest(dgd.data(), d) + 1));
    meter.Add(dbias.data()[i], dbd[i], 1e-5 * (Largest(dbd.data(), d) + 1));
  }
  EXPECT_TRUE(dx.GuardsIntact() && dgain.GuardsIntact() && dbias.GuardsIntact());
  return meter.worst();
}

double CheckRmsNormForward(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = SomeRows(random);
  const float size = std::vector<float>{2.0f, 1e-3f, 1e6f, 1e14f}[static_cast<size_t>(variant)];
  Row x(rows * d, random, size), gain(d, random, 1.0f), y(rows * d), rstd(rows);
  y.Fill(NAN);
  const std::vector<double> xd = x.Double(), gd = gain.Double();
  std::vector<double> yd(rows * d), rd(rows);
  reference::RmsNormForward<double>({.x_RD = xd.data(),
                                     .gain_D = gd.data(),
                                     .y_RD = yd.data(),
                                     .rstd_R = rd.data(),
                                     .rows = rows,
                                     .d = d,
                                     .epsilon = 1e-5});
  if (d > 0) PlanPerturbation(y.data(), 4e-5 * Largest(yd.data(), d));
  ops.rms_norm_forward({.x_RD = x.data(),
                        .gain_D = gain.data(),
                        .y_RD = y.data(),
                        .rstd_R = rstd.data(),
                        .rows = rows,
                        .d = d,
                        .epsilon = 1e-5f});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) meter.Add(y.data()[i], yd[i], 1e-5 * Largest(yd.data() + i / d * d, d));
  for (size_t r = 0; r < rows; ++r) meter.Add(rstd.data()[r], rd[r], 1e-5 * rd[r]);
  EXPECT_TRUE(y.GuardsIntact() && rstd.GuardsIntact());
  return meter.worst();
}

// Returns the derivative of <dy, y> for each entry of x, by dual numbers, or for the gain.
std::vector<double> RmsNormDerivatives(const Row& dy, const Row& x, const Row& gain, bool of_gain, double epsilon) {
  using reference::Dual;
  const size_t d = gain.cols(), rows = d == 0 ? 0 : x.cols() / d;
  std::vector<Dual> xd(x.data(), x.data() + x.cols()), gd(gain.data(), gain.data() + d), yd(rows * d), rd(rows);
  std::vector<Dual>& moved = of_gain ? gd : xd;
  std::vector<double> derivatives;
  for (Dual& number : moved) {
    number.derivative = 1;
    reference::RmsNormForward<Dual>({.x_RD = xd.data(),
                                     .gain_D = gd.data(),
                                     .y_RD = yd.data(),
                                     .rstd_R = rd.data(),
                                     .rows = rows,
                                     .d = d,
                                     .epsilon = epsilon});
    number.derivative = 0;
    double sum = 0;
    for (size_t i = 0; i < rows * d; ++i) sum += dy.data()[i] * yd[i].derivative;
    derivatives.push_back(sum);
  }
  return derivatives;
}

double CheckRmsNormBackward(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = SomeRows(random);
  const Store store = variant % 2 == 0 ? Store::kAssign : Store::kAdd;
  const float epsilon = variant < 2 ? 1e-1f : 1e-5f;
  Row x(rows * d, random, 2.0f), dy(rows * d, random, 1.0f), gain(d, random, 1.0f), dx(rows * d, random, 1.0f),
      dgain(d), rstd(rows), y(rows * d);
  const std::vector<double> dgd = RmsNormDerivatives(dy, x, gain, true, epsilon);
  std::vector<double> dxd = RmsNormDerivatives(dy, x, gain, false, epsilon);
  for (size_t i = 0; store == Store::kAdd && i < rows * d; ++i) dxd[i] += dx.data()[i];
  ReferenceOps().rms_norm_forward({.x_RD = x.data(),
                                   .gain_D = gain.data(),
                                   .y_RD = y.data(),
                                   .rstd_R = rstd.data(),
                                   .rows = rows,
                                   .d = d,
                                   .epsilon = epsilon});
  if (store == Store::kAssign) dx.Fill(NAN);
  dgain.Fill(NAN);
  // For a short row the gradient is a difference of nearly equal numbers, so the tolerance is relative to these.
  double made_of = 1;
  for (size_t r = 0; r < rows; ++r) made_of = std::max<double>(made_of, rstd.data()[r]);
  const double tolerance = 1e-5 * (Largest(dxd.data(), dxd.size()) + made_of);
  if (d > 0) PlanPerturbation(dx.data(), 4 * tolerance);
  ops.rms_norm_backward({.dy_RD = dy.data(),
                         .x_RD = x.data(),
                         .gain_D = gain.data(),
                         .rstd_R = rstd.data(),
                         .dx_RD = dx.data(),
                         .dgain_D = dgain.data(),
                         .rows = rows,
                         .d = d,
                         .store = store});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) meter.Add(dx.data()[i], dxd[i], tolerance);
  for (size_t i = 0; i < d; ++i) meter.Add(dgain.data()[i], dgd[i], 1e-5 * (Largest(dgd.data(), d) + 1));
  EXPECT_TRUE(dx.GuardsIntact() && dgain.GuardsIntact());
  return meter.worst();
}

TEST(LayerNorm, ForwardEqualsReferenceInDouble) { Hold<&OpTable::layer_norm_forward>(1, CheckLayerNormForward); }
TEST(LayerNorm, BackwardEqualsReferenceInDouble) { Hold<&OpTable::layer_norm_backward>(2, CheckLayerNormBackward); }
TEST(RmsNorm, ForwardEqualsReferenceInDouble) { Hold<&OpTable::rms_norm_forward>(15, CheckRmsNormForward); }
TEST(RmsNorm, BackwardEqualsDualNumbers) { Hold<&OpTable::rms_norm_backward>(16, CheckRmsNormBackward); }

}  // namespace
}  // namespace wisp::kernels::norms_test
