// Adds the bench's cases of norms, activations and the softmax, which work row by row or element by element.
#include "tools/lab/bench/bench_ops_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace wisp::tools {

using kernels::OpTable;
using kernels::Store;

void OpCases::AddLayerNorm() {
  const size_t t = t_, d = kWidth;
  const auto x = Input(t * d), gain = Input(d), bias = Input(d), y = Output(t * d), mean = Output(t), rstd = Output(t),
             dy = Input(t * d), dx = Output(t * d), dgain = Output(d), dbias = Output(d);
  const auto forward = [=](const OpTable& ops) {
    ops.layer_norm_forward({.x_RD = x.data(),
                            .gain_D = gain.data(),
                            .bias_D = bias.data(),
                            .y_RD = y.data(),
                            .mean_R = mean.data(),
                            .rstd_R = rstd.data(),
                            .rows = t,
                            .d = d,
                            .epsilon = 1e-5f});
  };
  forward(kernels::ReferenceOps());
  const double elements = static_cast<double>(t * d);
  cases_.push_back(
      {"layer_norm_forward", Shape({t, d}), kNorm * elements, 2 * 4 * elements, forward, {y, mean, rstd}, 1e-5});
  cases_.push_back({"layer_norm_backward",
                    Shape({t, d}),
                    kNormBackward * elements,
                    3 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.layer_norm_backward({.dy_RD = dy.data(),
                                               .x_RD = x.data(),
                                               .gain_D = gain.data(),
                                               .mean_R = mean.data(),
                                               .rstd_R = rstd.data(),
                                               .dx_RD = dx.data(),
                                               .dgain_D = dgain.data(),
                                               .dbias_D = dbias.data(),
                                               .rows = t,
                                               .d = d,
                                               .store = Store::kAssign});
                    },
                    {dx, dgain, dbias},
                    1e-5});
}

void OpCases::AddRmsNorm() {
  const size_t t = t_, d = kWidth;
  const auto x = Input(t * d), gain = Input(d), y = Output(t * d), rstd = Output(t), dy = Input(t * d),
             dx = Output(t * d), dgain = Output(d);
  const auto forward = [=](const OpTable& ops) {
    ops.rms_norm_forward({.x_RD = x.data(),
                          .gain_D = gain.data(),
                          .y_RD = y.data(),
                          .rstd_R = rstd.data(),
                          .rows = t,
                          .d = d,
                          .epsilon = 1e-5f});
  };
  forward(kernels::ReferenceOps());
  const double elements = static_cast<double>(t * d);
  cases_.push_back(
      {"rms_norm_forward", Shape({t, d}), kRmsNorm * elements, 2 * 4 * elements, forward, {y, rstd}, 1e-5});
  cases_.push_back({"rms_norm_backward",
                    Shape({t, d}),
                    kRmsNormBackward * elements,
                    3 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.rms_norm_backward({.dy_RD = dy.data(),
                                             .x_RD = x.data(),
                                             .gain_D = gain.data(),
                                             .rstd_R = rstd.data(),
                                             .dx_RD = dx.data(),
                                             .dgain_D = dgain.data(),
                                             .rows = t,
                                             .d = d,
                                             .store = Store::kAssign});
                    },
                    {dx, dgain},
                    1e-5});
}

void OpCases::AddActivation(kernels::Activation kind, const std::string& name, double operations_each) {
  const size_t n = t_ * f_;
  const auto x = Input(n, 4), dy = Input(n), y = Output(n), dx = Output(n);
  const double elements = static_cast<double>(n), operations = operations_each * elements;
  cases_.push_back(
      {name + "_forward",
       Shape({t_, f_}),
       operations,
       2 * 4 * elements,
       [=](const OpTable& ops) { ops.activation_forward({.x = x.data(), .y = y.data(), .n = n, .kind = kind}); },
       {y},
       2e-6});
  cases_.push_back({name + "_backward",
                    Shape({t_, f_}),
                    operations,
                    3 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.activation_backward({.dy = dy.data(), .x = x.data(), .dx = dx.data(), .n = n, .kind = kind});
                    },
                    {dx},
                    4e-6});
}

// Gate and up projection lie side by side in one matrix, and so do their gradients.
void OpCases::AddGated(kernels::Activation kind, const std::string& name, double operations_each) {
  const size_t rows = t_, n = f_, ld = 2 * f_;
  const auto both = Input(rows * ld, 4), dy = Input(rows * n), y = Output(rows * n), dboth = Output(rows * ld);
  const double elements = static_cast<double>(rows * n);
  cases_.push_back({"gated_activation_forward",
                    Shape({rows, n}) + " " + name,
                    (operations_each + 1) * elements,
                    3 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.gated_activation_forward({.gate_RF = both.data(),
                                                    .ldgate = ld,
                                                    .up_RF = both.data() + n,
                                                    .ldup = ld,
                                                    .y_RF = y.data(),
                                                    .ldy = n,
                                                    .rows = rows,
                                                    .n = n,
                                                    .kind = kind});
                    },
                    {y},
                    2e-6});
  cases_.push_back({"gated_activation_backward",
                    Shape({rows, n}) + " " + name,
                    (operations_each + 5) * elements,
                    5 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.gated_activation_backward({.dy_RF = dy.data(),
                                                     .lddy = n,
                                                     .gate_RF = both.data(),
                                                     .ldgate = ld,
                                                     .up_RF = both.data() + n,
                                                     .ldup = ld,
                                                     .dgate_RF = dboth.data(),
                                                     .lddgate = ld,
                                                     .dup_RF = dboth.data() + n,
                                                     .lddup = ld,
                                                     .rows = rows,
                                                     .n = n,
                                                     .kind = kind});
                    },
                    {dboth},
                    4e-6});
}

