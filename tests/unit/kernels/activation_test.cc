// Activations and gated activations of every table, correct and perturbed: values are compared with the reference in
// double, gradients with dual numbers. Each check runs over the test sizes, misaligned, with guards.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/dual.h"
#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::activation_test {
namespace {

using reference::Dual;

constexpr Activation kKinds[] = {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kSilu,
                                 Activation::kSigmoid};
constexpr int kNumKinds = 5;

Activation GetKind(int variant) { return kKinds[variant % kNumKinds]; }

double Truth(double x, Activation kind) { return reference::Activate<double>(x, kind); }
double SlopeTruth(double x, Activation kind) { return reference::Activate<Dual>(Dual(x, 1), kind).derivative; }

double ForwardTolerance(double y, Activation kind) {
  switch (kind) {
    case Activation::kRelu:
      return 4 * kUlp * (std::abs(y) + 1e-6);
    case Activation::kGelu:
      return 2e-6 * std::max(1.0, std::abs(y));
    case Activation::kGeluTanh:
      return 1e-6 * std::max(1.0, std::abs(y));
    case Activation::kSilu:
    case Activation::kSigmoid:
      return 1e-6 * std::abs(y) + 1e-32;
  }
  return 0;
}

double BackwardTolerance(double dy) { return 3e-6 * (std::abs(dy) + 1e-3); }

// variant: the kind, in place or not, and small or large.
double CheckForward(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Activation kind = GetKind(variant);
  const int way = variant / kNumKinds;
  Row x(n, random, way >= 2 ? 30.0f : 2.0f), y(n);
  std::vector<double> yd = x.Double();
  for (double& v : yd) v = Truth(v, kind);
  GuardedMatrix& out = way % 2 == 0 ? y : x;
  if (n > 0) PlanPerturbation(out.data() + n - 1, 4 * ForwardTolerance(yd[n - 1], kind) + 1e-9);
  ops.activation_forward({x.data(), out.data(), n, kind});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) meter.Add(out.data()[i], yd[i], ForwardTolerance(yd[i], kind));
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

double CheckBackward(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Activation kind = GetKind(variant);
  const int way = variant / kNumKinds;
  Row x(n, random, way >= 2 ? 30.0f : 2.0f), dy(n, random, 1.0f), dx(n);
  if (n > 0) x.data()[0] = 0;  // relu'(0) = 0
  const std::vector<double> xd = x.Double(), dyd = dy.Double();
  GuardedMatrix& out = way % 2 == 0 ? dx : dy;
  if (n > 0) PlanPerturbation(out.data() + n - 1, 4 * BackwardTolerance(dyd[n - 1]));
  ops.activation_backward({dy.data(), x.data(), out.data(), n, kind});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) meter.Add(out.data()[i], dyd[i] * SlopeTruth(xd[i], kind), BackwardTolerance(dyd[i]));
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

// Gate and up projection lie side by side in one matrix, as a product writes them.
struct GatedInput {
  GatedInput(size_t n, std::mt19937_64& random, float deviation)
      : n(n), rows(1 + random() % 5), both(rows, 2 * n, 2 * n + 3), dy(rows, n, n + 1) {
    both.Fill(random, std::normal_distribution<float>(0, deviation));
    dy.Fill(random, std::normal_distribution<float>(0, 1));
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < n; ++i) {
        gate_values.push_back(*both.at(r, i));
        up_values.push_back(*both.at(r, n + i));
        dy_values.push_back(*dy.at(r, i));
      }
    }
  }
  float* gate() { return both.data(); }
  float* up() { return both.data() + n; }
  size_t n, rows;
  GuardedMatrix both, dy;
  std::vector<double> gate_values, up_values, dy_values;  // the original values
};

struct Matrix {
  float* data;
  size_t ld;
};

// variant: the kind, then where y lies: elsewhere, over the gate, over up.
double CheckGatedForward(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Activation kind = GetKind(variant);
  GatedInput in(n, random, 3.0f);
  GuardedMatrix apart(in.rows, n, n + 2);
  apart.Fill(NAN);
  const Matrix places[] = {{apart.data(), apart.ld()}, {in.gate(), in.both.ld()}, {in.up(), in.both.ld()}};
  const Matrix y = places[variant / kNumKinds];
  if (n > 0) PlanPerturbation(y.data + n - 1, 1e-3);
  ops.gated_activation_forward({.gate_RF = in.gate(),
                                .ldgate = in.both.ld(),
                                .up_RF = in.up(),
                                .ldup = in.both.ld(),
                                .y_RF = y.data,
                                .ldy = y.ld,
                                .rows = in.rows,
                                .n = n,
                                .kind = kind});
  ErrorMeter meter;
  for (size_t i = 0; i < in.rows * n; ++i) {
    const double f = Truth(in.gate_values[i], kind), up = in.up_values[i];
    meter.Add(y.data[i / n * y.ld + i % n], f * up, ForwardTolerance(f, kind) * std::abs(up) + kUlp * std::abs(f * up));
  }
  EXPECT_TRUE(apart.GuardsIntact() && in.both.GuardsIntact());
  return meter.worst();
}

