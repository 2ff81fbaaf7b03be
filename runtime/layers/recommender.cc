#include "runtime/layers/recommender.h"

namespace wisp {

Recommender::Recommender(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : ModelView(a, device, options),
      embedding_(a, parameters_, plan_),
      stack_(a, ops(), parameters_, plan_.max_rows(), plan_),
      sampled_head_(a, parameters_, options.num_negatives, plan_),
      sampled_(options.num_negatives > 0),
      is_cosine_(a.head.temperature > 0) {
  if (!is_cosine_) return;
  unit_ = plan_.forward.Reserve<float>(plan_.max_rows() * a.width);
  unit_rstd_ = plan_.forward.Reserve<float>(plan_.max_rows());
  dunit_ = plan_.backward.Reserve<float>(plan_.max_rows() * a.width);
  dgain_ = plan_.backward.Reserve<float>(a.width);
}

const float* Recommender::ForHead(const RecordContext& context, const float* h) const {
  if (!is_cosine_) return h;
  float* unit = context.forward(unit_);
  context.ops().rms_norm_forward({.x_RD = h,
                                  .gain_D = context.weights.head_gain(),
                                  .y_RD = unit,
                                  .rstd_R = context.forward(unit_rstd_),
                                  .rows = context.rows(),
                                  .d = architecture_.width,
                                  .epsilon = kUnitEpsilon});
  return unit;
}

void Recommender::ForHeadBackward(const RecordContext& context, const float* h, float* dh) const {
  if (!is_cosine_) return;
  context.ops().rms_norm_backward({.dy_RD = context.backward(dunit_),
                                   .x_RD = h,
                                   .gain_D = context.weights.head_gain(),
                                   .rstd_R = context.forward(unit_rstd_),
                                   .dx_RD = dh,
                                   .dgain_D = context.backward(dgain_),
                                   .rows = context.rows(),
                                   .d = architecture_.width,
                                   .store = kernels::Store::kAssign});
}

const float* Recommender::Encode(RecordContext& context, const int32_t* inputs, size_t wanted) const {
  const float* last = stack_.Forward(context, embedding_, inputs, wanted);
  const RecordContext tail = context.Tail();
  return ForHead(tail, stack_.Norm(tail, last));
}

void Recommender::Forward(RecordContext& context, Batch batch, double* loss_B) const {
  Enter(context, batch);
  const float* h = Encode(context, Inputs(context, batch), /*wanted=*/0);
  const int32_t* targets = Targets(context, batch);
  sampled_ ? sampled_head_.Forward(context, h, targets, loss_B) : head_.Forward(context, h, targets, loss_B);
}

void Recommender::Backward(const RecordContext& context, Batch batch, FactorSink& sink) const {
  const float* h = HeadInput(context);
  float* dh = is_cosine_ ? context.backward(dunit_) : stack_.dnormed(context);
  const int32_t* targets = Targets(context, batch);
  sampled_ ? sampled_head_.Backward(context, h, targets, dh, sink) : head_.Backward(context, h, targets, dh, sink);
  ForHeadBackward(context, stack_.normed(context), stack_.dnormed(context));
  stack_.NormBackward(context, sink);
  stack_.Backward(context, embedding_, Inputs(context, batch), sink);
}

void Recommender::ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const {
  head_.Replay(context, HeadInput(context), Targets(context, batch), sink);
}

}  // namespace wisp
