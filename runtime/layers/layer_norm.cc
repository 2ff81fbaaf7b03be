#include "runtime/layers/layer_norm.h"

namespace wisp {

LayerNorm::LayerNorm(const std::vector<ParameterSpec>& parameters, const std::string& name, float epsilon,
                     size_t max_rows, BufferPlan& plan)
    : gain_(FindParameter(parameters, name + ".gain")),
      bias_(FindParameter(parameters, name + ".bias")),
      d_(parameters[gain_].cols),
      epsilon_(epsilon),
      mean_(plan.forward.Reserve<float>(max_rows)),
      rstd_(plan.forward.Reserve<float>(max_rows)),
      dgain_(plan.backward.Reserve<float>(d_)),
      dbias_(plan.backward.Reserve<float>(d_)) {}

void LayerNorm::Forward(const RecordContext& context, const float* x, float* y) const {
  const Weights& weights = context.weights;
  context.ops().layer_norm_forward({.x_RD = x,
                                    .gain_D = weights.at(gain_),
                                    .bias_D = weights.at(bias_),
                                    .y_RD = y,
                                    .mean_R = context.forward(mean_),
                                    .rstd_R = context.forward(rstd_),
                                    .rows = context.rows,
                                    .d = d_,
                                    .epsilon = epsilon_});
}

void LayerNorm::Variance(const RecordContext& context, const float* var_x, float* var_y) const {
  context.ops().layer_norm_variance({.x_RD = var_x,
                                     .gain_D = context.weights.at(gain_),
                                     .rstd_R = context.forward(rstd_),
                                     .y_RD = var_y,
                                     .rows = context.rows,
                                     .d = d_});
}

void LayerNorm::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                         FactorSink& sink) const {
  float* dgain = context.backward(dgain_);
  float* dbias = context.backward(dbias_);
  context.ops().layer_norm_backward({.dy_RD = dy,
                                     .x_RD = x,
                                     .gain_D = context.weights.at(gain_),
                                     .mean_R = context.forward(mean_),
                                     .rstd_R = context.forward(rstd_),
                                     .dx_RD = dx,
                                     .dgain_D = dgain,
                                     .dbias_D = dbias,
                                     .rows = context.rows,
                                     .d = d_,
                                     .store = store});
  sink.Vector({.parameter = gain_, .first = 0, .g_N = dgain, .n = d_});
  sink.Vector({.parameter = bias_, .first = 0, .g_N = dbias, .n = d_});
}

}  // namespace wisp
