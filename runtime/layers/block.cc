#include "runtime/layers/block.h"

namespace wisp {
namespace {

constexpr uint64_t kSitesPerBlock = 3;  // attention probabilities, two residuals; site 0 belongs to the embedding

NormParameters FindNorm(const Architecture& a, const std::vector<ParameterSpec>& parameters, ParameterRole gain,
                        uint32_t index) {
  const bool first = gain == ParameterRole::kAttentionNormGain;
  const ParameterRole bias = first ? ParameterRole::kAttentionNormBias : ParameterRole::kFeedForwardNormBias;
  return {.gain = RequireParameter(parameters, gain, index),
          .bias = FindParameter(parameters, bias, index),
          .epsilon = a.blocks[index].norm_epsilon};
}

}  // namespace

Block::Block(const Architecture& a, const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
             uint32_t index, const VarianceBuffers& variance, BufferPlan& plan)
    : d_(a.width),
      variance_to_the_end_(variance.on && index + 1 < a.blocks.size()),
      variance_(variance),
      placement_(a.blocks[index].norm),
      norm1_(parameters, FindNorm(a, parameters, ParameterRole::kAttentionNormGain, index), plan.max_rows(), plan),
      norm2_(parameters, FindNorm(a, parameters, ParameterRole::kFeedForwardNormGain, index), plan.max_rows(), plan),
      attention_(a, ops, parameters, index, 1 + kSitesPerBlock * index, plan),
      feed_forward_(a, parameters, index, plan),
      dropout1_(2 + kSitesPerBlock * index, plan.max_rows() * a.width, plan),
      dropout2_(3 + kSitesPerBlock * index, plan.max_rows() * a.width, plan),
      gate1_(a, parameters, ParameterRole::kAttentionResidualGateWeight, ParameterRole::kAttentionResidualGateBias,
             index, plan),
      gate2_(a, parameters, ParameterRole::kFeedForwardResidualGateWeight, ParameterRole::kFeedForwardResidualGateBias,
             index, plan) {
  const size_t size = plan.max_rows() * a.width;
  for (Slot<float>* slot : {&a_, &middle_, &b_}) *slot = plan.ReserveInTurn<float>(size);
  for (Slot<float>* slot : {&dmiddle_, &da_, &db_, &ddropped1_, &ddropped2_}) *slot = plan.ReserveBackward<float>(size);
}

void Block::Copy(const RecordContext& context, const float* from, float* to) const {
  context.ops().scale({.x = from, .y = to, .n = context.rows() * d_, .a = 1.0f, .store = kernels::Store::kAssign});
}

void Block::Add(const RecordContext& context, const float* from, float* to) const {
  context.ops().scale({.x = from, .y = to, .n = context.rows() * d_, .a = 1.0f, .store = kernels::Store::kAdd});
}

void Block::Begin(const RecordContext& context, const float* x, size_t queries) const {
  if (placement_ == NormPlacement::kPost) {
    if (variance_.on) attention_.KeyVariance(context, x, context.forward(variance_.stream));
    return attention_.Project(context, x, queries);
  }
  float* a = context.forward(a_);
  norm1_.Forward(context, x, a);
  if (variance_.on) KeyVariancePre(context);
  attention_.Project(context, a, queries);
}

void Block::Finish(const RecordContext& context, const float* x, float* y) const {
  placement_ == NormPlacement::kPre ? FinishPre(context, x, y) : FinishPost(context, x, y);
}

void Block::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const {
  placement_ == NormPlacement::kPre ? BackwardPre(context, x, dy, dx, sink) : BackwardPost(context, x, dy, dx, sink);
}

void Block::FinishPre(const RecordContext& context, const float* x, float* y) const {
  float* middle = context.forward(middle_);
  float* b = context.forward(b_);
  attention_.Attend(context, middle);
  const RecordContext tail = context.Tail();
  dropout1_.Forward(tail, Rate(tail), middle, d_);
  const float* stream = x + (context.rows() - tail.rows()) * d_;
  gate1_.Forward(tail, stream, middle);
  Add(tail, stream, middle);
  norm2_.Forward(tail, middle, b);
  feed_forward_.Forward(tail, b, y);
  if (variance_to_the_end_) VariancePre(context);
  dropout2_.Forward(tail, Rate(tail), y, d_);
  gate2_.Forward(tail, middle, y);
  Add(tail, middle, y);
}

void Block::BackwardPre(const RecordContext& context, const float* x, const float* dy, float* dx,
                        FactorSink& sink) const {
  const float* a = context.forward(a_);
  const float* middle = context.forward(middle_);
  const float* b = context.forward(b_);
  float* dmiddle = context.backward(dmiddle_);
  float* da = context.backward(da_);
  float* db = context.backward(db_);
  // y = middle + gate(drop(F(N2(middle))))
  const float* dfed =
      dropout2_.Backward(context, Rate(context), gate2_.Backward(context, dy), context.backward(ddropped2_), d_);
  feed_forward_.Backward(context, b, dfed, db, kernels::Store::kAssign, sink);
  Copy(context, dy, dmiddle);
  gate2_.BackwardStream(context, middle, dmiddle, sink);
  norm2_.Backward(context, middle, db, dmiddle, kernels::Store::kAdd, sink);
  // middle = x + gate(drop(A(N1(x))))
  const float* dattended =
      dropout1_.Backward(context, Rate(context), gate1_.Backward(context, dmiddle), context.backward(ddropped1_), d_);
  attention_.Backward(context, a, dattended, da, kernels::Store::kAssign, sink);
  Copy(context, dmiddle, dx);
  gate1_.BackwardStream(context, x, dx, sink);
  norm1_.Backward(context, x, da, dx, kernels::Store::kAdd, sink);
}

void Block::FinishPost(const RecordContext& context, const float* x, float* y) const {
  float* a = context.forward(a_);
  float* middle = context.forward(middle_);
  float* b = context.forward(b_);
  attention_.Attend(context, a);
  const RecordContext tail = context.Tail();
  dropout1_.Forward(tail, Rate(tail), a, d_);
  const float* stream = x + (context.rows() - tail.rows()) * d_;
  gate1_.Forward(tail, stream, a);
  Add(tail, stream, a);
  norm1_.Forward(tail, a, middle);
  feed_forward_.Forward(tail, middle, b);
  dropout2_.Forward(tail, Rate(tail), b, d_);
  gate2_.Forward(tail, middle, b);
  Add(tail, middle, b);
  norm2_.Forward(tail, b, y);
  if (variance_to_the_end_) VariancePost(context);
}

void Block::BackwardPost(const RecordContext& context, const float* x, const float* dy, float* dx,
                         FactorSink& sink) const {
  float* dmiddle = context.backward(dmiddle_);
  float* da = context.backward(da_);
  float* db = context.backward(db_);
  // y = N2(b), b = middle + gate(drop(F(middle)))
  norm2_.Backward(context, context.forward(b_), dy, db, kernels::Store::kAssign, sink);
  const float* dfed =
      dropout2_.Backward(context, Rate(context), gate2_.Backward(context, db), context.backward(ddropped2_), d_);
  Copy(context, db, dmiddle);
  gate2_.BackwardStream(context, context.forward(middle_), dmiddle, sink);
  feed_forward_.Backward(context, context.forward(middle_), dfed, dmiddle, kernels::Store::kAdd, sink);
  // middle = N1(a), a = x + gate(drop(A(x)))
  norm1_.Backward(context, context.forward(a_), dmiddle, da, kernels::Store::kAssign, sink);
  const float* dattended =
      dropout1_.Backward(context, Rate(context), gate1_.Backward(context, da), context.backward(ddropped1_), d_);
  Copy(context, da, dx);
  gate1_.BackwardStream(context, x, dx, sink);
  attention_.Backward(context, x, dattended, dx, kernels::Store::kAdd, sink);
}

void Block::KeyVariancePre(const RecordContext& context) const {
  float* normed = context.forward(variance_.normed);
  norm1_.Variance(context, context.forward(variance_.stream), normed);
  attention_.KeyVariance(context, context.forward(a_), normed);
}

void Block::VariancePre(const RecordContext& context) const {
  float *stream = context.forward(variance_.stream), *out = context.forward(variance_.out);
  attention_.Variance(context, out);
  Add(context, out, stream);
  float* normed = context.forward(variance_.normed);
  norm2_.Variance(context, stream, normed);
  feed_forward_.Variance(context, context.forward(b_), normed, context.forward(variance_.inner), out);
  Add(context, out, stream);
}

void Block::VariancePost(const RecordContext& context) const {
  float *stream = context.forward(variance_.stream), *out = context.forward(variance_.out);
  attention_.Variance(context, out);
  Add(context, out, stream);
  norm1_.Variance(context, stream, stream);
  feed_forward_.Variance(context, context.forward(middle_), stream, context.forward(variance_.inner), out);
  Add(context, out, stream);
  norm2_.Variance(context, stream, stream);
}

}  // namespace wisp
