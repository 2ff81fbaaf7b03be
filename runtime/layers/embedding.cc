#include "runtime/layers/embedding.h"

#include <algorithm>

namespace wisp {

Embedding::Embedding(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, BufferPlan& plan)
    : table_(RequireParameter(parameters, ParameterRole::kItemTable)),
      positions_(FindParameter(parameters, ParameterRole::kPositionTable)),
      d_(architecture.width),
      max_length_(architecture.max_length),
      scale_(architecture.embedding_scale),
      align_(architecture.positions),
      dropout_(/*site=*/0, plan.max_rows() * architecture.width, plan),
      dx_(plan.backward.Reserve<float>(plan.max_rows() * d_)),
      position_ids_(plan.backward.Reserve<int32_t>(plan.max_rows())) {}

void Embedding::Forward(const RecordContext& context, const int32_t* ids, float* y) const {
  const Weights& weights = context.weights;
  const bool halves = weights.halves_at(table_) != nullptr || (positions_ && weights.halves_at(*positions_) != nullptr);
  for (size_t b = 0; b < context.records.num_records; ++b) {
    const size_t begin = context.records.begin(b), rows = context.records.size(b);
    const size_t first = FirstPosition(context.past + rows + context.after) + context.past;
    for (size_t t = 0; halves && t < rows; ++t) WidenRow(context, ids[begin + t], first + t, y + (begin + t) * d_);
    if (halves) continue;
    context.ops().embed_forward({.table_MD = weights.at(table_),
                                 .positions_TD = positions_ ? weights.at(*positions_) + first * d_ : nullptr,
                                 .ids_T = ids + begin,
                                 .y_TD = y + begin * d_,
                                 .rows = rows,
                                 .d = d_,
                                 .scale = scale_});
  }
  dropout_.Forward(context, context.dropout != nullptr ? context.dropout->embedding : 0, y, d_);
}

void Embedding::AddRow(const RecordContext& context, size_t table, size_t row, const Scaled& how, float* y) const {
  if (const kernels::Half* halves = context.weights.halves_at(table); halves != nullptr) {
    context.ops().scale_half({.x = halves + row * d_, .y = y, .n = d_, .a = how.factor, .store = how.store});
  } else {
    context.ops().scale(
        {.x = context.weights.at(table) + row * d_, .y = y, .n = d_, .a = how.factor, .store = how.store});
  }
}

void Embedding::WidenRow(const RecordContext& context, int32_t id, size_t position, float* y) const {
  if (id < 0) {
    std::fill_n(y, d_, 0.0f);
    return;
  }
  AddRow(context, table_, static_cast<size_t>(id), {.factor = scale_, .store = kernels::Store::kAssign}, y);
  if (positions_) AddRow(context, *positions_, position, {.factor = 1.0f, .store = kernels::Store::kAdd}, y);
}

void Embedding::Backward(const RecordContext& context, const int32_t* ids, const float* dy, FactorSink& sink) const {
  const bool wants_positions = positions_ && sink.Wants(*positions_);
  if (!wants_positions && !sink.Wants(table_)) return;
  const Segments& records = context.records;
  const float rate = context.dropout != nullptr ? context.dropout->embedding : 0;
  const float* dx = dropout_.Backward(context, rate, dy, context.backward(dx_), d_);
  int32_t* position_ids = context.backward(position_ids_);
  for (size_t b = 0; wants_positions && b < records.num_records; ++b) {
    const size_t begin = records.begin(b), rows = records.size(b);
    for (size_t t = 0; t < rows; ++t)
      position_ids[begin + t] = ids[begin + t] < 0 ? -1 : static_cast<int32_t>(FirstPosition(rows) + t);
  }
  RowsFactor factor{
      .parameter = table_, .ids_R = ids, .dx_RD = dx, .lddx = d_, .records = records, .d = d_, .scale = scale_};
  if (wants_positions) {
    RowsFactor positions = factor;
    positions.parameter = *positions_;
    positions.ids_R = position_ids;
    positions.scale = 1.0f;
    sink.Rows(positions);
  }
  if (sink.Wants(table_)) sink.Rows(factor);
}

void Embedding::Variance(const RecordContext& context, const int32_t* ids, float* var_y) const {
  const Weights& weights = context.weights;
  for (size_t t = 0; t < context.rows(); ++t) {
    float variance = 0;
    if (ids[t] >= 0) variance = scale_ * scale_ * weights.item_variances()[ids[t]] + weights.variance(positions_);
    std::fill_n(var_y + t * d_, d_, std::min(variance, kernels::kMaxVariance));
  }
}

}  // namespace wisp
