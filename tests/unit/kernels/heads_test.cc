// Ops of heads besides the tiles of softmax_test: starts and losses, a target beside the classes, few classes, bounds
// of representations. Every table is compared with double and dual numbers, correct and perturbed, misaligned, with
// guards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/dual.h"
#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::heads_test {
namespace {

using reference::Dual;

constexpr double kNothing = 1e-30;  // the tolerance of exact results

std::vector<Dual> Duals(const Row& row) { return std::vector<Dual>(row.data(), row.data() + row.cols()); }

struct TwoRecords {
  uint32_t begin[3];
  RecordOptions options[2] = {{.dropout_seed = 1, .target_weight = 0.5f}, {.dropout_seed = 2, .target_weight = 0.25f}};
  TwoRecords(std::mt19937_64& random, size_t rows)
      : begin{0, static_cast<uint32_t>(random() % (rows + 1)), static_cast<uint32_t>(rows)} {}
  Segments segments() const { return {.begin_B = begin, .num_records = 2, .rows = begin[2]}; }
  size_t of(size_t r) const { return r < begin[1] ? 0 : 1; }
};

std::vector<int32_t> Targets(std::mt19937_64& random, size_t rows, size_t items) {
  std::vector<int32_t> targets(rows);
  for (int32_t& target : targets) target = static_cast<int32_t>(random() % (items + 1)) - 1;
  return targets;
}

double CheckStart(const OpTable& ops, size_t rows, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const TwoRecords records(random, rows);
  const std::vector<int32_t> targets = Targets(random, rows, 2);
  Row max(rows), sum(rows), target_logit(rows), weight(rows);
  BasicGuardedMatrix<int32_t> none(1, rows, rows + 1);
  for (Row* row : {&sum, &target_logit, &weight}) row->Fill(NAN);
  if (rows > 0) PlanPerturbation(weight.at(0, rows - 1), 1e-3);
  ops.softmax_start({.target_R = targets.data(),
                     .max_R = max.data(),
                     .sum_R = sum.data(),
                     .target_logit_R = target_logit.data(),
                     .weight_R = weight.data(),
                     .records = records.segments(),
                     .options_B = variant % 2 == 0 ? records.options : nullptr,
                     .none_R = variant < 2 ? none.data() : nullptr});
  ErrorMeter meter;
  for (size_t r = 0; r < rows; ++r) {
    EXPECT_EQ(max.data()[r], -HUGE_VALF);
    meter.Add(sum.data()[r], 0, kNothing);
    meter.Add(target_logit.data()[r], 0, kNothing);
    const double expected = variant % 2 == 0 ? records.options[records.of(r)].target_weight : 1.0f;
    meter.Add(weight.data()[r], targets[r] < 0 ? 0 : expected, kNothing);
    meter.Add(none.data()[r], variant < 2 ? -1 : 0, kNothing);
  }
  EXPECT_TRUE(max.GuardsIntact() && sum.GuardsIntact() && weight.GuardsIntact() && none.GuardsIntact());
  return meter.worst();
}

double CheckLoss(const OpTable& ops, size_t rows, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const TwoRecords records(random, rows);
  const TargetTerm term = variant % 2 == 0 ? TargetTerm::kInSum : TargetTerm::kBeside;
  Row max(rows, random, 5.0f), sum(rows, random, 1.0f), target_logit(rows, random, 5.0f), weight(rows), lse(rows);
  for (size_t r = 0; r < rows; ++r) {
    sum.data()[r] = 1 + std::abs(sum.data()[r]);
    weight.data()[r] = random() % 3 == 0 ? 0.0f : 0.5f;
  }
  lse.Fill(NAN);
  if (rows > 0) PlanPerturbation(lse.data(), 1e-3);
  double loss[2] = {NAN, NAN}, expected_loss[2] = {0, 0};
  ops.cross_entropy_loss({.max_R = max.data(),
                          .sum_R = sum.data(),
                          .target_logit_R = target_logit.data(),
                          .weight_R = weight.data(),
                          .lse_R = lse.data(),
                          .loss_B = loss,
                          .records = records.segments(),
                          .target = term});
  ErrorMeter meter;
  for (size_t r = 0; r < rows; ++r) {
    const double target = target_logit.data()[r], inside = sum.data()[r] * std::exp(double{max.data()[r]});
    const bool counts = weight.data()[r] != 0;
    double expected = std::log(inside + (term == TargetTerm::kBeside ? std::exp(target) : 0));
    if (term == TargetTerm::kBeside && !counts) expected = 0;
    meter.Add(lse.data()[r], expected, 2e-6 * std::max(1.0, std::abs(expected)));
    if (counts) expected_loss[records.of(r)] += weight.data()[r] * (expected - target);
  }
  for (size_t b = 0; b < 2; ++b) meter.Add(loss[b], expected_loss[b], 2e-5 * static_cast<double>(rows + 1));
  EXPECT_TRUE(lse.GuardsIntact());
  return meter.worst();
}

// Rows, a table, classes and targets of a head whose target stands beside the classes.
struct Beside {
  size_t rows, k, items = 9;
  std::vector<int32_t> classes{1, 2, 5, 8}, targets;
  Row x, w, bias, z, target_logit;
  Beside(std::mt19937_64& random, size_t width)
      : rows(1 + random() % 6),
        k(width),
        targets(Targets(random, rows, items)),
        x(rows * k, random, 1.0f),
        w(items * k, random, 1.0f),
        bias(items, random, 1.0f),
        z(rows * classes.size(), random, 1.0f),
        target_logit(rows) {
    targets[0] = 5;
  }
};

double CheckTargetLogits(const OpTable& ops, size_t k, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Beside in(random, k);
  const size_t n = in.classes.size();
  const std::vector<float> before(in.z.data(), in.z.data() + in.z.cols());
  in.target_logit.Fill(-7.0f);
  if (k > 0) PlanPerturbation(in.target_logit.data(), 1e-2 * static_cast<double>(k));
  ops.target_logits({.x_RK = in.x.data(),
                     .w_MK = in.w.data(),
                     .bias_M = variant % 2 == 0 ? in.bias.data() : nullptr,
                     .target_R = in.targets.data(),
                     .target_logit_R = in.target_logit.data(),
                     .z_RN = in.z.data(),
                     .class_N = in.classes.data(),
                     .rows = in.rows,
                     .n = n,
                     .k = k});
  ErrorMeter meter;
  for (size_t r = 0; r < in.rows; ++r) {
    const bool has_target = in.targets[r] >= 0;
    const auto target = static_cast<size_t>(std::max(0, in.targets[r]));
    double expected = variant % 2 == 0 ? in.bias.data()[target] : 0, terms = std::abs(expected);
    for (size_t i = 0; i < k; ++i) {
      const double term = double{in.x.data()[r * k + i]} * in.w.data()[target * k + i];
      expected += term, terms += std::abs(term);
    }
    meter.Add(in.target_logit.data()[r], has_target ? expected : -7, 2 * kUlp * terms + kNothing);
    for (size_t j = 0; j < n; ++j) {
      const bool hit = has_target && in.classes[j] == in.targets[r];
      EXPECT_EQ(in.z.data()[r * n + j], hit ? -HUGE_VALF : before[r * n + j]);
    }
  }
  EXPECT_TRUE(in.z.GuardsIntact() && in.target_logit.GuardsIntact());
  return meter.worst();
}

// The loss of one row as a function of x and of w's row, in dual numbers: the op's part of the derivative.
Dual LossBeside(const std::vector<Dual>& x, const std::vector<Dual>& w, float classes, float weight) {
  const int32_t target = 0;
  const Dual max(classes), sum(1), weight_of_row(weight);
  Dual logit, lse, loss;
  reference::TargetLogits<Dual>({.x_RK = x.data(),
                                 .w_MK = w.data(),
                                 .bias_M = nullptr,
                                 .target_R = &target,
                                 .target_logit_R = &logit,
                                 .z_RN = nullptr,
                                 .class_N = nullptr,
                                 .rows = 1,
                                 .n = 0,
                                 .k = x.size()});
  reference::CrossEntropyLoss<Dual>({.max_R = &max,
                                     .sum_R = &sum,
                                     .target_logit_R = &logit,
                                     .weight_R = &weight_of_row,
                                     .lse_R = &lse,
                                     .loss_B = &loss,
                                     .records = {.rows = 1},
                                     .target = TargetTerm::kBeside});
  return loss;
}

double CheckTargetGradient(const OpTable& ops, size_t k, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const float weight = variant == 3 ? 0.0f : 0.75f, classes = static_cast<float>(variant) - 1;
  Row x(k, random, 0.5f), w(k, random, 0.5f), dx(k), dw(k), logit(1), lse(1);
  dx.Fill(2.0f);
  dw.Fill(NAN);
  double product = 0;
  for (size_t i = 0; i < k; ++i) product += double{x.data()[i]} * w.data()[i];
  *logit.data() = static_cast<float>(product);
  *lse.data() = static_cast<float>(std::log(std::exp(double{classes}) + std::exp(product)));
  const std::vector<int32_t> target = {weight == 0 ? -1 : 0};
  const std::vector<float> weights = {weight};
  if (k > 0) PlanPerturbation(dx.at(0, k - 1), 1e-2);
  ops.target_gradient({.x_RK = x.data(),
                       .w_MK = w.data(),
                       .target_R = target.data(),
                       .target_logit_R = logit.data(),
                       .lse_R = lse.data(),
                       .weight_R = weights.data(),
                       .dx_RK = dx.data(),
                       .dw_RK = dw.data(),
                       .rows = 1,
                       .k = k});
  ErrorMeter meter;
  for (size_t i = 0; i < k; ++i) {
    std::vector<Dual> xs = Duals(x), ws = Duals(w);
    xs[i].derivative = 1;
    meter.Add(dx.data()[i], 2 + LossBeside(xs, ws, classes, weight).derivative, 1e-5);
    xs[i].derivative = 0, ws[i].derivative = 1;
    meter.Add(dw.data()[i], LossBeside(xs, ws, classes, weight).derivative, 1e-5);
  }
  EXPECT_TRUE(dx.GuardsIntact() && dw.GuardsIntact());
  return meter.worst();
}

Dual ClassLoss(const std::vector<Dual>& z, int32_t target) {
  Dual loss;
  reference::ClassCrossEntropy<Dual>(
      {.z_RN = z.data(), .target_R = &target, .loss_R = &loss, .dz_RN = nullptr, .rows = 1, .n = z.size()});
  return loss;
}

double CheckClasses(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 3;
  Row z(rows * n, random, variant == 3 ? 300.0f : 2.0f), dz(rows * n);
  dz.Fill(NAN);
  std::vector<int32_t> targets(rows);
  for (int32_t& target : targets) target = static_cast<int32_t>(random() % std::max<size_t>(1, n));
  std::vector<double> loss(rows, NAN);
  if (n > 0) PlanPerturbation(dz.data(), 1e-3);
  ops.class_cross_entropy({.z_RN = z.data(),
                           .target_R = targets.data(),
                           .loss_R = variant == 2 ? nullptr : loss.data(),
                           .dz_RN = dz.data(),
                           .rows = rows,
                           .n = n});
  ErrorMeter meter;
  for (size_t r = 0; n > 0 && r < rows; ++r) {
    std::vector<Dual> zs(z.data() + r * n, z.data() + (r + 1) * n);
    long double sum = 0;
    for (const Dual& logit : zs) sum += std::exp(static_cast<long double>(logit.value));
    const double expected = static_cast<double>(std::log(sum)) - zs[static_cast<size_t>(targets[r])].value;
    if (variant != 2) meter.Add(loss[r], expected, 1e-14 * std::max(1.0, std::abs(expected) + 600));
    for (size_t j = 0; j < n; ++j) {
      zs[j].derivative = 1;
      const double derivative = ClassLoss(zs, targets[r]).derivative;
      meter.Add(dz.data()[r * n + j], derivative, 4 * kUlp * (std::abs(derivative) + 1e-6));
      zs[j].derivative = 0;
    }
  }
  EXPECT_TRUE(dz.GuardsIntact());
  return meter.worst();
}

double CheckClipRows(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 5;
  const double bound = std::vector<double>{0, 0.5, 1.5, 1e6}[static_cast<size_t>(variant)];
  Row x(rows * d, random, 1.0f), noise(rows * d, random, 1.0f), y(rows * d);
  y.Fill(NAN);
  if (d > 0) PlanPerturbation(y.at(0, rows * d - 1), 1e-3);
  ops.clip_rows({.x_RD = x.data(),
                 .noise_RD = variant % 2 == 0 ? noise.data() : nullptr,
                 .y_RD = y.data(),
                 .rows = rows,
                 .d = d,
                 .bound = bound});
  ErrorMeter meter;
  for (size_t r = 0; r < rows; ++r) {
    long double squares = 0;
    for (size_t i = r * d; i < (r + 1) * d; ++i) squares += static_cast<long double>(x.data()[i]) * x.data()[i];
    const double norm = static_cast<double>(std::sqrt(squares)), scale = bound > 0 && norm > bound ? bound / norm : 1;
    for (size_t i = r * d; i < (r + 1) * d; ++i) {
      const double added = variant % 2 == 0 ? noise.data()[i] : 0;
      meter.Add(y.data()[i], scale * x.data()[i] + added, 2 * kUlp * (std::abs(x.data()[i]) + std::abs(added)));
    }
  }
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

// d <dy, clip(tanh(p))> / dp_i.
double ClippedDerivative(const Row& p, const Row& dy, size_t first, size_t d, size_t i, double bound, Before before) {
  std::vector<Dual> of_row(p.data() + first, p.data() + first + d), y(d);
  of_row[i].derivative = 1;
  if (before == Before::kTanh)
    reference::Map<Dual>({.x = of_row.data(), .y = of_row.data(), .n = d, .function = Function::kTanh});
  reference::ClipRows<Dual>(
      {.x_RD = of_row.data(), .noise_RD = nullptr, .y_RD = y.data(), .rows = 1, .d = d, .bound = bound});
  double sum = 0;
  for (size_t j = 0; j < d; ++j) sum += dy.data()[first + j] * y[j].derivative;
  return sum;
}

double CheckClipRowsBackward(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 3;
  const double bound = std::vector<double>{0, 0.1, 1.5, 1e6}[static_cast<size_t>(variant)];
  const Before before = random() % 2 == 0 ? Before::kTanh : Before::kNothing;
  Row p(rows * d, random, 0.7f), x(rows * d), dy(rows * d, random, 1.0f), dp(rows * d);
  for (size_t i = 0; i < rows * d; ++i) x.data()[i] = p.data()[i];
  if (before == Before::kTanh)
    ReferenceOps().map({.x = p.data(), .y = x.data(), .n = rows * d, .function = Function::kTanh});
  dp.Fill(NAN);
  if (d > 0) PlanPerturbation(dp.data(), 1e-3);
  ops.clip_rows_backward({.x_RD = x.data(),
                          .dy_RD = dy.data(),
                          .dx_RD = dp.data(),
                          .rows = rows,
                          .d = d,
                          .bound = bound,
                          .before = before});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) {
    const double expected = ClippedDerivative(p, dy, i / d * d, d, i % d, bound, before);
    meter.Add(dp.data()[i], expected, 1e-6 * (Largest(dy.Double().data() + i / d * d, d) + 1));
  }
  EXPECT_TRUE(dp.GuardsIntact());
  return meter.worst();
}

TEST(SoftmaxStart, GivesEachRowTheWeightOfItsRecord) { Hold<&OpTable::softmax_start>(1, CheckStart); }
TEST(CrossEntropyLoss, EqualsItsFormulaInDouble) { Hold<&OpTable::cross_entropy_loss>(2, CheckLoss); }
TEST(TargetLogits, EqualProductsInDoubleAndHideTheTarget) { Hold<&OpTable::target_logits>(3, CheckTargetLogits); }
TEST(TargetGradient, EqualsDualNumbers) { Hold<&OpTable::target_gradient>(4, CheckTargetGradient); }
TEST(ClassCrossEntropy, EqualsDualNumbers) { Hold<&OpTable::class_cross_entropy>(5, CheckClasses); }
TEST(ClipRows, EqualsItsFormulaInDouble) { Hold<&OpTable::clip_rows>(6, CheckClipRows); }
TEST(ClipRowsBackward, EqualsDualNumbers) { Hold<&OpTable::clip_rows_backward>(7, CheckClipRowsBackward); }

// The result has the bits of the table's own products and scalings.
TEST(TargetBeside, HasTheBitsOfTheTablesOwnProductsAndScalings) {
  std::mt19937_64 random(TestSeed(8));
  for (const OpTable* ops : TestedOps()) {
    for (size_t k : kTestSizes) {
      Beside in(random, k);
      in.targets.assign(in.rows, 3);
      ops->target_logits({.x_RK = in.x.data(),
                          .w_MK = in.w.data(),
                          .bias_M = nullptr,
                          .target_R = in.targets.data(),
                          .target_logit_R = in.target_logit.data(),
                          .z_RN = in.z.data(),
                          .class_N = in.classes.data(),
                          .rows = in.rows,
                          .n = in.classes.size(),
                          .k = k});
      std::vector<float> dx(in.rows * k, 0.7f), dw(in.rows * k), weight(in.rows, 0.3f), lse(in.rows, 40.0f),
          one(k, 0.7f);
      ops->target_gradient({.x_RK = in.x.data(),
                            .w_MK = in.w.data(),
                            .target_R = in.targets.data(),
                            .target_logit_R = in.target_logit.data(),
                            .lse_R = lse.data(),
                            .weight_R = weight.data(),
                            .dx_RK = dx.data(),
                            .dw_RK = dw.data(),
                            .rows = in.rows,
                            .k = k});
      const float* w = in.w.data() + 3 * k;
      const float logit = in.target_logit.data()[0], g = (std::exp(logit - 40.0f) - 1.0f) * 0.3f;
      EXPECT_EQ(logit, static_cast<float>(ops->dot(in.x.data(), w, k))) << ops->name << " " << k;
      ops->scale({.x = w, .y = one.data(), .n = k, .a = g, .store = Store::kAdd});
      for (size_t i = 0; i < k; ++i) EXPECT_EQ(dx[i], one[i]) << ops->name << " " << k << " " << i;
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::heads_test
