#include "runtime/layers/embedding.h"

#include <algorithm>

namespace wisp {

Embedding::Embedding(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, BufferPlan& plan)
    : table_(FindParameter(parameters, "item_embedding")),
      positions_(FindParameter(parameters, "position_embedding")),
      d_(architecture.width),
      max_length_(architecture.max_length),
      scale_(architecture.embedding_scale),
      align_(architecture.positions),
      dropout_(/*site=*/0, size_t{architecture.max_length} * architecture.width, plan),
      dx_(plan.backward.Reserve<float>(max_length_ * d_)),
      position_ids_(plan.backward.Reserve<int32_t>(max_length_)) {}

void Embedding::Forward(const RecordContext& context, const int32_t* ids, float* y) const {
  const Weights& weights = context.weights;
  context.ops().embed_forward({.table_MD = weights.at(table_),
                               .positions_TD = weights.at(positions_) + (FirstPosition(context.past + context.rows) + context.past) * d_,
                               .ids_T = ids, .y_TD = y, .rows = context.rows, .d = d_, .scale = scale_});
  dropout_.Forward(context, context.dropout != nullptr ? context.dropout->embedding : 0, y, context.rows * d_);
}

void Embedding::Variance(const RecordContext& context, const int32_t* ids, float* var_y) const {
  const Weights& weights = context.weights;
  for (size_t t = 0; t < context.rows; ++t) {
    float variance = 0;
    if (ids[t] >= 0) variance = scale_ * scale_ * weights.item_variances()[ids[t]] + weights.variance(positions_);
    std::fill_n(var_y + t * d_, d_, std::min(variance, kernels::kMaxVariance));
  }
}

void Embedding::Backward(const RecordContext& context, const int32_t* ids, const float* dy, FactorSink& sink) const {
  const size_t rows = context.rows;
  const float rate = context.dropout != nullptr ? context.dropout->embedding : 0;
  const float* dx = dropout_.Backward(context, rate, dy, context.backward(dx_), rows * d_);
  int32_t* position_ids = context.backward(position_ids_);
  for (size_t t = 0; t < rows; ++t) position_ids[t] = ids[t] < 0 ? -1 : static_cast<int32_t>(FirstPosition(rows) + t);
  sink.Rows({.parameter = positions_, .ids_R = position_ids, .dx_RD = dx, .lddx = d_, .rows = rows, .d = d_, .scale = 1.0f});
  sink.Rows({.parameter = table_, .ids_R = ids, .dx_RD = dx, .lddx = d_, .rows = rows, .d = d_, .scale = scale_});
}

}  // namespace wisp
