#include "runtime/layers/attention.h"

#include <algorithm>
#include <cmath>

#include "runtime/layers/parts.h"

namespace wisp {
namespace {

kernels::RotaryPairs GetPairs(const RotarySpec& spec) {
  return spec.interleaved ? kernels::RotaryPairs::kInterleaved : kernels::RotaryPairs::kHalves;
}

}  // namespace

Attention::Attention(const Architecture& a, const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
                     uint32_t index, uint64_t site, BufferPlan& plan)
    : spec_(a.blocks[index].attention),
      block_(index),
      queries_width_(spec_.queries_width()),
      keys_width_(spec_.keys_width()),
      max_length_(plan.max_record_rows),
      mask_(a.attend == Attend::kCausal ? kernels::AttentionMask::kCausal : kernels::AttentionMask::kFull),
      scale_(1.0f / std::sqrt(static_cast<float>(spec_.head_width))),
      qkv_(parameters, FindLinear(a, parameters, ParameterRole::kQkvWeight, ParameterRole::kQkvBias, index), plan,
           queries_width_),
      out_(parameters,
           FindLinear(a, parameters, ParameterRole::kAttentionOutWeight, ParameterRole::kAttentionOutBias, index),
           plan),
      dropout_(site, size_t{spec_.num_heads} * plan.max_record_rows * plan.max_rows(), plan),
      cached_(plan.use == GraphUse::kInference),
      kept_(cached_ && ops.keep_keys != nullptr) {
  const size_t t = plan.max_record_rows, rows = plan.max_rows(), stacked = queries_width_ + 2 * keys_width_;
  if (a.re_attention == ReAttention::kOn)
    variance_width_ = index + 1 == a.blocks.size() ? keys_width_ : 2 * keys_width_;
  projected_ = plan.ReserveInTurn<float>(rows * (cached_ ? queries_width_ : stacked));
  mixed_ = plan.ReserveInTurn<float>(rows * queries_width_);
  lse_ = plan.ReserveInTurn<float>(spec_.num_heads * rows);
  const auto pass = cached_ ? kernels::AttentionPass::kForward : kernels::AttentionPass::kBackward;
  scratch_ = plan.ReserveInTurn<float>(ops.attention_scratch_size(pass, t, spec_.head_width));
  if (cached_) cache_index_ = plan.cache.Reserve({.keys_and_values = 2 * keys_width_, .variances = variance_width_});
  if (kept_) new_keys_ = plan.ReserveInTurn<float>(rows * 2 * keys_width_);
  if (variance_width_ > 0) {
    if (!cached_) key_value_variance_ = plan.forward.Reserve<float>(rows * variance_width_);
    mixed_variance_ = plan.ReserveInTurn<float>(rows * queries_width_);
  }
  dprojected_ = plan.ReserveBackward<float>(rows * stacked);
  dmixed_ = plan.ReserveBackward<float>(rows * queries_width_);
}

Attention::Projected Attention::Of(const RecordContext& context) const {
  float* projected = context.forward(projected_);
  if (!cached_) {
    const size_t stacked = queries_width_ + 2 * keys_width_;
    float* k = projected + queries_width_;
    return {.q = projected, .k = k, .v = k + keys_width_, .ldq = stacked, .ldkv = stacked};
  }
  float* k = kept_ ? context.forward(new_keys_) : context.cache->rows(cache_index_) + context.past * 2 * keys_width_;
  return {.q = projected, .k = k, .v = k + keys_width_, .ldq = queries_width_, .ldkv = 2 * keys_width_};
}

const KeyValueCache* Attention::GetCache(const RecordContext& context, size_t b) const {
  if (context.text_B != nullptr) return context.text_B[b].cache;
  return cached_ && context.records.num_records == 1 ? context.cache : nullptr;
}

void Attention::Project(const RecordContext& context, const float* x, size_t queries) const {
  const size_t rows = context.rows();
  Projected p = Of(context);
  p.first_query = rows - queries;
  qkv_.Prepare(context, x, rows);
  qkv_.ForwardQueries(context, x, {.y = p.q, .ldy = p.ldq}, {.first = p.first_query, .count = queries});
  qkv_.ForwardKeys(context, x, {.y = p.k, .ldy = p.ldkv}, rows);
  if (spec_.rotary.width > 0) Rotate(context, p, kernels::Rotation::kForward);
  if (kept_) KeepNewKeys(context, p);
}

void Attention::KeepNewKeys(const RecordContext& context, const Projected& p) const {
  for (size_t b = 0; b < context.records.num_records; ++b) {
    const KeyValueCache* const cache = GetCache(context, b);
    if (cache == nullptr) continue;
    const size_t begin = context.records.begin(b) * p.ldkv;
    context.ops().keep_keys({.k = p.k + begin,
                             .v = p.v + begin,
                             .ldkv = p.ldkv,
                             .rows = context.records.size(b),
                             .heads = spec_.num_kv_heads,
                             .head_width = spec_.head_width,
                             .position = context.past_of(b),
                             .kept = cache->keys_and_values(cache_index_)});
  }
}

template <class F>
void Attention::ForScopes(const RecordContext& context, const F& f) const {
  const Segments& records = context.records;
  if (records.num_records > 1 && context.ops().takes_records) return f({.rows = records.rows, .all = true});
  for (size_t b = 0; b < records.num_records; ++b) f({.b = b, .begin = records.begin(b), .rows = records.size(b)});
}

// Threads share the buffers of a pass, except for this scratch space.
float* Attention::CountScratch(const RecordContext& context, size_t range) const {
  return range == 0 ? context.forward(scratch_) : context.helpers->buffers[range - 1].forward[scratch_];
}

double Attention::ComputeCost(size_t queries, size_t keys) const {
  return 2.0 * static_cast<double>(queries * queries_width_ * keys) * (queries == 1 ? kLoneRowAdds : 1);
}

// Each text attends only to itself, so texts are shared among as many threads as pays.
void Attention::MixTexts(const RecordContext& context) const {
  const Segments& records = context.records;
  double adds = 0;
  for (size_t b = 0; b < records.num_records; ++b)
    adds += ComputeCost(records.size(b), context.text_B[b].past + records.size(b));
  const size_t ranges = std::min(records.num_records, ThreadsFor(context.helpers, adds));
  const auto mix = [&](size_t range) {
    const size_t end = records.num_records * (range + 1) / ranges;
    for (size_t b = records.num_records * range / ranges; b < end; ++b) {
      const Scope scope{.b = b, .begin = records.begin(b), .rows = records.size(b)};
      Mix(context, scope, all_heads(), CountScratch(context, range));
    }
  };
  ranges == 1 ? mix(0) : context.helpers->team.Run(ranges, mix);
}

void Attention::MixHeads(const RecordContext& context) const {
  const Heads all = all_heads();
  const size_t rows = context.rows(), queries = context.wanted_rows();
  const size_t threads = ThreadsFor(context.helpers, ComputeCost(queries, context.past + rows));
  const size_t ranges = wants_variance() || variance_width_ > 0 ? 1 : std::min(all.count, threads);
  const auto mix = [&](size_t range) {
    const size_t first = all.count * range / ranges, end = all.count * (range + 1) / ranges;
    Mix(context, {.rows = rows}, {.first = first, .count = end - first}, CountScratch(context, range));
  };
  ranges == 1 ? mix(0) : context.helpers->team.Run(ranges, mix);
}

void Attention::Attend(const RecordContext& context, float* y) const {
  if (context.text_B != nullptr) {
    MixTexts(context);
  } else if (context.helpers != nullptr && context.records.num_records == 1) {
    MixHeads(context);
  } else {
    ForScopes(context, [&](const Scope& scope) { Mix(context, scope, all_heads(), context.forward(scratch_)); });
  }
  out_.Forward(context, context.forward(mixed_), y, context.wanted_rows());
}

void Attention::Rotate(const RecordContext& context, const Projected& p, kernels::Rotation rotation) const {
  kernels::RotaryArgs<> turn{.cos_TP = context.weights.rotary_cos(block_),
                             .sin_TP = context.weights.rotary_sin(block_),
                             .head_width = spec_.head_width,
                             .rotated = spec_.rotary.width,
                             .first_position = 0,
                             .pairs = GetPairs(spec_.rotary),
                             .rotation = rotation};
  ForScopes(context, [&](const Scope& scope) {
    if (scope.all) turn.records = context.records;
    const size_t past = context.past_of(scope.b);
    turn.rows = scope.rows - p.first_query, turn.first_position = past + p.first_query;
    turn.x_RD = p.q + (scope.begin + p.first_query) * p.ldq, turn.ldx = p.ldq, turn.heads = spec_.num_heads;
    context.ops().rotary(turn);
    turn.rows = scope.rows, turn.first_position = past;
    turn.x_RD = p.k + scope.begin * p.ldkv, turn.ldx = p.ldkv, turn.heads = spec_.num_kv_heads;
    context.ops().rotary(turn);
  });
}

// The gradient always lies in one stacked matrix, because only training comes here. There are no past positions.
void Attention::RotateBack(const RecordContext& context, float* dqkv) const {
  const size_t stacked = queries_width_ + 2 * keys_width_;
  float* dk = dqkv + queries_width_;
  Rotate(context, {.q = dqkv, .k = dk, .v = dk + keys_width_, .ldq = stacked, .ldkv = stacked},
         kernels::Rotation::kInverse);
}

template <class Args>
void Attention::Describe(const RecordContext& context, const Scope& scope, Args& args) const {
  args.heads = spec_.num_heads;
  args.kv_heads = spec_.num_kv_heads;
  args.head_width = spec_.head_width;
  args.first_key = scope.all ? 0 : context.first_valid_of(scope.b);
  args.scale = scale_;
  args.mask = mask_;
  args.keep_scale = KeepScale(Rate(context));
  args.key_variance = KeyVariances(context, scope.begin);
  args.ldvariance = variance_width_;
  args.slope_H = context.weights.slopes(block_);
  args.window = spec_.window;
  if (!scope.all) return;
  args.records = context.records;
  args.first_key_B = context.first_valid_B;
  args.keep_row = keep_row();
}

// With several records, each mask has more space than it needs. The bits of a mask do not depend on that space.
const uint8_t* Attention::DrawKeep(const RecordContext& context, const Scope& scope, size_t queries,
                                   size_t keys) const {
  const float rate = Rate(context);
  if (scope.all) return dropout_.DrawAll(context, rate, keep_row());
  return dropout_.Draw(context, rate, scope.b, FirstKeep(scope.begin), spec_.num_heads * queries * keys);
}

// With several records, all rows of each are wanted. Only growing texts (GrowingText) have past positions.
void Attention::Mix(const RecordContext& context, const Scope& scope, const Heads& heads, float* scratch) const {
  const size_t rows = scope.rows, t = context.wanted == 0 ? rows : context.wanted;
  const size_t keys = context.past_of(scope.b) + rows + (mask_ == kernels::AttentionMask::kFull ? context.after : 0);
  const Projected p = Of(context);
  const KeyValueCache* const cache = GetCache(context, scope.b);
  // The row of the record's first key, relative to the first row of this pass. Past positions lie before that row.
  const auto row = static_cast<ptrdiff_t>(scope.begin) - static_cast<ptrdiff_t>(cache == nullptr ? 0 : context.past);
  // The first of the query heads that read these key heads.
  const size_t group = spec_.num_heads / spec_.num_kv_heads, query_head = heads.first * group;
  const size_t at = query_head * spec_.head_width, key_at = heads.first * spec_.head_width;
  kernels::AttentionForwardArgs<> args{.q = p.q + (scope.begin + rows - t) * p.ldq + at,
                                       .k = nullptr,
                                       .v = nullptr,
                                       .ldq = p.ldq,
                                       .ldkv = p.ldkv,
                                       .out = context.forward(mixed_) + scope.begin * queries_width_ + at,
                                       .ldout = queries_width_,
                                       .lse_HQ = context.forward(lse_) + scope.begin * spec_.num_heads + query_head * t,
                                       .keep_HQT = DrawKeep(context, scope, t, keys),
                                       .scratch = scratch,
                                       .num_queries = t,
                                       .num_keys = keys};
  Describe(context, scope, args);
  args.heads = heads.count * group;
  args.kv_heads = heads.count;
  if (args.slope_H != nullptr) args.slope_H += query_head;
  if (wants_variance()) {
    args.value_variance = args.key_variance + keys_width_;
    args.out_variance = context.forward(mixed_variance_) + scope.begin * queries_width_;
    args.ldout_variance = queries_width_;
  }
  if (kept_ && cache != nullptr)
    return context.ops().attend_cached(
        {args, cache->keys_and_values(cache_index_).From(heads.first, spec_.head_width)});
  args.k = p.k + key_at + row * static_cast<ptrdiff_t>(p.ldkv);
  args.v = args.k + (p.v - p.k);
  context.ops().attention_forward(args);
}

void Attention::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                         FactorSink& sink) const {
  out_.Backward(context, context.forward(mixed_), dy, context.backward(dmixed_), kernels::Store::kAssign, sink);
  ForScopes(context, [&](const Scope& scope) { MixBackward(context, scope); });
  if (spec_.rotary.width > 0) RotateBack(context, context.backward(dprojected_));
  qkv_.Backward(context, x, context.backward(dprojected_), dx, store, sink);
}

