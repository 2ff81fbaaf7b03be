#include "runtime/layers/recommender.h"

namespace wisp {

Recommender::Recommender(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : GraphBase(a, device, options),
      embedding_(a, parameters_, plan_),
      stack_(a, ops(), parameters_, plan_.max_rows(), plan_),
      head_(a, parameters_, plan_),
      sampled_head_(a, parameters_, options.num_negatives, plan_),
      sampled_(options.num_negatives > 0),
      is_cosine_(a.head.temperature > 0) {
  if (options.use == GraphUse::kInference && plan_.max_records > 1) {
    together_ = plan_.forward.Reserve<float>(plan_.max_records * a.width);
    last_row_ = plan_.host.Reserve<uint32_t>(plan_.max_records);
    last_row_on_device_ = plan_.forward.Reserve<uint32_t>(plan_.max_records);
  }
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

bool Recommender::KeepsKeys(size_t before, size_t now) const {
  if (architecture_.attend != Attend::kCausal) return false;
  return before == now || architecture_.positions == PositionAlignment::kStart;
}

const float* Recommender::Represent(RecordContext& context, std::span<const int32_t> history) const {
  const std::span<const int32_t> inputs = history.subspan(context.past);
  return Encode(context, EnterOne(context, inputs), /*wanted=*/1);
}

const float* Recommender::RepresentEach(RecordContext& context, std::span<const int32_t> history) const {
  return Encode(context, EnterOne(context, history), /*wanted=*/0);
}

void Recommender::Represent(RecordContext& context, Batch batch, float* h_BD) const {
  for (const Record& record : batch) {
    device_.memory.copy_out(h_BD, Represent(context, record.inputs), architecture_.width * sizeof(float));
    h_BD += architecture_.width;
  }
}

const float* Recommender::RepresentTogether(RecordContext& context, Batch histories) const {
  if (histories.size() == 1) return Represent(context, histories[0].inputs);
  Enter(context, histories);
  uint32_t *row = context.buffers.host[last_row_], *row_on_device = context.forward(last_row_on_device_);
  for (size_t b = 0; b < histories.size(); ++b) row[b] = context.records.begin_B[b + 1] - 1;
  device_.memory.copy_in(row_on_device, row, histories.size() * sizeof(uint32_t));
  const size_t d = architecture_.width;
  const float* h = Encode(context, context.forward(inputs_), /*wanted=*/0);
  float* last = context.forward(together_);
  ops().copy_rows({.x_RD = h,
                   .ldx = d,
                   .from_R = row_on_device,
                   .y_RD = last,
                   .ldy = d,
                   .to_R = nullptr,
                   .rows = histories.size(),
                   .d = d});
  return last;
}

void Recommender::Score(RecordContext& context, std::span<const int32_t> history, float* scores) const {
  head_.Score(context, Represent(context, history), scores);
}

}  // namespace wisp
