#include "runtime/layers/sampled_head.h"

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
  float *target_logit = context.backward(target_logit_), *weight = context.backward(weight_);
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
  ops.softmax_start({.target_R = targets,
                     .max_R = max,
                     .sum_R = sum,
                     .target_logit_R = target_logit,
                     .weight_R = weight,
                     .records = context.records,
                     .options_B = context.options_B,
                     .none_R = no_target});
  ops.target_logits({.x_RK = h,
                     .w_MK = context.weights.at(table_),
                     .bias_M = bias_ ? context.weights.at(*bias_) : nullptr,
                     .target_R = targets,
                     .target_logit_R = target_logit,
                     .z_RN = z,
                     .class_N = negatives.item_K,
                     .rows = rows,
                     .n = k,
                     .k = d_});
  ops.softmax_stats({.z_RN = z,
                     .ldz = k,
                     .target_R = no_target,
                     .max_R = max,
                     .sum_R = sum,
                     .target_logit_R = target_logit,
                     .rows = rows,
                     .n = k,
                     .first = 0});
  ops.cross_entropy_loss({.max_R = max,
                          .sum_R = sum,
                          .target_logit_R = target_logit,
                          .weight_R = weight,
                          .lse_R = context.backward(lse_),
                          .loss_B = loss_B,
                          .records = context.records,
                          .target = kernels::TargetTerm::kBeside});
}

void SampledHead::Backward(const RecordContext& context, const float* h, const int32_t* targets, float* dh,
                           FactorSink& sink) const {
  const kernels::OpTable& ops = context.ops();
  const Negatives& negatives = *context.negatives;
  const size_t rows = context.rows(), k = negatives.items.size();
  float *z = context.backward(logits_), *dtarget = context.backward(dtarget_);
  const float *lse = context.backward(lse_), *weight = context.backward(weight_);
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
  ops.target_gradient({.x_RK = h,
                       .w_MK = context.weights.at(table_),
                       .target_R = targets,
                       .target_logit_R = context.backward(target_logit_),
                       .lse_R = lse,
                       .weight_R = weight,
                       .dx_RK = dh,
                       .dw_RK = dtarget,
                       .rows = rows,
                       .k = d_});
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
              .ids_N = negatives.item_K});
  sink.Rows({.parameter = table_,
             .ids_R = targets,
             .dx_RD = dtarget,
             .lddx = d_,
             .records = context.records,
             .d = d_,
             .scale = 1.0f,
             .of_targets = true});
}

}  // namespace wisp
