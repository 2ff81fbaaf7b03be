#include "runtime/layers/classifier.h"

#include <numeric>

namespace wisp {

Classifier::Classifier(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : GraphBase(a, device, options),
      embedding_(a, parameters_, plan_),
      stack_(a, ops(), parameters_, /*normed_rows=*/pools_all() ? plan_.max_rows() : plan_.max_records, plan_) {
  const auto linear = [&](ParameterRole weight, ParameterRole bias) {
    return Linear(parameters_, FindLinear(architecture_, parameters_, weight, bias), plan_);
  };
  if (a.head.pooler != Pooler::kNone) pooler_ = linear(ParameterRole::kPoolerWeight, ParameterRole::kPoolerBias);
  const size_t records = plan_.max_records, size = records * a.width;
  if (a.head.kind == HeadKind::kClasses) {
    head_ = linear(ParameterRole::kClassWeight, ParameterRole::kClassBias);
    head_weight_ = RequireParameter(parameters_, ParameterRole::kClassWeight);
    head_bias_ = RequireParameter(parameters_, ParameterRole::kClassBias);
    logits_ = plan_.forward.Reserve<float>(records * a.head.num_classes);
    dlogits_ = plan_.backward.Reserve<float>(records * a.head.num_classes);
  }
  for (Slot<float>* slot : {&h_, &x_}) *slot = plan_.forward.Reserve<float>(size);
  for (Slot<float>* slot : {&dh_, &dx_}) *slot = plan_.backward.Reserve<float>(size);
  if (a.head.unit_length) rstd_ = plan_.forward.Reserve<float>(records);
  if (records > 1) one_each_ = plan_.host.Reserve<uint32_t>(records + 1);
  if (records == 1 && !pools_all()) return;
  pooled_ = plan_.forward.Reserve<float>(size);
  dpooled_ = plan_.backward.Reserve<float>(size);
}

RecordContext Classifier::PooledRows(const RecordContext& context) const {
  RecordContext rows = context;
  rows.first_valid = 0;
  rows.first_valid_B = nullptr;
  const size_t records = context.records.num_records;
  rows.records = {.num_records = records, .rows = records};
  if (records > 1) rows.records.begin_B = context.buffers.host[one_each_];
  return rows;
}

const float* Classifier::Pooled(const RecordContext& context) const {
  return copies(context) ? context.forward(pooled_) : stack_.last(context);
}

float* Classifier::DPooled(const RecordContext& context) const {
  return copies(context) ? context.backward(dpooled_) : stack_.dlast(context);
}

const float* Classifier::PoolerInput(const RecordContext& context) const {
  if (context.pooled_BD != nullptr) return context.pooled_BD;
  return !pools_all() && stack_.has_norm() ? stack_.normed(context) : Pooled(context);
}

float* Classifier::DPoolerInput(const RecordContext& context) const {
  return !pools_all() && stack_.has_norm() ? stack_.dnormed(context) : DPooled(context);
}

void Classifier::PoolStates(const RecordContext& context, const float* last) const {
  const size_t records = context.records.num_records, d = architecture_.width;
  if (pools_all()) {
    ops().mean_rows(
        {.x_RD = stack_.Norm(context, last), .y_BD = context.forward(pooled_), .records = context.records, .d = d});
  } else if (records > 1) {
    ops().copy_rows({.x_RD = last,
                     .ldx = d,
                     .from_R = context.begin_on_device_B,
                     .y_RD = context.forward(pooled_),
                     .ldy = d,
                     .to_R = nullptr,
                     .rows = records,
                     .d = d});
  }
}

const float* Classifier::PoolAll(RecordContext& context, const int32_t* tokens) const {
  const size_t records = context.records.num_records;
  // The host writes where records lie, as in Enter.
  if (records > 1) std::iota(context.buffers.host[one_each_], context.buffers.host[one_each_] + records + 1, 0u);
  if (context.pooled_BD != nullptr) return context.pooled_BD;
  PoolStates(context, stack_.Forward(context, embedding_, tokens, /*wanted=*/0));
  return pools_all() ? Pooled(context) : stack_.Norm(PooledRows(context), Pooled(context));
}

const float* Classifier::RepresentAll(RecordContext& context, const int32_t* tokens) const {
  const size_t records = context.records.num_records, d = architecture_.width;
  const float* pooled = PoolAll(context, tokens);
  // From here on each record has one row.
  const RecordContext rows = PooledRows(context);
  float* h = context.forward(h_);
  if (pooler_) {
    pooler_->Forward(rows, pooled, h, records);
    if (is_relu()) {
      ops().activation_forward({.x = h, .y = h, .n = records * d, .kind = kernels::Activation::kRelu});
    } else {
      ops().map({.x = h, .y = h, .n = records * d, .function = kernels::Function::kTanh});
    }
  } else {
    ops().scale({.x = pooled, .y = h, .n = records * d, .a = 1.0f, .store = kernels::Store::kAssign});
  }
  if (!architecture_.head.unit_length) return h;
  ops().rms_norm_forward({.x_RD = h,
                          .gain_D = context.weights.unit_gain(),
                          .y_RD = context.forward(x_),
                          .rstd_R = context.forward(rstd_),
                          .rows = records,
                          .d = d,
                          .epsilon = kUnitEpsilon});
  return context.forward(x_);
}

const float* Classifier::Represent(RecordContext& context, std::span<const int32_t> tokens) const {
  return RepresentAll(context, EnterOne(context, tokens));
}

void Classifier::Represent(RecordContext& context, Batch batch, float* h_BD) const {
  Enter(context, batch);
  const float* h = RepresentAll(context, Inputs(context, batch));
  device_.memory.copy_out(h_BD, h, batch.size() * architecture_.width * sizeof(float));
}

void Classifier::Pool(RecordContext& context, Batch batch, float* e_BD) const {
  Enter(context, batch);
  const float* e = PoolAll(context, Inputs(context, batch));
  device_.memory.copy_out(e_BD, e, batch.size() * architecture_.width * sizeof(float));
}

void Classifier::PassBelow(RecordContext& context, Batch batch, size_t block, float* x_RD) const {
  Enter(context, batch);
  const float* x = stack_.ForwardBelow(context, embedding_, Inputs(context, batch), block);
  device_.memory.copy_out(x_RD, x, context.rows() * architecture_.width * sizeof(float));
}

const float* Classifier::GetLogits(const RecordContext& context) const {
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
  head_->Forward(PooledRows(context), x, z, records);
  return z;
}

const float* Classifier::Logits(RecordContext& context, std::span<const int32_t> tokens) const {
  Represent(context, tokens);
  return GetLogits(context);
}

void Classifier::Forward(RecordContext& context, Batch batch, double* loss_B) const {
  Enter(context, batch);
  RepresentAll(context, Inputs(context, batch));
  ops().class_cross_entropy({.z_RN = GetLogits(context),
                             .target_R = Targets(context, batch),
                             .loss_R = loss_B,
                             .dz_RN = nullptr,
                             .rows = batch.size(),
                             .n = architecture_.head.num_classes});
}

void Classifier::Backward(const RecordContext& context, Batch batch, FactorSink& sink) const {
  const RecordContext rows = PooledRows(context);
  ops().class_cross_entropy({.z_RN = context.forward(logits_),
                             .target_R = Targets(context, batch),
                             .loss_R = nullptr,
                             .dz_RN = context.backward(dlogits_),
                             .rows = batch.size(),
                             .n = architecture_.head.num_classes});
  head_->Backward(rows, context.forward(x_), context.backward(dlogits_), context.backward(dx_), kernels::Store::kAssign,
                  sink);
  ops().clip_rows_backward({.x_RD = context.forward(h_),
                            .dy_RD = context.backward(dx_),
                            .dx_RD = pooler_ ? context.backward(dh_) : DPoolerInput(context),
                            .rows = batch.size(),
                            .d = architecture_.width,
                            .bound = context.head_input.norm_bound,
                            .before = pooler_ && !is_relu() ? kernels::Before::kTanh : kernels::Before::kNothing});
  if (pooler_) {
    float* dh = context.backward(dh_);
    // Where relu's result is zero, it tells the backward pass as much as relu's input would.
    if (is_relu()) {
      ops().activation_backward({.dy = dh,
                                 .x = context.forward(h_),
                                 .dx = dh,
                                 .n = batch.size() * architecture_.width,
                                 .kind = kernels::Activation::kRelu});
    }
    pooler_->Backward(rows, PoolerInput(context), dh, DPoolerInput(context), kernels::Store::kAssign, sink);
  }
  if (context.pooled_BD != nullptr) return;  // the layers below are frozen
  PoolBackward(context, sink);
  stack_.Backward(context, embedding_, Inputs(context, batch), sink);
}

void Classifier::PoolBackward(const RecordContext& context, FactorSink& sink) const {
  const size_t records = context.records.num_records, d = architecture_.width;
  if (pools_all()) {
    ops().mean_rows_backward(
        {.dy_BD = context.backward(dpooled_), .dx_RD = stack_.dnormed(context), .records = context.records, .d = d});
    return stack_.NormBackward(context, sink);
  }
  float *dlast = stack_.dlast(context), *dpooled = DPooled(context);
  // Clears the rows that were not pooled. Without a norm, the pooler already wrote the first row of a single record.
  const size_t written = dpooled == dlast && !stack_.has_norm() ? d : 0;
  ops().clear({.y = dlast + written, .bytes = (context.rows() * d - written) * sizeof(float)});
  stack_.NormBackward(PooledRows(context), Pooled(context), dpooled, sink);
  if (records == 1) return;
  ops().copy_rows({.x_RD = dpooled,
                   .ldx = d,
                   .from_R = nullptr,
                   .y_RD = dlast,
                   .ldy = d,
                   .to_R = context.begin_on_device_B,
                   .rows = records,
                   .d = d});
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
                .records = PooledRows(context).records,
                .n = classes,
                .k = d});
  }
  if (sink.Wants(head_bias_)) sink.Vector({.parameter = head_bias_, .first = 0, .g_BN = dz, .n = classes});
}

}  // namespace wisp
