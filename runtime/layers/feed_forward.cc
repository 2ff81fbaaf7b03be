#include "runtime/layers/feed_forward.h"

namespace wisp {
namespace {

kernels::Activation ToActivation(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return kernels::Activation::kRelu;
    case ActivationKind::kGelu:
      return kernels::Activation::kGelu;
    case ActivationKind::kGeluTanh:
      return kernels::Activation::kGeluTanh;
    case ActivationKind::kSilu:
      return kernels::Activation::kSilu;
  }
  return kernels::Activation::kSilu;  // never reached: Validate refuses other values
}

}  // namespace

FeedForward::FeedForward(const Architecture& a, const std::vector<ParameterSpec>& parameters, uint32_t index,
                         BufferPlan& plan)
    : inner_(a.blocks[index].feed_forward.inner_width),
      in_rows_(a.blocks[index].feed_forward.in_rows()),
      gated_(a.blocks[index].feed_forward.gated),
      activation_(ToActivation(a.blocks[index].feed_forward.activation)),
      in_(parameters,
          FindLinear(a, parameters, ParameterRole::kFeedForwardInWeight, ParameterRole::kFeedForwardInBias, index),
          plan),
      out_(parameters,
           FindLinear(a, parameters, ParameterRole::kFeedForwardOutWeight, ParameterRole::kFeedForwardOutBias, index),
           plan),
      before_(plan.ReserveInTurn<float>(plan.max_rows() * in_rows_)),
      dbefore_(plan.ReserveBackward<float>(plan.max_rows() * in_rows_)),
      dafter_(gated_ ? plan.ReserveBackward<float>(plan.max_rows() * inner_) : dbefore_) {
  // Backward and Variance read the activation's input, so it must not be overwritten.
  const bool in_place = !gated_ && plan.use == GraphUse::kInference && a.re_attention == ReAttention::kOff;
  after_ = in_place ? before_ : plan.ReserveInTurn<float>(plan.max_rows() * inner_);
}

void FeedForward::Activate(const RecordContext& context) const {
  const float* before = context.forward(before_);
  float* after = context.forward(after_);
  if (!gated_) {
    context.ops().activation_forward({.x = before, .y = after, .n = context.rows() * inner_, .kind = activation_});
    return;
  }
  context.ops().gated_activation_forward({.gate_RF = before,
                                          .ldgate = in_rows_,
                                          .up_RF = before + inner_,
                                          .ldup = in_rows_,
                                          .y_RF = after,
                                          .ldy = inner_,
                                          .rows = context.rows(),
                                          .n = inner_,
                                          .kind = activation_});
}

void FeedForward::Forward(const RecordContext& context, const float* x, float* y) const {
  in_.Forward(context, x, context.forward(before_), context.rows());
  Activate(context);
  out_.Forward(context, context.forward(after_), y, context.rows());
}

void FeedForward::ActivateBackward(const RecordContext& context, const float* dafter) const {
  const float* before = context.forward(before_);
  float* dbefore = context.backward(dbefore_);
  if (!gated_) {
    context.ops().activation_backward(
        {.dy = dafter, .x = before, .dx = dbefore, .n = context.rows() * inner_, .kind = activation_});
    return;
  }
  context.ops().gated_activation_backward({.dy_RF = dafter,
                                           .lddy = inner_,
                                           .gate_RF = before,
                                           .ldgate = in_rows_,
                                           .up_RF = before + inner_,
                                           .ldup = in_rows_,
                                           .dgate_RF = dbefore,
                                           .lddgate = in_rows_,
                                           .dup_RF = dbefore + inner_,
                                           .lddup = in_rows_,
                                           .rows = context.rows(),
                                           .n = inner_,
                                           .kind = activation_});
}

void FeedForward::Backward(const RecordContext& context, const float* x, const float* dy, float* dx,
                           kernels::Store store, FactorSink& sink) const {
  float* dafter = context.backward(dafter_);
  out_.Backward(context, context.forward(after_), dy, dafter, kernels::Store::kAssign, sink);
  ActivateBackward(context, dafter);
  in_.Backward(context, x, context.backward(dbefore_), dx, store, sink);
}

void FeedForward::Variance(const RecordContext& context, const float* x, const float* var_x, float* var_inner,
                           float* var_y) const {
  in_.Variance(context, x, var_x, var_inner);
  context.ops().activation_variance(
      {.mean = context.forward(before_), .x = var_inner, .y = var_inner, .n = context.rows() * inner_});
  out_.Variance(context, context.forward(after_), var_inner, var_y);
}

}  // namespace wisp
