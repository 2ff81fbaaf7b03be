#include "runtime/layers/sampled_head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/layers/next_item_head.h"

namespace wisp {

using kernels::Store;

SampledHead::SampledHead(const Architecture& a, const std::vector<ParameterSpec>& parameters, size_t num_negatives,
                         BufferPlan& plan)
    : table_(*FindHeadTable(a, parameters)), d_(a.width), bias_(FindParameter(parameters, ParameterRole::kOutputBias)) {
  if (num_negatives == 0) return;
  const size_t rows = plan.max_rows();
  logits_ = plan.backward.Reserve<float>(rows * num_negatives);
  for (Slot<float>* slot : {&max_, &sum_, &lse_, &target_logit_, &weight_}) *slot = plan.backward.Reserve<float>(rows);
  dtarget_ = plan.backward.Reserve<float>(rows * d_);
  no_target_ = plan.backward.Reserve<int32_t>(rows);
}

void SampledHead::Forward(const RecordContext& context, const float* h, const int32_t* targets, double* loss_B) const {
  const kernels::OpTable& ops = context.ops();
  const Negatives& negatives = *context.negatives;
  const size_t rows = context.rows(), k = negatives.items.size();
  float *z = context.backward(logits_), *max = context.backward(max_), *sum = context.backward(sum_);
  float *lse = context.backward(lse_), *target_logit = context.backward(target_logit_),
        *weight = context.backward(weight_);
  int32_t* no_target = context.backward(no_target_);
  ops.linear_forward({.x_RK = h,
                      .ldx = d_,
                      .packed = negatives.packed,
                      .bias_N = negatives.bias_K,
                      .y_RN = z,
                      .ldy = k,
                      .rows = rows,
                      .n = k,
                      .k = d_,
                      .store = Store::kAssign});
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  RowWeights(context, targets, weight);
  for (size_t r = 0; r < rows; ++r) {
    max[r] = kNever;
    sum[r] = target_logit[r] = 0;
    no_target[r] = -1;
    if (targets[r] < 0) continue;
    const auto hit = std::lower_bound(negatives.items.begin(), negatives.items.end(), targets[r]);
    if (hit != negatives.items.end() && *hit == targets[r])
      z[r * k + static_cast<size_t>(hit - negatives.items.begin())] = kNever;
    const size_t target = static_cast<size_t>(targets[r]);
    target_logit[r] = static_cast<float>(ops.dot(h + r * d_, context.weights.at(table_) + target * d_, d_));
    if (bias_) target_logit[r] += context.weights.at(*bias_)[target];
  }
  ops.softmax_stats({.z_RN = z,
                     .ldz = k,
                     .target_R = no_target,
                     .max_R = max,
                     .sum_R = sum,
                     .target_logit_R = target_logit,
                     .rows = rows,
                     .n = k,
                     .first = 0});
  for (size_t r = 0; r < rows; ++r) {
    const float largest = std::max(max[r], target_logit[r]);
    lse[r] = weight[r] == 0
                 ? 0
                 : largest + std::log(sum[r] * std::exp(max[r] - largest) + std::exp(target_logit[r] - largest));
  }
  for (size_t b = 0; b < context.records.num_records; ++b) {
    loss_B[b] = 0;
    const size_t begin = context.records.begin(b), end = begin + context.records.size(b);
    for (size_t r = begin; r < end; ++r) {
      if (weight[r] != 0)
        loss_B[b] +=
            static_cast<double>(weight[r]) * (static_cast<double>(lse[r]) - static_cast<double>(target_logit[r]));
    }
  }
}

void SampledHead::Backward(const RecordContext& context, const float* h, const int32_t* targets, float* dh,
                           FactorSink& sink) const {
  const kernels::OpTable& ops = context.ops();
  const Negatives& negatives = *context.negatives;
  const size_t rows = context.rows(), k = negatives.items.size();
  float *z = context.backward(logits_), *dtarget = context.backward(dtarget_);
  const float *lse = context.backward(lse_), *weight = context.backward(weight_),
              *target_logit = context.backward(target_logit_);
  ops.cross_entropy_gradient({.z_RN = z,
                              .ldz = k,
                              .target_R = context.backward(no_target_),
                              .lse_R = lse,
                              .weight_R = weight,
                              .rows = rows,
                              .n = k,
                              .first = 0});
  ops.linear_backward_input({.dy_RN = z,
                             .lddy = k,
                             .w_NK = negatives.rows_KD,
                             .ldw = d_,
                             .dx_RK = dh,
                             .lddx = d_,
                             .rows = rows,
                             .n = k,
                             .k = d_,
                             .store = Store::kAssign});
  for (size_t r = 0; r < rows; ++r) {
    const float dz = weight[r] == 0 ? 0.0f : (std::exp(target_logit[r] - lse[r]) - 1.0f) * weight[r];
    ops.scale({.x = h + r * d_, .y = dtarget + r * d_, .n = d_, .a = dz, .store = Store::kAssign});
    if (dz == 0) continue;
    ops.scale({.x = context.weights.at(table_) + static_cast<size_t>(targets[r]) * d_,
               .y = dh + r * d_,
               .n = d_,
               .a = dz,
               .store = Store::kAdd});
  }
  if (!sink.Wants(table_)) return;
  sink.Outer({.parameter = table_,
              .first_row = 0,
              .dy_RN = z,
              .lddy = k,
              .x_RK = h,
              .ldx = d_,
              .records = context.records,
              .n = k,
              .k = d_,
              .ids_N = negatives.items.data()});
  sink.Rows({.parameter = table_,
             .ids_R = targets,
             .dx_RD = dtarget,
             .lddx = d_,
             .records = context.records,
             .d = d_,
             .scale = 1.0f});
}

}  // namespace wisp
