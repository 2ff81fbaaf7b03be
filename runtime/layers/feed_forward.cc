#include "runtime/layers/feed_forward.h"

namespace wisp {

FeedForward::FeedForward(const Architecture& a, const std::vector<ParameterSpec>& parameters, uint32_t index,
                         BufferPlan& plan)
    : inner_(a.blocks[index].feed_forward.inner_width),
      activation_(a.blocks[index].feed_forward.activation == ActivationKind::kGelu ? kernels::Activation::kGelu
                                                                                   : kernels::Activation::kRelu),
      in_(parameters,
          FindLinear(a, parameters, ParameterRole::kFeedForwardInWeight, ParameterRole::kFeedForwardInBias, index),
          plan),
      out_(parameters,
           FindLinear(a, parameters, ParameterRole::kFeedForwardOutWeight, ParameterRole::kFeedForwardOutBias, index),
           plan),
      before_(plan.ReserveInTurn<float>(a.max_length * inner_)),
      dinner_(plan.backward.Reserve<float>(a.max_length * inner_)) {
  // Backward and Variance read what was before the activation.
  const bool in_place = plan.use == GraphUse::kInference && a.re_attention == ReAttention::kOff;
  after_ = in_place ? before_ : plan.ReserveInTurn<float>(a.max_length * inner_);
}

void FeedForward::Forward(const RecordContext& context, const float* x, float* y) const {
  float* before = context.forward(before_);
  float* after = context.forward(after_);
  in_.Forward(context, x, before, context.rows);
  context.ops().activation_forward({.x = before, .y = after, .n = context.rows * inner_, .kind = activation_});
  out_.Forward(context, after, y, context.rows);
}

void FeedForward::Backward(const RecordContext& context, const float* x, const float* dy, float* dx,
                           kernels::Store store, FactorSink& sink) const {
  float* dinner = context.backward(dinner_);
  out_.Backward(context, context.forward(after_), dy, dinner, kernels::Store::kAssign, sink);
  context.ops().activation_backward(
      {.dy = dinner, .x = context.forward(before_), .dx = dinner, .n = context.rows * inner_, .kind = activation_});
  in_.Backward(context, x, dinner, dx, store, sink);
}

void FeedForward::Variance(const RecordContext& context, const float* x, const float* var_x, float* var_inner,
                           float* var_y) const {
  in_.Variance(context, x, var_x, var_inner);
  context.ops().activation_variance(
      {.mean = context.forward(before_), .x = var_inner, .y = var_inner, .n = context.rows * inner_});
  out_.Variance(context, context.forward(after_), var_inner, var_y);
}

}  // namespace wisp
