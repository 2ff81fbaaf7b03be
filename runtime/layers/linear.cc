#include "runtime/layers/linear.h"

namespace wisp {

Linear::Linear(const std::vector<ParameterSpec>& parameters, const std::string& name, BufferPlan& plan)
    : weight_(FindParameter(parameters, name + ".weight")),
      bias_(FindParameter(parameters, name + ".bias")),
      n_(parameters[weight_].rows),
      k_(parameters[weight_].cols),
      num_squared_(n_ - SquaredFirstRow(parameters[weight_])),
      dbias_(plan.backward.Reserve<float>(n_)) {}

void Linear::Forward(const RecordContext& context, const float* x, float* y, size_t rows) const {
  const Weights& weights = context.weights;
  weights.ops->linear_forward({.x_RK = x,
                               .ldx = k_,
                               .packed = weights.packed_at(weight_),
                               .bias_N = weights.at(bias_),
                               .y_RN = y,
                               .ldy = n_,
                               .rows = rows,
                               .n = n_,
                               .k = k_,
                               .store = kernels::Store::kAssign});
}

// Algorithms, section 3: var_out = var_in (W o W)^T + s^2 sum_k (mean_k^2 + var_k).
void Linear::Variance(const RecordContext& context, const float* x, const float* var_x, float* var_y, size_t n) const {
  const Weights& weights = context.weights;
  const size_t rows = context.rows;
  if (n == 0) n = num_squared_;
  weights.ops->linear_forward({.x_RK = var_x,
                               .ldx = k_,
                               .packed = weights.packed_squares_at(weight_),
                               .bias_N = nullptr,
                               .y_RN = var_y,
                               .ldy = n,
                               .rows = rows,
                               .n = n,
                               .k = k_,
                               .store = kernels::Store::kAssign});
  weights.ops->linear_variance({.mean_RK = x,
                                .ldmean = k_,
                                .variance_RK = var_x,
                                .ldvariance = k_,
                                .y_RN = var_y,
                                .ldy = n,
                                .rows = rows,
                                .n = n,
                                .k = k_,
                                .weight_variance = weights.variance(weight_),
                                .bias_variance = weights.variance(bias_)});
}

void Linear::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                      FactorSink& sink) const {
  const kernels::OpTable& ops = context.ops();
  const size_t rows = context.rows;
  float* dbias = context.backward(dbias_);
  ops.column_sum(
      {.x_RN = dy, .ldx = n_, .out_N = dbias, .rows = rows, .n = n_, .scale = 1.0f, .store = kernels::Store::kAssign});
  sink.Outer({.parameter = weight_,
              .first_row = 0,
              .dy_RN = dy,
              .lddy = n_,
              .x_RK = x,
              .ldx = k_,
              .rows = rows,
              .n = n_,
              .k = k_});
  sink.Vector({.parameter = bias_, .first = 0, .g_N = dbias, .n = n_});
  ops.linear_backward_input({.dy_RN = dy,
                             .lddy = n_,
                             .w_NK = context.weights.at(weight_),
                             .ldw = k_,
                             .dx_RK = dx,
                             .lddx = k_,
                             .rows = rows,
                             .n = n_,
                             .k = k_,
                             .store = store});
}

}  // namespace wisp
