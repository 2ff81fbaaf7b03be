#include "runtime/layers/norm.h"

namespace wisp {

NormLayer::NormLayer(const std::vector<ParameterSpec>& parameters, const NormParameters& which, size_t max_rows,
                     BufferPlan& plan)
    : which_(which),
      d_(parameters[which.gain].cols),
      mean_(plan.forward.Reserve<float>(which.bias ? max_rows : 0)),
      rstd_(plan.forward.Reserve<float>(max_rows)),
      dgain_(plan.ReserveBackward<float>(plan.max_records * d_)),
      dbias_(plan.ReserveBackward<float>(which.bias ? plan.max_records * d_ : 0)) {}

void NormLayer::Forward(const RecordContext& context, const float* x, float* y) const {
  const Weights& weights = context.weights;
  if (is_rms()) {
    context.ops().rms_norm_forward({.x_RD = x,
                                    .gain_D = weights.at(which_.gain),
                                    .y_RD = y,
                                    .rstd_R = context.forward(rstd_),
                                    .rows = context.rows(),
                                    .d = d_,
                                    .epsilon = which_.epsilon});
    return;
  }
  context.ops().layer_norm_forward({.x_RD = x,
                                    .gain_D = weights.at(which_.gain),
                                    .bias_D = weights.at(which_.bias),
                                    .y_RD = y,
                                    .mean_R = context.forward(mean_),
                                    .rstd_R = context.forward(rstd_),
                                    .rows = context.rows(),
                                    .d = d_,
                                    .epsilon = which_.epsilon});
}

void NormLayer::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                         FactorSink& sink) const {
  float *dgain = context.backward(dgain_), *dbias = context.backward(dbias_);
  if (is_rms()) {
    context.ops().rms_norm_backward({.dy_RD = dy,
                                     .x_RD = x,
                                     .gain_D = context.weights.at(which_.gain),
                                     .rstd_R = context.forward(rstd_),
                                     .dx_RD = dx,
                                     .dgain_D = dgain,
                                     .rows = context.rows(),
                                     .d = d_,
                                     .store = store,
                                     .records = context.records});
  } else {
    context.ops().layer_norm_backward({.dy_RD = dy,
                                       .x_RD = x,
                                       .gain_D = context.weights.at(which_.gain),
                                       .mean_R = context.forward(mean_),
                                       .rstd_R = context.forward(rstd_),
                                       .dx_RD = dx,
                                       .dgain_D = dgain,
                                       .dbias_D = dbias,
                                       .rows = context.rows(),
                                       .d = d_,
                                       .store = store,
                                       .records = context.records});
  }
  if (sink.Wants(which_.gain)) sink.Vector({.parameter = which_.gain, .first = 0, .g_BN = dgain, .n = d_});
  if (which_.bias && sink.Wants(*which_.bias))
    sink.Vector({.parameter = *which_.bias, .first = 0, .g_BN = dbias, .n = d_});
}

// The row's mean, which a layer norm subtracts, is treated as a constant. So both kinds scale every entry alike.
void NormLayer::Variance(const RecordContext& context, const float* var_x, float* var_y) const {
  context.ops().layer_norm_variance({.x_RD = var_x,
                                     .gain_D = context.weights.at(which_.gain),
                                     .rstd_R = context.forward(rstd_),
                                     .y_RD = var_y,
                                     .rows = context.rows(),
                                     .d = d_});
}

}  // namespace wisp