// Rotates heads of 32. They are the queries in rows that hold queries, keys and values; the keys and values are not
// rotated here.
void OpCases::AddRotary(kernels::RotaryPairs pairs, const std::string& name) {
  const size_t t = t_, width = 32, heads = kWidth / width, ld = 3 * kWidth, num_pairs = width / 2;
  const auto x = Input(t * ld), cos = Output(t * num_pairs), sin = Output(t * num_pairs);
  for (size_t i = 0; i < t * num_pairs; ++i) {
    cos[i] = std::cos(static_cast<float>(i));
    sin[i] = std::sin(static_cast<float>(i));
  }
  const double elements = static_cast<double>(t * kWidth);
  cases_.push_back({"rotary",
                    Shape({t, kWidth}) + " " + name,
                    kRotation * elements,
                    (2 + 1.0 / static_cast<double>(heads)) * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.rotary({.x_RD = x.data(),
                                  .ldx = ld,
                                  .cos_TP = cos.data(),
                                  .sin_TP = sin.data(),
                                  .rows = t,
                                  .heads = heads,
                                  .head_width = width,
                                  .rotated = width,
                                  .first_position = 0,
                                  .pairs = pairs,
                                  .rotation = kernels::Rotation::kForward});
                    },
                    {x},
                    1e-6});
}

// One tile of the catalogue, as the head visits it.
void OpCases::AddSoftmax() {
  const size_t rows = t_, n = tile_;
  const auto z = Input(rows * n, 5), max = Output(rows), sum = Output(rows), target_logit = Output(rows),
             lse = Output(rows), weight = Input(rows), gradient = Output(rows * n), exps = Output(rows * n),
             zeros = Output(rows), kept = Input(rows * n);
  for (float& x : kept) x = std::abs(x);
  targets_.resize(rows);
  for (size_t r = 0; r < rows; ++r) targets_[r] = static_cast<int32_t>(r * 7 % n);
  std::fill(lse.begin(), lse.end(), 8.0f);
  const int32_t* targets = targets_.data();
  const double elements = static_cast<double>(rows * n);
  cases_.push_back({"softmax_stats",
                    Shape({rows, n}) + " exponentials kept",
                    (kExp + 3) * elements,
                    2 * 4 * elements,
                    [=](const OpTable& ops) {
                      std::fill(max.begin(), max.end(), -std::numeric_limits<float>::infinity());
                      std::fill(sum.begin(), sum.end(), 0.0f);
                      ops.softmax_stats({.z_RN = z.data(),
                                         .ldz = n,
                                         .target_R = targets,
                                         .max_R = max.data(),
                                         .sum_R = sum.data(),
                                         .target_logit_R = target_logit.data(),
                                         .rows = rows,
                                         .n = n,
                                         .first = 0,
                                         .exp_RN = exps.data()});
                    },
                    {max, sum, target_logit, exps},
                    1e-5});
  // This op works in place, so its input is copied first. The copy is part of the time.
  cases_.push_back({"cross_entropy_gradient",
                    Shape({rows, n}),
                    (kExp + 3) * elements,
                    4 * 4 * elements,
                    [=](const OpTable& ops) {
                      std::memcpy(gradient.data(), z.data(), rows * n * sizeof(float));
                      ops.cross_entropy_gradient({.z_RN = gradient.data(),
                                                  .ldz = n,
                                                  .target_R = targets,
                                                  .lse_R = lse.data(),
                                                  .weight_R = weight.data(),
                                                  .rows = rows,
                                                  .n = n,
                                                  .first = 0});
                    },
                    {gradient},
                    4e-6});
  cases_.push_back({"cross_entropy_gradient",
                    Shape({rows, n}) + " of exponentials",
                    elements,
                    4 * 4 * elements,
                    [=](const OpTable& ops) {
                      std::memcpy(gradient.data(), kept.data(), rows * n * sizeof(float));
                      ops.cross_entropy_gradient({.z_RN = gradient.data(),
                                                  .ldz = n,
                                                  .target_R = targets,
                                                  .lse_R = lse.data(),
                                                  .weight_R = weight.data(),
                                                  .rows = rows,
                                                  .n = n,
                                                  .first = 0,
                                                  .max_R = zeros.data()});
                    },
                    {gradient},
                    4e-6});
}

}  // namespace wisp::tools
