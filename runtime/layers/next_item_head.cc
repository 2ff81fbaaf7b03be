#include "runtime/layers/next_item_head.h"

#include <algorithm>
#include <cassert>

#include "runtime/layers/parts.h"
#include "runtime/layers/dequantised.h"

namespace wisp {

NextItemHead::NextItemHead(const Architecture& a, const std::vector<ParameterSpec>& parameters, BufferPlan& plan)
    : table_(*FindHeadTable(a, parameters)),
      d_(a.width),
      num_items_(a.num_items),
      max_rows_(plan.max_rows()),
      max_records_(plan.max_records),
      bias_(FindParameter(parameters, ParameterRole::kOutputBias)),
      is_host_(plan.is_host) {
  // The gradient of a cosine head's table passes its norm in blocks of kMostBlockRows.
  tile_ = is_host_ || a.head.temperature > 0 ? kHeadTile : std::min(CountRowLogits(num_items_), kDeviceHeadTile);
  const size_t tiles = (num_items_ + tile_ - 1) / tile_;
  stored_ = is_host_ ? CountRowLogits(num_items_) * max_rows_ * sizeof(float) <= kStoredLogitsBytes : tiles == 1;
  logits_ = plan.backward.Reserve<float>((stored_ ? tiles : 1) * tile_ * max_rows_);
  tile_max_ = plan.backward.Reserve<float>(stored_ && is_host_ ? tiles * max_rows_ : 0);
  for (Slot<float>* slot : {&max_, &sum_, &lse_, &target_logit_, &weight_})
    *slot = plan.backward.Reserve<float>(max_rows_);
  // With several records, emitted data must stay valid and the logits are kept (CountRecords).
  keeps_dbias_ = max_records_ > 1 && stored_ && bias_ && parameters[*bias_].trained;
  dbias_ = plan.backward.Reserve<float>((keeps_dbias_ ? tiles : 1) * tile_ * max_records_);
}

template <class F>
void NextItemHead::ForEachTile(F&& f) const {
  for (size_t index = 0; index * tile_ < num_items_; ++index) {
    const size_t first = index * tile_;
    f(Tile{index, first, std::min(tile_, num_items_ - first)});
  }
}

float* NextItemHead::TileLogits(const RecordContext& context, const Tile& tile) const {
  return context.backward(logits_) + (stored_ ? tile.index * tile_ * max_rows_ : 0);
}

float* NextItemHead::TileMax(const RecordContext& context, const Tile& tile) const {
  return context.backward(tile_max_) + tile.index * max_rows_;
}

const float* NextItemHead::Bias(const Weights& weights, size_t first) const {
  return bias_ ? weights.at(*bias_) + first : nullptr;
}

// Rows of a table that is not packed are converted to float32.
void NextItemHead::ComputeLogits(const RecordContext& context, const Tile& tile, const float* h, float* z) const {
  if (!is_host_) return ScoreRows(context.weights, h, context.rows(), tile, z);
  const bool in_place = context.weights.plan->head_packing() == HeadPacking::kNone;
  const float* packed = in_place ? PackedRows(context, table_, tile.first, tile.n) : PackedTile(context.weights, tile);
  Multiply(context.weights, packed, tile, h, context.rows(), z, tile.n);
}

const float* NextItemHead::PackedTile(const Weights& weights, const Tile& tile) const {
  return weights.packed_at(table_) + tile.first / kHeadTile * weights.plan->tile_stride();
}

void NextItemHead::Multiply(const Weights& weights, const float* packed, const Tile& tile, const float* h, size_t rows,
                            float* z, size_t ldz) const {
  weights.ops->linear_forward({.x_RK = h,
                               .ldx = d_,
                               .packed = packed,
                               .bias_N = Bias(weights, tile.first),
                               .y_RN = z,
                               .ldy = ldz,
                               .rows = rows,
                               .n = tile.n,
                               .k = d_,
                               .store = kernels::Store::kAssign});
}

void NextItemHead::Forward(const RecordContext& context, const float* h, const int32_t* targets, double* loss_B) const {
  assert(stored_ || !is_host_ || context.records.num_records == 1);
  const kernels::OpTable& ops = context.ops();
  const size_t rows = context.rows();
  float *max = context.backward(max_), *sum = context.backward(sum_);
  float *target_logit = context.backward(target_logit_), *weight = context.backward(weight_);
  ops.softmax_start({.target_R = targets,
                     .max_R = max,
                     .sum_R = sum,
                     .target_logit_R = target_logit,
                     .weight_R = weight,
                     .records = context.records,
                     .options_B = context.options_B});
  ForEachTile([&](const Tile& tile) {
    float* z = TileLogits(context, tile);
    ComputeLogits(context, tile, h, z);
    if (FormsAtOnce()) {
      return ops.softmax_gradient({.z_RN = z,
                                   .ldz = tile.n,
                                   .target_R = targets,
                                   .weight_R = weight,
                                   .max_R = max,
                                   .sum_R = sum,
                                   .target_logit_R = target_logit,
                                   .rows = rows,
                                   .n = tile.n});
    }
    ops.softmax_stats({.z_RN = z,
                       .ldz = tile.n,
                       .target_R = targets,
                       .max_R = max,
                       .sum_R = sum,
                       .target_logit_R = target_logit,
                       .rows = rows,
                       .n = tile.n,
                       .first = static_cast<int32_t>(tile.first),
                       .exp_RN = stored_ ? z : nullptr});
    if (stored_)
      ops.scale({.x = max, .y = TileMax(context, tile), .n = rows, .a = 1.0f, .store = kernels::Store::kAssign});
  });
  ops.cross_entropy_loss({.max_R = max,
                          .sum_R = sum,
                          .target_logit_R = target_logit,
                          .weight_R = weight,
                          .lse_R = context.backward(lse_),
                          .loss_B = loss_B,
                          .records = context.records,
                          .target = kernels::TargetTerm::kInSum});
}

// For a cosine head these are the rows of unit length.
const float* NextItemHead::BackwardRows(const RecordContext& context, const Tile& tile) const {
  const Weights& weights = context.weights;
  if (weights.unit_gain() != nullptr) return weights.unit_rows() + tile.first * d_;
  return FloatRows(context, table_, tile.first, tile.n);
}

RowNorm NextItemHead::GetRowNorm(const Weights& weights, const Tile& tile) const {
  if (weights.unit_gain() == nullptr) return {};
  return {.w_NK = weights.at(table_) + tile.first * d_,
          .rstd_N = weights.unit_rstd() + tile.first,
          .gain_K = weights.unit_gain()};
}

void NextItemHead::Emit(const RecordContext& context, const Tile& tile, const float* h, const float* dz,
                        FactorSink& sink) const {
  if (sink.Wants(table_)) {
    sink.Outer({.parameter = table_,
                .first_row = tile.first,
                .dy_RN = dz,
                .lddy = tile.n,
                .x_RK = h,
                .ldx = d_,
                .records = context.records,
                .n = tile.n,
                .k = d_,
                .row_norm = GetRowNorm(context.weights, tile)});
  }
  if (!bias_ || !sink.Wants(*bias_)) return;
  float* dbias = context.backward(dbias_) + (keeps_dbias_ ? tile.first * max_records_ : 0);
  context.ops().column_sum({.x_RN = dz,
                            .ldx = tile.n,
                            .out_N = dbias,
                            .rows = context.rows(),
                            .n = tile.n,
                            .scale = 1.0f,
                            .store = kernels::Store::kAssign,
                            .records = context.records});
  sink.Vector({.parameter = *bias_, .first = tile.first, .g_BN = dbias, .n = tile.n});
}

void NextItemHead::Backward(const RecordContext& context, const float* h, const int32_t* targets, float* dh,
                            FactorSink& sink) const {
  const kernels::OpTable& ops = context.ops();
  ForEachTile([&](const Tile& tile) {
    float* z = TileLogits(context, tile);
    if (!stored_) ComputeLogits(context, tile, h, z);
    if (!FormsAtOnce()) {
      ops.cross_entropy_gradient({.z_RN = z,
                                  .ldz = tile.n,
                                  .target_R = targets,
                                  .lse_R = context.backward(lse_),
                                  .weight_R = context.backward(weight_),
                                  .rows = context.rows(),
                                  .n = tile.n,
                                  .first = static_cast<int32_t>(tile.first),
                                  .max_R = stored_ ? TileMax(context, tile) : nullptr});
    }
    Emit(context, tile, h, z, sink);
    ops.linear_backward_input({.dy_RN = z,
                               .lddy = tile.n,
                               .w_NK = BackwardRows(context, tile),
                               .ldw = d_,
                               .dx_RK = dh,
                               .lddx = d_,
                               .rows = context.rows(),
                               .n = tile.n,
                               .k = d_,
                               .store = tile.index == 0 ? kernels::Store::kAssign : kernels::Store::kAdd});
  });
}

void NextItemHead::Replay(const RecordContext& context, const float* h, const int32_t* targets,
                          FactorSink& sink) const {
  ForEachTile([&](const Tile& tile) {
    float* z = TileLogits(context, tile);
    if (!stored_) {
      ComputeLogits(context, tile, h, z);
      context.ops().cross_entropy_gradient({.z_RN = z,
                                            .ldz = tile.n,
                                            .target_R = targets,
                                            .lse_R = context.backward(lse_),
                                            .weight_R = context.backward(weight_),
                                            .rows = context.rows(),
                                            .n = tile.n,
                                            .first = static_cast<int32_t>(tile.first)});
    }
    Emit(context, tile, h, z, sink);
  });
}

void NextItemHead::Score(const RecordContext& context, const float* h, float* scores) const {
  ScoreTogether(context, h, 1, scores);
}

void NextItemHead::ScoreTogether(const RecordContext& context, const float* h, size_t rows, float* scores) const {
  if (context.ops().score_tiles != nullptr) return ScoreRows(context.weights, h, rows, scores);
  const double adds_of_tile = static_cast<double>(rows * kHeadTile * d_) * (rows == 1 ? kLoneRowAdds : 1);
  ForEachRange(context.helpers, CountRowLogits(num_items_) / kHeadTile, adds_of_tile, [&](size_t begin, size_t end) {
    ScoreItems(context.weights, h, rows, {begin * kHeadTile, std::min(end * kHeadTile, num_items_)}, scores);
  });
}

// Scores items.n items for some rows of h, reading the table where it lies.
void NextItemHead::ScoreInPlace(const Weights& weights, const float* h, size_t rows, const Tile& items, float* scores,
                                size_t ldy) const {
  if (const kernels::PanelMatrix panels = weights.source.panels(table_); panels.data != nullptr) {
    return weights.ops->multiply_panels({.w = panels,
                                         .first = items.first,
                                         .x_RK = h,
                                         .ldx = d_,
                                         .bias_N = Bias(weights, items.first),
                                         .y_RN = scores,
                                         .ldy = ldy,
                                         .rows = rows,
                                         .n = items.n,
                                         .k = d_,
                                         .store = kernels::Store::kAssign});
  }
  for (size_t r = 0; r < rows; ++r) {
    weights.ops->multiply_half({.w_NK = weights.halves_at(table_) + items.first * d_,
                                .ldw = d_,
                                .x_K = h + r * d_,
                                .bias_N = Bias(weights, items.first),
                                .y_N = scores + r * ldy,
                                .n = items.n,
                                .k = d_});
  }
}

// One row reads a table that is not packed in one pass. Several rows share each tile of it while it is in the cache.
void NextItemHead::ScoreItems(const Weights& weights, const float* h, size_t rows, Items items, float* scores) const {
  const bool in_place = weights.plan->head_packing() == HeadPacking::kNone;
  const size_t step = in_place && rows == 1 ? items.end - items.first : kHeadTile;
  for (size_t first = items.first; first < items.end; first += step) {
    const Tile tile{first / kHeadTile, first, std::min(step, items.end - first)};
    in_place ? ScoreInPlace(weights, h, rows, tile, scores + first, num_items_)
             : Multiply(weights, PackedTile(weights, tile), tile, h, rows, scores + first, num_items_);
  }
}

void NextItemHead::ScoreRows(const Weights& weights, const float* h, size_t rows, float* scores) const {
  ScoreRows(weights, h, rows, {.index = 0, .first = 0, .n = num_items_}, scores);
}

void NextItemHead::ScoreRows(const Weights& weights, const float* h, size_t rows, const Tile& items,
                             float* scores) const {
  if (weights.plan->head_packing() == HeadPacking::kNone) return ScoreInPlace(weights, h, rows, items, scores, items.n);
  weights.ops->score_tiles({.x_RK = h,
                            .packed = PackedTile(weights, items),
                            .tile = kHeadTile,
                            .tile_stride = weights.plan->tile_stride(),
                            .bias_N = Bias(weights, items.first),
                            .y_RN = scores,
                            .rows = rows,
                            .n = items.n,
                            .k = d_});
}

void NextItemHead::ScoreTile(const Weights& weights, const float* h, size_t rows, size_t tile, float* scores) const {
  const size_t first = tile * kHeadTile, n = std::min(kHeadTile, num_items_ - first);
  if (weights.plan->head_packing() == HeadPacking::kNone)
    return ScoreInPlace(weights, h, rows, {tile, first, n}, scores, n);
  const Tile which{tile, first, n};
  Multiply(weights, PackedTile(weights, which), which, h, rows, scores, n);
}

}  // namespace wisp