// variant: the kind, then where the gradients lie: elsewhere, each over its own input, over each other's, over dy and
// up.
double CheckGatedBackward(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Activation kind = GetKind(variant);
  const auto way = static_cast<size_t>(variant / kNumKinds);
  GatedInput in(n, random, 3.0f);
  GuardedMatrix apart(in.rows, 2 * n, 2 * n + 2);
  apart.Fill(NAN);
  const Matrix gate{in.gate(), in.both.ld()}, up{in.up(), in.both.ld()}, dy{in.dy.data(), in.dy.ld()},
      left{apart.data(), apart.ld()}, right{apart.data() + n, apart.ld()};
  const Matrix dgate = std::vector<Matrix>{left, gate, up, dy}[way],
               dup = std::vector<Matrix>{right, up, gate, up}[way];
  if (n > 0) PlanPerturbation((variant % 2 == 0 ? dgate : dup).data, 1e-3);
  ops.gated_activation_backward({.dy_RF = dy.data,
                                 .lddy = dy.ld,
                                 .gate_RF = gate.data,
                                 .ldgate = gate.ld,
                                 .up_RF = up.data,
                                 .ldup = up.ld,
                                 .dgate_RF = dgate.data,
                                 .lddgate = dgate.ld,
                                 .dup_RF = dup.data,
                                 .lddup = dup.ld,
                                 .rows = in.rows,
                                 .n = n,
                                 .kind = kind});
  ErrorMeter meter;
  for (size_t i = 0; i < in.rows * n; ++i) {
    const size_t row = i / n, column = i % n;
    const Dual y_of_gate = reference::Activate(Dual(in.gate_values[i], 1), kind) * Dual(in.up_values[i]);
    const Dual y_of_up = reference::Activate(Dual(in.gate_values[i]), kind) * Dual(in.up_values[i], 1);
    const double from = in.dy_values[i], f = y_of_up.derivative;
    meter.Add(dgate.data[row * dgate.ld + column], from * y_of_gate.derivative,
              3e-6 * (std::abs(from * in.up_values[i]) + 1e-6));
    meter.Add(dup.data[row * dup.ld + column], from * f, 3e-6 * std::abs(from) * std::max(1.0, std::abs(f)));
  }
  EXPECT_TRUE(apart.GuardsIntact() && in.both.GuardsIntact() && in.dy.GuardsIntact());
  return meter.worst();
}

TEST(Activation, ForwardEqualsReferenceInDouble) { Hold<&OpTable::activation_forward>(3, CheckForward, 4 * kNumKinds); }
TEST(Activation, BackwardEqualsDualNumbers) { Hold<&OpTable::activation_backward>(4, CheckBackward, 4 * kNumKinds); }
TEST(GatedActivation, ForwardEqualsReferenceInDouble) {
  Hold<&OpTable::gated_activation_forward>(17, CheckGatedForward, 3 * kNumKinds);
}
TEST(GatedActivation, BackwardEqualsDualNumbers) {
  Hold<&OpTable::gated_activation_backward>(18, CheckGatedBackward, 4 * kNumKinds);
}

// From the smallest numbers to the largest, and where exponentials overflow.
TEST(Activation, EveryFiniteNumberIsSafe) {
  std::vector<float> x = {0.0f, -0.0f};
  for (const float size : {1e-45f, 1e-38f, 1e-30f, 1e-6f, 0.75f,  1.278f, 4.9f,  5.1f,  9.99f, 10.01f,
                           79.9f,  80.1f,  87.9f,  88.9f, 103.9f, 1e3f,   1e10f, 1e19f, 1e30f, 3.4e38f}) {
    x.push_back(size);
    x.push_back(-size);
  }
  const std::vector<float> dy(x.size(), 1.0f);
  std::vector<float> y(x.size()), dx(x.size());
  for (const OpTable* ops : TestedOps()) {
    for (const Activation kind : kKinds) {
      ops->activation_forward({x.data(), y.data(), x.size(), kind});
      ops->activation_backward({dy.data(), x.data(), dx.data(), x.size(), kind});
      for (size_t i = 0; i < x.size(); ++i) {
        SCOPED_TRACE(testing::Message() << ops->name << ", kind " << static_cast<int>(kind) << ", x " << x[i]);
        const double truth = Truth(x[i], kind);
        EXPECT_NEAR(y[i], truth, ForwardTolerance(truth, kind));
        EXPECT_NEAR(dx[i], reference::ActivationSlope<double>(x[i], kind), BackwardTolerance(1));
      }
    }
  }
}

// A NaN must stay a NaN, and not reach its neighbours.
TEST(Activation, NotANumberStaysNotANumber) {
  for (const OpTable* ops : TestedOps()) {
    for (const Activation kind : kKinds) {
      if (kind == Activation::kRelu) continue;
      std::vector<float> x(37, 0.5f), dy(37, 1.0f), y(37), dx(37);
      x[5] = x[36] = std::numeric_limits<float>::quiet_NaN();
      ops->activation_forward({x.data(), y.data(), x.size(), kind});
      ops->activation_backward({dy.data(), x.data(), dx.data(), x.size(), kind});
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), std::isnan(x[i])) << ops->name << " " << static_cast<int>(kind) << " " << i;
        EXPECT_EQ(std::isnan(dx[i]), std::isnan(x[i])) << ops->name << " " << static_cast<int>(kind) << " " << i;
      }
    }
  }
}

// The formulas in another form: the names have their usual meaning.
TEST(Activation, KindsAreWhatTheyAreCalled) {
  EXPECT_NEAR(Truth(1, Activation::kGelu), 0.8413447460685429, 1e-14);  // Phi(1)
  EXPECT_NEAR(Truth(1, Activation::kGeluTanh), 0.8411919906082768, 1e-14);
  EXPECT_NEAR(Truth(-2, Activation::kGeluTanh), -0.04540230591222494, 1e-14);
  EXPECT_NEAR(Truth(1, Activation::kSilu), 1 / (1 + std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(Truth(-3, Activation::kSigmoid), 0.04742587317756678, 1e-15);
}

}  // namespace
}  // namespace wisp::kernels::activation_test