void Attention::MixBackward(const RecordContext& context, const Scope& scope) const {
  const Projected p = Of(context);
  float* dqkv = context.backward(dprojected_) + scope.begin * (queries_width_ + 2 * keys_width_);
  kernels::AttentionBackwardArgs<> args{
      .q = p.q + scope.begin * p.ldq,
      .k = p.k + scope.begin * p.ldkv,
      .v = p.v + scope.begin * p.ldkv,
      .ldq = p.ldq,
      .ldkv = p.ldkv,
      .out = context.forward(mixed_) + scope.begin * queries_width_,
      .dout = context.backward(dmixed_) + scope.begin * queries_width_,
      .ldout = queries_width_,
      .lse_HQ = context.forward(lse_) + scope.begin * spec_.num_heads,
      .keep_HQT = dropout_.Mask(context, Rate(context), FirstKeep(scope.begin)),
      .dq = dqkv,
      .dk = dqkv + queries_width_,
      .dv = dqkv + queries_width_ + keys_width_,
      .scratch = context.forward(scratch_),
      .num_queries = scope.rows,
      .num_keys = scope.rows,
  };
  Describe(context, scope, args);
  context.ops().attention_backward(args);
}

float* Attention::KeyVariances(const RecordContext& context, size_t row) const {
  if (variance_width_ == 0) return nullptr;
  float* all = cached_ ? context.cache->variances(cache_index_) : context.forward(key_value_variance_);
  return all + row * variance_width_;
}

void Attention::KeyVariance(const RecordContext& context, const float* x, const float* var_x) const {
  qkv_.Variance(context, x, var_x, KeyVariances(context, context.past), variance_width_);
}

void Attention::Variance(const RecordContext& context, float* var_y) const {
  out_.Variance(context.Tail(), context.forward(mixed_), context.forward(mixed_variance_), var_y);
}

}  // namespace wisp
