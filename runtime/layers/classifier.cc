#include "runtime/layers/classifier.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace wisp {
namespace {

// log(sum of exp(z)) in double. K classes of one row: a loop, not a kernel.
double LogSumExp(const float* z, size_t n) {
  const double max = *std::max_element(z, z + n);
  double sum = 0;
  for (size_t c = 0; c < n; ++c) sum += std::exp(z[c] - max);
  return max + std::log(sum);
}

// A record's context seen through its first position alone.
RecordContext FirstRow(const RecordContext& context) {
  RecordContext row = context;
  row.rows = 1;
  row.first_valid = 0;
  return row;
}

}  // namespace

double ClipScale(const float* h, size_t n, double bound) {
  if (bound == 0) return 1;
  double squares = 0;
  for (size_t k = 0; k < n; ++k) squares += static_cast<double>(h[k]) * h[k];
  const double norm = std::sqrt(squares);
  return norm > bound ? bound / norm : 1.0;
}

Classifier::Classifier(const Architecture& a, const kernels::OpTable& ops, GraphUse use)
    : GraphBase(a, ops, use, HeadPacking::kNone),
      embedding_(a, parameters_, plan_),
      stack_(a, ops, parameters_, /*normed_rows=*/1, plan_),
      pooler_(parameters_,
              FindLinear(architecture_, parameters_, ParameterRole::kPoolerWeight, ParameterRole::kPoolerBias), plan_),
      head_(parameters_, FindLinear(architecture_, parameters_, ParameterRole::kClassWeight, ParameterRole::kClassBias),
            plan_),
      head_weight_(RequireParameter(parameters_, ParameterRole::kClassWeight)),
      head_bias_(RequireParameter(parameters_, ParameterRole::kClassBias)) {
  for (Slot<float>* slot : {&h_, &x_}) *slot = plan_.forward.Reserve<float>(a.width);
  for (Slot<float>* slot : {&dh_, &dx_}) *slot = plan_.backward.Reserve<float>(a.width);
  logits_ = plan_.forward.Reserve<float>(a.head.num_classes);
  dlogits_ = plan_.backward.Reserve<float>(a.head.num_classes);
}

const float* Classifier::Represent(RecordContext& context, std::span<const int32_t> tokens) const {
  context.rows = tokens.size();
  context.first_valid = 0;
  embedding_.Forward(context, tokens.data(), stack_.input(context));
  // Everything above the blocks sees row 0 only.
  const float* hidden = stack_.Norm(FirstRow(context), stack_.Forward(context, /*wanted=*/0));
  float* h = context.forward(h_);
  pooler_.Forward(FirstRow(context), hidden, h, 1);
  // tanh of one row of D values a record: a scalar loop is nothing beside the blocks, so it is no kernel.
  for (size_t k = 0; k < architecture_.width; ++k) h[k] = std::tanh(h[k]);
  return h;
}

const float* Classifier::Logits(RecordContext& context, std::span<const int32_t> tokens) const {
  const HeadInput& input = context.head_input;
  const size_t d = architecture_.width;
  const float* h = Represent(context, tokens);
  float* x = context.forward(x_);
  const double scale = ClipScale(h, d, input.norm_bound);
  for (size_t k = 0; k < d; ++k)
    x[k] = static_cast<float>(scale * h[k]) + (input.noise_D != nullptr ? input.noise_D[k] : 0.0f);
  float* z = context.forward(logits_);
  head_.Forward(FirstRow(context), x, z, 1);
  return z;
}

double Classifier::Forward(RecordContext& context, const Record& record) const {
  const float* z = Logits(context, record.inputs);
  return LogSumExp(z, architecture_.head.num_classes) - z[record.targets[0]];
}

void Classifier::Backward(const RecordContext& context, const Record& record, FactorSink& sink) const {
  const HeadInput& input = context.head_input;
  const RecordContext row = FirstRow(context);
  const size_t d = architecture_.width, classes = architecture_.head.num_classes;
  // loss = logsumexp(z) - z[label]
  const float* z = context.forward(logits_);
  float* dz = context.backward(dlogits_);
  const double lse = LogSumExp(z, classes);
  for (size_t c = 0; c < classes; ++c) {
    dz[c] = static_cast<float>(std::exp(z[c] - lse) - (static_cast<size_t>(record.targets[0]) == c ? 1.0 : 0.0));
  }
  float* dx = context.backward(dx_);
  head_.Backward(row, context.forward(x_), dz, dx, kernels::Store::kAssign, sink);
  // x = s h + noise with s = C / ||h|| where ||h|| > C: dh = s (dx - h <h, dx> / ||h||^2); else s = 1 and dh = dx.
  const float* h = context.forward(h_);
  float* dh = context.backward(dh_);
  const double scale = ClipScale(h, d, input.norm_bound);
  double along = 0, squares = 0;
  for (size_t k = 0; k < d; ++k) {
    along += static_cast<double>(h[k]) * dx[k];
    squares += static_cast<double>(h[k]) * h[k];
  }
  const double radial = scale < 1 ? along / squares : 0.0;
  // h = tanh(p): dp = dh (1 - h^2)
  for (size_t k = 0; k < d; ++k)
    dh[k] = static_cast<float>(scale * (dx[k] - h[k] * radial) * (1.0 - static_cast<double>(h[k]) * h[k]));
  std::memset(stack_.dlast(context), 0, context.rows * d * sizeof(float));
  pooler_.Backward(row, stack_.normed(context), dh, stack_.dnormed(context), kernels::Store::kAssign, sink);
  stack_.NormBackward(row, sink);
  stack_.Backward(context, sink);
  embedding_.Backward(context, record.inputs.data(), stack_.dinput(context), sink);
}

void Classifier::ReplayHead(const RecordContext& context, const Record&, FactorSink& sink) const {
  const size_t d = architecture_.width, classes = architecture_.head.num_classes;
  const float* dz = context.backward(dlogits_);
  if (sink.Wants(head_weight_)) {
    sink.Outer({.parameter = head_weight_,
                .first_row = 0,
                .dy_RN = dz,
                .lddy = classes,
                .x_RK = context.forward(x_),
                .ldx = d,
                .rows = 1,
                .n = classes,
                .k = d});
  }
  if (sink.Wants(head_bias_)) sink.Vector({.parameter = head_bias_, .first = 0, .g_N = dz, .n = classes});
}

}  // namespace wisp
