#include "runtime/layers/classifier.h"

#include <numeric>

namespace wisp {

Classifier::Classifier(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : GraphBase(a, device, options),
      embedding_(a, parameters_, plan_),
      stack_(a, ops(), parameters_, /*normed_rows=*/plan_.max_records, plan_),
      pooler_(parameters_,
              FindLinear(architecture_, parameters_, ParameterRole::kPoolerWeight, ParameterRole::kPoolerBias), plan_),
      head_(parameters_, FindLinear(architecture_, parameters_, ParameterRole::kClassWeight, ParameterRole::kClassBias),
            plan_),
      head_weight_(RequireParameter(parameters_, ParameterRole::kClassWeight)),
      head_bias_(RequireParameter(parameters_, ParameterRole::kClassBias)) {
  const size_t records = plan_.max_records, size = records * a.width;
  for (Slot<float>* slot : {&h_, &x_}) *slot = plan_.forward.Reserve<float>(size);
  for (Slot<float>* slot : {&dh_, &dx_}) *slot = plan_.backward.Reserve<float>(size);
  logits_ = plan_.forward.Reserve<float>(records * a.head.num_classes);
  dlogits_ = plan_.backward.Reserve<float>(records * a.head.num_classes);
  if (records == 1) return;
  one_each_ = plan_.host.Reserve<uint32_t>(records + 1);
  first_ = plan_.forward.Reserve<float>(size);
  dfirst_ = plan_.backward.Reserve<float>(size);
}

RecordContext Classifier::FirstRows(const RecordContext& context) const {
  RecordContext rows = context;
  rows.first_valid = 0;
  rows.first_valid_B = nullptr;
  const size_t records = context.records.num_records;
  rows.records = {.num_records = records, .rows = records};
  if (records > 1) rows.records.begin_B = context.buffers.host[one_each_];
  return rows;
}

const float* Classifier::FirstOfLast(const RecordContext& context) const {
  return context.records.num_records > 1 ? context.forward(first_) : stack_.last(context);
}

float* Classifier::DFirstOfLast(const RecordContext& context) const {
  return context.records.num_records > 1 ? context.backward(dfirst_) : stack_.dlast(context);
}

const float* Classifier::RepresentAll(RecordContext& context, const int32_t* tokens) const {
  const size_t records = context.records.num_records, d = architecture_.width;
  const float* last = stack_.Forward(context, embedding_, tokens, /*wanted=*/0);
  if (records > 1) {
    ops().copy_rows({.x_RD = last,
                     .ldx = d,
                     .from_R = context.begin_on_device_B,
                     .y_RD = context.forward(first_),
                     .ldy = d,
                     .to_R = nullptr,
                     .rows = records,
                     .d = d});
    // As in Enter: where records lie is written by the host.
    std::iota(context.buffers.host[one_each_], context.buffers.host[one_each_] + records + 1, 0u);
  }
  // Everything above the blocks sees the first rows only.
  const RecordContext rows = FirstRows(context);
  float* h = context.forward(h_);
  pooler_.Forward(rows, stack_.Norm(rows, FirstOfLast(context)), h, records);
  ops().map({.x = h, .y = h, .n = records * d, .function = kernels::Function::kTanh});
  return h;
}

const float* Classifier::Represent(RecordContext& context, std::span<const int32_t> tokens) const {
  return RepresentAll(context, EnterOne(context, tokens));
}

void Classifier::Represent(RecordContext& context, Batch batch, float* h_BD) const {
  Enter(context, batch);
  const float* h = RepresentAll(context, Inputs(context, batch));
  device_.memory.copy_out(h_BD, h, batch.size() * architecture_.width * sizeof(float));
}

const float* Classifier::LogitsOf(const RecordContext& context) const {
  const HeadInput& input = context.head_input;
  const size_t records = context.records.num_records, d = architecture_.width;
  float* x = context.forward(x_);
  ops().clip_rows({.x_RD = context.forward(h_),
                   .noise_RD = input.noise_BD,
                   .y_RD = x,
                   .rows = records,
                   .d = d,
                   .bound = input.norm_bound});
  float* z = context.forward(logits_);
  head_.Forward(FirstRows(context), x, z, records);
  return z;
}

const float* Classifier::Logits(RecordContext& context, std::span<const int32_t> tokens) const {
  Represent(context, tokens);
  return LogitsOf(context);
}

void Classifier::Forward(RecordContext& context, Batch batch, double* loss_B) const {
  Enter(context, batch);
  RepresentAll(context, Inputs(context, batch));
  ops().class_cross_entropy({.z_RN = LogitsOf(context),
                             .target_R = Targets(context, batch),
                             .loss_R = loss_B,
                             .dz_RN = nullptr,
                             .rows = batch.size(),
                             .n = architecture_.head.num_classes});
}

void Classifier::Backward(const RecordContext& context, Batch batch, FactorSink& sink) const {
  const RecordContext rows = FirstRows(context);
  const size_t d = architecture_.width;
  ops().class_cross_entropy({.z_RN = context.forward(logits_),
                             .target_R = Targets(context, batch),
                             .loss_R = nullptr,
                             .dz_RN = context.backward(dlogits_),
                             .rows = batch.size(),
                             .n = architecture_.head.num_classes});
  head_.Backward(rows, context.forward(x_), context.backward(dlogits_), context.backward(dx_), kernels::Store::kAssign,
                 sink);
  ops().clipped_tanh_backward({.x_RD = context.forward(h_),
                               .dy_RD = context.backward(dx_),
                               .dp_RD = context.backward(dh_),
                               .rows = batch.size(),
                               .d = d,
                               .bound = context.head_input.norm_bound});
  float *dlast = stack_.dlast(context), *dfirst = DFirstOfLast(context);
  ops().clear({.y = dlast, .bytes = context.rows() * d * sizeof(float)});
  const bool normed = stack_.has_norm();
  pooler_.Backward(rows, normed ? stack_.normed(context) : FirstOfLast(context), context.backward(dh_),
                   normed ? stack_.dnormed(context) : dfirst, kernels::Store::kAssign, sink);
  stack_.NormBackward(rows, FirstOfLast(context), dfirst, sink);
  if (batch.size() > 1) {
    ops().copy_rows({.x_RD = dfirst,
                     .ldx = d,
                     .from_R = nullptr,
                     .y_RD = dlast,
                     .ldy = d,
                     .to_R = context.begin_on_device_B,
                     .rows = batch.size(),
                     .d = d});
  }
  stack_.Backward(context, sink);
  embedding_.Backward(context, Inputs(context, batch), stack_.dinput(context), sink);
}

void Classifier::ReplayHead(const RecordContext& context, Batch, FactorSink& sink) const {
  const size_t d = architecture_.width, classes = architecture_.head.num_classes;
  const float* dz = context.backward(dlogits_);
  if (sink.Wants(head_weight_)) {
    sink.Outer({.parameter = head_weight_,
                .first_row = 0,
                .dy_RN = dz,
                .lddy = classes,
                .x_RK = context.forward(x_),
                .ldx = d,
                .records = FirstRows(context).records,
                .n = classes,
                .k = d});
  }
  if (sink.Wants(head_bias_)) sink.Vector({.parameter = head_bias_, .first = 0, .g_BN = dz, .n = classes});
}

}  // namespace wisp
