#include "runtime/layers/embedding.h"

namespace wisp {

Embedding::Embedding(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, BufferPlan& plan)
    : table_(RequireParameter(parameters, ParameterRole::kItemTable)),
      positions_(FindParameter(parameters, ParameterRole::kPositionTable)),
      types_(FindParameter(parameters, ParameterRole::kTypeTable)),
      d_(architecture.width),
      max_length_(architecture.max_length),
      scale_(architecture.embedding_scale),
      align_(architecture.positions),
      dropout_(/*site=*/0, plan.max_rows() * architecture.width, plan),
      dx_(plan.backward.Reserve<float>(plan.max_rows() * d_)),
      // On a device all records are looked up together, in the forward pass too.
      position_ids_is_forward_(!plan.is_host),
      position_ids_((plan.is_host ? plan.backward : plan.forward).Reserve<int32_t>(plan.max_rows())) {
  const size_t size = plan.max_rows() * d_;
  if (types_) of_types_ = plan.forward.Reserve<float>(size);
  if (!architecture.embedding_norm_epsilon) return;
  norm_.emplace(parameters,
                NormParameters{.gain = RequireParameter(parameters, ParameterRole::kEmbeddingNormGain),
                               .bias = FindParameter(parameters, ParameterRole::kEmbeddingNormBias),
                               .epsilon = *architecture.embedding_norm_epsilon},
                plan.max_rows(), plan);
  sum_ = plan.forward.Reserve<float>(size);
  dsum_ = plan.backward.Reserve<float>(size);
}

// The position of every row of all records; -1 for padding.
const int32_t* Embedding::PositionIds(const RecordContext& context, const int32_t* ids) const {
  int32_t* position_ids = position_ids_is_forward_ ? context.forward(position_ids_) : context.backward(position_ids_);
  context.ops().position_ids({.ids_R = ids,
                              .position_R = position_ids,
                              .records = context.records,
                              .end = align_ == PositionAlignment::kEnd ? max_length_ : 0});
  return position_ids;
}

void Embedding::LookUpTogether(const RecordContext& context, const int32_t* ids, float* y) const {
  const Weights& weights = context.weights;
  context.ops().embed_forward({.table_MD = weights.at(table_),
                               .positions_TD = positions_ ? weights.at(*positions_) : nullptr,
                               .ids_T = ids,
                               .y_TD = y,
                               .rows = context.rows(),
                               .d = d_,
                               .scale = scale_,
                               .position_T = positions_ ? PositionIds(context, ids) : nullptr});
}

void Embedding::Forward(const RecordContext& context, const int32_t* ids, float* y) const {
  const Weights& weights = context.weights;
  const bool panels = weights.source.panels(table_).data != nullptr;
  const bool halves = weights.halves_at(table_) != nullptr || (positions_ && weights.halves_at(*positions_) != nullptr);
  float* sum = norm_ ? context.forward(sum_) : y;
  context.records.num_records > 1 && context.ops().takes_records && !halves && !panels
      ? LookUpTogether(context, ids, sum)
      : LookUpEach(context, ids, halves, sum);
  if (types_) AddTypes(context, sum);
  if (norm_) norm_->Forward(context, sum, y);
  dropout_.Forward(context, context.dropout != nullptr ? context.dropout->embedding : 0, y, d_);
}

void Embedding::LookUpEach(const RecordContext& context, const int32_t* ids, bool halves, float* y) const {
  const Weights& weights = context.weights;
  for (size_t b = 0; b < context.records.num_records; ++b) {
    const size_t begin = context.records.begin(b), rows = context.records.size(b);
    const size_t past = context.past_of(b), first = FirstPosition(past + rows + context.after) + past;
    const kernels::Half* half_positions = positions_ ? weights.halves_at(*positions_) : nullptr;
    const bool float_positions = positions_ && half_positions == nullptr;
    if (const kernels::PanelMatrix table = weights.source.panels(table_); table.data != nullptr) {
      context.ops().embed_panels(
          {.table = table,
           .positions_TD = float_positions ? weights.at(*positions_) + first * d_ : nullptr,
           .half_positions_TD = half_positions != nullptr ? half_positions + first * d_ : nullptr,
           .ids_T = ids + begin,
           .y_TD = y + begin * d_,
           .rows = rows,
           .d = d_,
           .scale = scale_});
      continue;
    }
    if (halves) {
      context.ops().embed_half({.table_MD = weights.halves_at(table_) == nullptr ? weights.at(table_) : nullptr,
                                .half_table_MD = weights.halves_at(table_),
                                .positions_TD = float_positions ? weights.at(*positions_) + first * d_ : nullptr,
                                .half_positions_TD = half_positions != nullptr ? half_positions + first * d_ : nullptr,
                                .ids_T = ids + begin,
                                .y_TD = y + begin * d_,
                                .rows = rows,
                                .d = d_,
                                .scale = scale_});
      continue;
    }
    context.ops().embed_forward({.table_MD = weights.at(table_),
                                 .positions_TD = positions_ ? weights.at(*positions_) + first * d_ : nullptr,
                                 .ids_T = ids + begin,
                                 .y_TD = y + begin * d_,
                                 .rows = rows,
                                 .d = d_,
                                 .scale = scale_});
  }
}

void Embedding::AddTypes(const RecordContext& context, float* y) const {
  const Weights& weights = context.weights;
  float* of_types = context.forward(of_types_);
  if (const kernels::Half* halves = weights.halves_at(*types_)) {
    context.ops().embed_half({.table_MD = nullptr,
                              .half_table_MD = halves,
                              .positions_TD = nullptr,
                              .half_positions_TD = nullptr,
                              .ids_T = context.type_R,
                              .y_TD = of_types,
                              .rows = context.rows(),
                              .d = d_,
                              .scale = 1.0f});
  } else {
    context.ops().embed_forward({.table_MD = weights.at(*types_),
                                 .positions_TD = nullptr,
                                 .ids_T = context.type_R,
                                 .y_TD = of_types,
                                 .rows = context.rows(),
                                 .d = d_,
                                 .scale = 1.0f});
  }
  context.ops().scale({.x = of_types, .y = y, .n = context.rows() * d_, .a = 1.0f, .store = kernels::Store::kAdd});
}

const float* Embedding::NormBackward(const RecordContext& context, const float* dy, FactorSink& sink) const {
  if (!norm_) return dy;
  float* dsum = context.backward(dsum_);
  norm_->Backward(context, context.forward(sum_), dy, dsum, kernels::Store::kAssign, sink);
  return dsum;
}

bool Embedding::Wanted(const FactorSink& sink) const {
  return sink.Wants(table_) || (positions_ && sink.Wants(*positions_)) || (types_ && sink.Wants(*types_)) ||
         (norm_ && norm_->Wanted(sink));
}

void Embedding::Backward(const RecordContext& context, const int32_t* ids, const float* dy, FactorSink& sink) const {
  const bool wants_positions = positions_ && sink.Wants(*positions_), wants_types = types_ && sink.Wants(*types_);
  const Segments& records = context.records;
  const float rate = context.dropout != nullptr ? context.dropout->embedding : 0;
  const float* dx = NormBackward(context, dropout_.Backward(context, rate, dy, context.backward(dx_), d_), sink);
  RowsFactor factor{
      .parameter = table_, .ids_R = ids, .dx_RD = dx, .lddx = d_, .records = records, .d = d_, .scale = scale_};
  if (wants_positions) {
    RowsFactor positions = factor;
    positions.parameter = *positions_;
    positions.ids_R = PositionIds(context, ids);
    positions.scale = 1.0f;
    sink.Rows(positions);
  }
  if (wants_types) {
    RowsFactor types = factor;
    types.parameter = *types_;
    types.ids_R = context.type_R;
    types.scale = 1.0f;
    sink.Rows(types);
  }
  if (sink.Wants(table_)) sink.Rows(factor);
}

void Embedding::Variance(const RecordContext& context, const int32_t* ids, float* var_y) const {
  const Weights& weights = context.weights;
  context.ops().embed_variance({.variance_M = weights.item_variances(),
                                .ids_T = ids,
                                .y_TD = var_y,
                                .rows = context.rows(),
                                .d = d_,
                                .scale = scale_,
                                .position_variance = weights.variance(positions_)});
}

}  // namespace wisp
