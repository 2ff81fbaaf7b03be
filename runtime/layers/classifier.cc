#include "runtime/layers/classifier.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace wisp {
namespace {

// log(sum of exp(z)) in double. K classes of one row: a loop, not a kernel.
double LogSumExp(const float* z, size_t n) {
  const double max = *std::max_element(z, z + n);
  double sum = 0;
  for (size_t c = 0; c < n; ++c) sum += std::exp(z[c] - max);
  return max + std::log(sum);
}

}  // namespace

double ClipScale(const float* h, size_t n, double bound) {
  if (bound == 0) return 1;
  double squares = 0;
  for (size_t k = 0; k < n; ++k) squares += static_cast<double>(h[k]) * h[k];
  const double norm = std::sqrt(squares);
  return norm > bound ? bound / norm : 1.0;
}

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
  one_each_ = plan_.forward.Reserve<uint32_t>(records + 1);
  first_ = plan_.forward.Reserve<float>(size);
  dfirst_ = plan_.backward.Reserve<float>(size);
}

RecordContext Classifier::FirstRows(const RecordContext& context) const {
  RecordContext rows = context;
  rows.first_valid = 0;
  rows.first_valid_B = nullptr;
  const size_t records = context.records.num_records;
  rows.records = {.num_records = records, .rows = records};
  if (records > 1) rows.records.begin_B = context.forward(one_each_);
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
  for (size_t b = 0; records > 1 && b < records; ++b)
    std::copy_n(last + context.records.begin(b) * d, d, context.forward(first_) + b * d);
  if (records > 1) std::iota(context.forward(one_each_), context.forward(one_each_) + records + 1, 0u);
  // Everything above the blocks sees the first rows only.
  const RecordContext rows = FirstRows(context);
  float* h = context.forward(h_);
  pooler_.Forward(rows, stack_.Norm(rows, FirstOfLast(context)), h, records);
  // tanh of one row of D values a record: a scalar loop is nothing beside the blocks, so it is no kernel.
  for (size_t k = 0; k < records * d; ++k) h[k] = std::tanh(h[k]);
  return h;
}

const float* Classifier::Represent(RecordContext& context, std::span<const int32_t> tokens) const {
  EnterOne(context, tokens);
  return RepresentAll(context, tokens.data());
}

void Classifier::Represent(RecordContext& context, Batch batch, float* h_BD) const {
  Enter(context, batch);
  std::copy_n(RepresentAll(context, Inputs(context, batch)), batch.size() * architecture_.width, h_BD);
}

const float* Classifier::LogitsOf(const RecordContext& context) const {
  const HeadInput& input = context.head_input;
  const size_t records = context.records.num_records, d = architecture_.width;
  const float* h = context.forward(h_);
  float* x = context.forward(x_);
  for (size_t b = 0; b < records; ++b) {
    const double scale = ClipScale(h + b * d, d, input.norm_bound);
    for (size_t k = b * d; k < (b + 1) * d; ++k)
      x[k] = static_cast<float>(scale * h[k]) + (input.noise_BD != nullptr ? input.noise_BD[k] : 0.0f);
  }
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
  const float* z = LogitsOf(context);
  const size_t classes = architecture_.head.num_classes;
  for (size_t b = 0; b < batch.size(); ++b)
    loss_B[b] = LogSumExp(z + b * classes, classes) - z[b * classes + static_cast<size_t>(batch[b].targets[0])];
}

// x = s h + noise with s = C / ||h|| where ||h|| > C: dh = s (dx - h <h, dx> / ||h||^2); else s = 1 and dh = dx.
// h = tanh(p): dp = dh (1 - h^2)
void Classifier::HeadInputBackward(const RecordContext& context, size_t b) const {
  const size_t d = architecture_.width;
  const float *h = context.forward(h_) + b * d, *dx = context.backward(dx_) + b * d;
  float* dh = context.backward(dh_) + b * d;
  const double scale = ClipScale(h, d, context.head_input.norm_bound);
  double along = 0, squares = 0;
  for (size_t k = 0; k < d; ++k) {
    along += static_cast<double>(h[k]) * dx[k];
    squares += static_cast<double>(h[k]) * h[k];
  }
  const double radial = scale < 1 ? along / squares : 0.0;
  for (size_t k = 0; k < d; ++k)
    dh[k] = static_cast<float>(scale * (dx[k] - h[k] * radial) * (1.0 - static_cast<double>(h[k]) * h[k]));
}

void Classifier::Backward(const RecordContext& context, Batch batch, FactorSink& sink) const {
  const RecordContext rows = FirstRows(context);
  const size_t d = architecture_.width, classes = architecture_.head.num_classes;
  // loss = logsumexp(z) - z[label]
  for (size_t b = 0; b < batch.size(); ++b) {
    const float* z = context.forward(logits_) + b * classes;
    float* dz = context.backward(dlogits_) + b * classes;
    const double lse = LogSumExp(z, classes);
    for (size_t c = 0; c < classes; ++c) {
      dz[c] = static_cast<float>(std::exp(z[c] - lse) - (static_cast<size_t>(batch[b].targets[0]) == c ? 1.0 : 0.0));
    }
  }
  head_.Backward(rows, context.forward(x_), context.backward(dlogits_), context.backward(dx_), kernels::Store::kAssign,
                 sink);
  for (size_t b = 0; b < batch.size(); ++b) HeadInputBackward(context, b);
  float *dlast = stack_.dlast(context), *dfirst = DFirstOfLast(context);
  std::memset(dlast, 0, context.rows() * d * sizeof(float));
  const bool normed = stack_.has_norm();
  pooler_.Backward(rows, normed ? stack_.normed(context) : FirstOfLast(context), context.backward(dh_),
                   normed ? stack_.dnormed(context) : dfirst, kernels::Store::kAssign, sink);
  stack_.NormBackward(rows, FirstOfLast(context), dfirst, sink);
  for (size_t b = 0; batch.size() > 1 && b < batch.size(); ++b)
    std::copy_n(dfirst + b * d, d, dlast + context.records.begin(b) * d);
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
