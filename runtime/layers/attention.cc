#include "runtime/layers/attention.h"

#include <cmath>

namespace wisp {

Attention::Attention(const Architecture& a, const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
                     size_t block, uint64_t site, BufferPlan& plan)
    : d_(a.width),
      heads_(a.num_heads),
      mask_(a.attend == Attend::kCausal ? kernels::AttentionMask::kCausal : kernels::AttentionMask::kFull),
      scale_(1.0f / std::sqrt(static_cast<float>(a.width / a.num_heads))),
      slopes_(AttentionSlopes(a)),
      qkv_(parameters, "block" + std::to_string(block) + ".qkv", plan),
      out_(parameters, "block" + std::to_string(block) + ".attention_out", plan),
      dropout_(site, size_t{a.num_heads} * a.max_length * a.max_length, plan) {
  const size_t t = a.max_length;
  // A session remembers keys and values where the past does not change: RecordContext::past.
  const bool keeps_keys = a.attend == Attend::kCausal;
  projected_ = keeps_keys ? plan.forward.Reserve<float>(t * 3 * d_) : plan.ReserveInTurn<float>(t * 3 * d_);
  mixed_ = plan.ReserveInTurn<float>(t * d_);
  lse_ = plan.ReserveInTurn<float>(heads_ * t);
  forward_scratch_ = plan.ReserveInTurn<float>(ops.attention_scratch_size(t, t, d_ / heads_));
  re_attention_ = a.re_attention == ReAttention::kOn;
  variance_width_ = block + 1 == a.num_blocks ? d_ : 2 * d_;
  if (re_attention_) {
    key_value_variance_ = plan.forward.Reserve<float>(t * variance_width_);
    mixed_variance_ = plan.ReserveInTurn<float>(t * d_);
  }
  dprojected_ = plan.backward.Reserve<float>(t * 3 * d_);
  dmixed_ = plan.backward.Reserve<float>(t * d_);
}

void Attention::Forward(const RecordContext& context, const float* x, float* y, const float* var_x,
                        float* var_y) const {
  const size_t keys = context.past + context.rows, t = context.wanted_rows();
  const float* qkv = context.forward(projected_);
  float* mixed = context.forward(mixed_);
  qkv_.Forward(context, x, context.forward(projected_) + context.past * 3 * d_, context.rows);
  float* key_variance = nullptr;
  float* mixed_variance = nullptr;
  if (re_attention_) {
    key_variance = context.forward(key_value_variance_);
    qkv_.Variance(context, x, var_x, key_variance + context.past * variance_width_, variance_width_);
    if (variance_width_ > d_) mixed_variance = context.forward(mixed_variance_);
  }
  const float rate = Rate(context);
  context.ops().attention_forward({.q = qkv + (keys - t) * 3 * d_,
                                   .k = qkv + d_,
                                   .v = qkv + 2 * d_,
                                   .ldq = 3 * d_,
                                   .ldkv = 3 * d_,
                                   .out = mixed,
                                   .ldout = d_,
                                   .lse_HQ = context.forward(lse_),
                                   .keep_HQT = dropout_.Draw(context, rate, heads_ * t * keys),
                                   .keep_scale = KeepScale(rate),
                                   .scratch = context.forward(forward_scratch_),
                                   .num_queries = t,
                                   .num_keys = keys,
                                   .heads = heads_,
                                   .head_width = d_ / heads_,
                                   .first_key = context.first_valid,
                                   .scale = scale_,
                                   .mask = mask_,
                                   .key_variance = key_variance,
                                   .value_variance = mixed_variance == nullptr ? nullptr : key_variance + d_,
                                   .ldvariance = variance_width_,
                                   .out_variance = mixed_variance,
                                   .ldout_variance = d_,
                                   .slope_H = Slopes()});
  out_.Forward(context, mixed, y, t);
  if (mixed_variance != nullptr) out_.Variance(context.Tail(), mixed, mixed_variance, var_y);
}

void Attention::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                         FactorSink& sink) const {
  const size_t t = context.rows;
  const float* qkv = context.forward(projected_);
  const float* mixed = context.forward(mixed_);
  float* dmixed = context.backward(dmixed_);
  float* dqkv = context.backward(dprojected_);
  out_.Backward(context, mixed, dy, dmixed, kernels::Store::kAssign, sink);
  const float rate = Rate(context);
  context.ops().attention_backward({.q = qkv,
                                    .k = qkv + d_,
                                    .v = qkv + 2 * d_,
                                    .ldq = 3 * d_,
                                    .ldkv = 3 * d_,
                                    .out = mixed,
                                    .dout = dmixed,
                                    .ldout = d_,
                                    .lse_HQ = context.forward(lse_),
                                    .keep_HQT = dropout_.Mask(context, rate),
                                    .keep_scale = KeepScale(rate),
                                    .dq = dqkv,
                                    .dk = dqkv + d_,
                                    .dv = dqkv + 2 * d_,
                                    .scratch = context.forward(forward_scratch_),
                                    .num_queries = t,
                                    .num_keys = t,
                                    .heads = heads_,
                                    .head_width = d_ / heads_,
                                    .first_key = context.first_valid,
                                    .scale = scale_,
                                    .mask = mask_,
                                    .key_variance = KeyVariance(context),
                                    .ldvariance = variance_width_,
                                    .slope_H = Slopes()});
  qkv_.Backward(context, x, dqkv, dx, store, sink);
}

}  // namespace wisp
