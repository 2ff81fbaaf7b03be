#include "runtime/core/architecture.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace wisp {
namespace {

[[gnu::cold]] Status CheckRange(const std::string& field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidData("architecture: ", field, " is ", value, ", allowed are ", low, " to ", high);
}

template <class Kind>
Status CheckKind(const char* field, Kind kind) {
  return CheckRange(field, static_cast<uint64_t>(kind), 0, static_cast<uint64_t>(Kind::kLast));
}

[[gnu::cold]] Status CheckEpsilon(float epsilon) {
  if (epsilon > 0 && epsilon < 1) return OkStatus();
  return InvalidData("architecture: norm_epsilon must lie between 0 and 1");
}

[[gnu::cold]] Status CheckAttention(const AttentionSpec& a) {
  WISP_RETURN_IF_ERROR(CheckRange("num_heads", a.num_heads, 1, kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("head_width", a.head_width, 1, kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("num_heads * head_width", uint64_t{a.num_heads} * a.head_width, 1, kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("num_kv_heads", a.num_kv_heads, 1, a.num_heads));
  if (a.num_heads % a.num_kv_heads != 0) {
    return InvalidData("architecture: num_kv_heads is ", a.num_kv_heads, ", which does not divide num_heads ",
                       a.num_heads);
  }
  WISP_RETURN_IF_ERROR(CheckRange("rotary_width", a.rotary.width, 0, a.head_width));
  if (a.rotary.width % 2 != 0)
    return InvalidData("architecture: rotary_width is ", a.rotary.width, ", allowed are even numbers");
  if (a.rotary.width == 0 && a.rotary != RotarySpec())
    return InvalidData("architecture: rotary_width is 0, and there are a rotary_base or interleaved pairs beside it");
  if (!(a.rotary.base > 1 && a.rotary.base <= 1e9f))
    return InvalidData("architecture: rotary_base is ", a.rotary.base, ", allowed is above 1, at most 1e9");
  WISP_RETURN_IF_ERROR(CheckRange("window", a.window, 0, kMaxLength));
  if (a.slope >= 0 && a.slope <= 100) return OkStatus();
  return InvalidData("architecture: attention_slope must lie between 0 and 100");
}

[[gnu::cold]] Status CheckBlock(const BlockSpec& b) {
  WISP_RETURN_IF_ERROR(CheckKind("norm", b.norm));
  WISP_RETURN_IF_ERROR(CheckKind("norm_kind", b.norm_kind));
  WISP_RETURN_IF_ERROR(CheckKind("residual", b.residual));
  WISP_RETURN_IF_ERROR(CheckKind("biases", b.biases));
  WISP_RETURN_IF_ERROR(CheckEpsilon(b.norm_epsilon));
  WISP_RETURN_IF_ERROR(CheckAttention(b.attention));
  WISP_RETURN_IF_ERROR(CheckRange("inner_width", b.feed_forward.inner_width, 1, 4 * kMaxWidth));
  return CheckKind("activation", b.feed_forward.activation);
}

// Refuses what Re-Attention's variances are not defined for. Their derivation needs independent entries, so it covers
// no product of two noisy values and no rotation.
[[gnu::cold]] Status CheckReAttention(const Architecture& a) {
  if (a.re_attention == ReAttention::kOff) return OkStatus();
  const char* what = nullptr;
  if (a.token_types.count > 0) what = "token types";
  if (a.embedding_norm_epsilon) what = "a norm of the embedding";
  for (const BlockSpec& b : a.blocks) {
    if (b.feed_forward.activation == ActivationKind::kSilu) what = "the activation silu";
    if (b.feed_forward.gated) what = "a gated feed-forward";
    if (b.residual == Residual::kGated) what = "gated residuals";
    if (b.attention.rotary.width > 0) what = "rotary positions";
  }
  if (what == nullptr) return OkStatus();
  return InvalidData(
      "architecture: no variance is known for ", what,
      ", which re_attention needs: turn re_attention off, or choose relu, gelu or gelu_tanh without gates, "
      "and learned positions or slopes");
}

// Refuses causal attention where the first position is pooled: that position would see only itself. Refuses a next-item
// head on an encoder.
[[gnu::cold]] Status CheckPooledHead(const Architecture& a) {
  const bool classes = a.head.kind == HeadKind::kClasses;
  const std::string kind = classes ? "classifier: " : "encoder: ";
  if (classes && (a.head.num_classes < 2 || a.head.num_classes > kMaxClasses)) {
    return InvalidData("classifier: num_classes is ", a.head.num_classes, ", allowed are 2 to ", kMaxClasses);
  }
  if (!classes && a.head.num_classes != 0)
    return InvalidData("encoder: num_classes is ", a.head.num_classes, ", allowed is 0");
  if (classes && a.head.unit_length)
    return InvalidData("classifier: unit_length is of heads that have no classes; allowed is false");
  if (a.head.output_table != OutputTable::kTied || a.head.output_bias != OutputBias::kNone || a.head.temperature != 0) {
    return InvalidData(kind, "it has no next-item head; output_table must be tied, output_bias none and temperature 0");
  }
  if (a.re_attention == ReAttention::kOn)
    return Unsupported(kind, "re-attention is offered for recommenders only; re_attention must be off");
  if (a.attend == Attend::kAll || a.head.pooling != Pooling::kFirst) return OkStatus();
  return InvalidData(
      kind, "the first position is pooled, and with causal attention it sees itself alone; attend must be all");
}

// Refuses fields that only a next-item head uses.
[[gnu::cold]] Status CheckNextItemHead(const Architecture& a) {
  const HeadSpec& head = a.head;
  if (head.temperature != 0 && !(head.temperature >= 1e-4f && head.temperature <= 100))
    return InvalidData("architecture: temperature is ", head.temperature, ", allowed are 0 and 0.0001 to 100");
  if (head.pooling != Pooling::kFirst || head.pooler != Pooler::kTanh || head.unit_length)
    return InvalidData(
        "architecture: a next-item head pools nothing; pooling, pooler and unit_length must be left out");
  return CheckRange("num_classes", head.num_classes, 0, 0);
}

// Token types follow from the whole text, so a key/value cache, which sees the text in pieces, cannot know them.
[[gnu::cold]] Status CheckTokenTypes(const Architecture& a) {
  const TokenTypes& types = a.token_types;
  WISP_RETURN_IF_ERROR(CheckRange("token_types", types.count, 0, kMaxTokenTypes));
  if (types.separator < -1 || types.separator >= static_cast<int64_t>(a.num_items))
    return InvalidData("architecture: token_separator is ", types.separator, ", allowed are -1 and items below ",
                       a.num_items);
  if (types.count == 0 && types.separator != -1)
    return InvalidData("architecture: there is a token_separator, and no token_types that it parts");
  if (types.count == 0 || a.attend == Attend::kAll) return OkStatus();
  return InvalidData("architecture: token_types are of encoders; attend must be all");
}

[[gnu::cold]] Status CheckHead(const Architecture& a) {
  WISP_RETURN_IF_ERROR(CheckKind("head", a.head.kind));
  WISP_RETURN_IF_ERROR(CheckKind("pooling", a.head.pooling));
  WISP_RETURN_IF_ERROR(CheckKind("pooler", a.head.pooler));
  WISP_RETURN_IF_ERROR(CheckKind("output_table", a.head.output_table));
  WISP_RETURN_IF_ERROR(CheckKind("output_bias", a.head.output_bias));
  return a.head.kind == HeadKind::kNextItem ? CheckNextItemHead(a) : CheckPooledHead(a);
}

// Refuses what the item tower does not stand in: its factors are those of one tied table of plain rows.
[[gnu::cold]] Status CheckItemFeatures(const Architecture& a) {
  WISP_RETURN_IF_ERROR(CheckRange("item_features", a.item_features, 0, kMaxItemFeatures));
  if (a.item_features == 0) return OkStatus();
  const char* needs = nullptr;
  if (a.head.kind != HeadKind::kNextItem) needs = "a next-item head";
  if (a.head.output_table != OutputTable::kTied) needs = "output_table tied";
  if (a.head.temperature != 0) needs = "temperature 0";
  if (a.re_attention == ReAttention::kOn) needs = "re_attention off";
  if (needs == nullptr) return OkStatus();
  return InvalidData("architecture: item_features is ", a.item_features, ", which needs ", needs);
}

// An upper bound on the number of parameters. It cannot overflow, because every field has been checked.
uint64_t NumParametersAtMost(const Architecture& a) {
  const uint64_t d = a.width, tables = a.head.output_table == OutputTable::kUntied ? 2 : 1;
  uint64_t total = (tables * a.num_items + a.max_length + a.token_types.count + 2) * d + 2 * uint64_t{a.num_items};
  total += uint64_t{a.item_features} * (a.num_items + d);
  for (const BlockSpec& b : a.blocks) {
    const uint64_t q = b.attention.queries_width(), f = b.feed_forward.in_rows();
    total += 4 * d * q + 2 * d * f + 2 * d * d + 16 * d + 4 * q + 2 * f;
  }
  return total + (d + a.head.num_classes) * (d + 1);
}

// The bit of AdapterSpec::Matrix for this role; 0 if the role is not a block's matrix.
uint8_t MatrixBit(ParameterRole role) {
  if (role == ParameterRole::kQkvWeight) return AdapterSpec::kQkv;
  if (role == ParameterRole::kAttentionOutWeight) return AdapterSpec::kAttentionOut;
  if (role == ParameterRole::kFeedForwardInWeight) return AdapterSpec::kFeedForwardIn;
  return role == ParameterRole::kFeedForwardOutWeight ? AdapterSpec::kFeedForwardOut : 0;
}

[[gnu::cold]] Status CheckAdapter(const Architecture& a) {
  if (!a.adapter) return OkStatus();
  uint32_t most = a.width;
  for (const BlockSpec& b : a.blocks) most = std::min({most, b.attention.queries_width(), b.feed_forward.inner_width});
  WISP_RETURN_IF_ERROR(CheckRange("adapter.rank", a.adapter->rank, 1, most));
  WISP_RETURN_IF_ERROR(CheckRange("adapter.matrices", a.adapter->matrices, 1, AdapterSpec::kAll));
  if (!std::isfinite(a.adapter->alpha) || a.adapter->alpha <= 0)
    return InvalidData("architecture: adapter.alpha is ", a.adapter->alpha, ", allowed is a positive number");
  if (a.adapter->has_head && a.head.kind != HeadKind::kClasses)
    return InvalidData("architecture: an adapter has a head of classes, and the model has none");
  if (a.blocks.empty())
    return InvalidData("architecture: an adapter stands beside a block's matrices; there is no block");
  if (a.re_attention == ReAttention::kOn)
    return InvalidData("architecture: an adapter with Re-Attention, whose variances know nothing of it: turn one off");
  return OkStatus();
}

struct SpecList {
  std::vector<ParameterSpec> specs;
  size_t next = 0;
  uint32_t block = 0;
  void Add(std::string name, ParameterRole role, ParameterShape shape, uint32_t rows, uint32_t cols,
           bool trained = true) {
    specs.push_back({.name = std::move(name),
                     .rows = rows,
                     .cols = cols,
                     .shape = shape,
                     .trained = trained,
                     .offset = next,
                     .role = role,
                     .block = block});
    next += AlignedSize(specs.back().size());
  }
  void AddTable(std::string name, ParameterRole role, uint32_t rows, uint32_t d, bool trained = true) {
    Add(std::move(name), role, ParameterShape::kTable, rows, d, trained);
  }
  void AddVector(std::string name, ParameterRole role, uint32_t n, bool trained = true) {
    Add(std::move(name), role, ParameterShape::kVector, 1, n, trained);
  }
  void AddNorm(NormKind kind, const std::string& name, ParameterRole gain, ParameterRole bias, uint32_t d) {
    AddVector(name + ".gain", gain, d);
    if (kind == NormKind::kLayer) AddVector(name + ".bias", bias, d);
  }
  void AddLinear(const std::string& name, ParameterRole weight, ParameterRole bias, uint32_t n, uint32_t k,
                 bool biased = true) {
    Add(name + ".weight", weight, ParameterShape::kMatrix, n, k);
    if (biased) AddVector(name + ".bias", bias, n);
  }
  void AddBlock(const BlockSpec& b, uint32_t index, uint32_t d) {
    using enum ParameterRole;
    block = index;
    const std::string name = "block" + std::to_string(index);
    const uint32_t q = b.attention.queries_width(), f = b.feed_forward.inner_width;
    AddNorm(b.norm_kind, name + ".attention_norm", kAttentionNormGain, kAttentionNormBias, d);
    const bool biased = b.biases == Biases::kAll;
    AddLinear(name + ".qkv", kQkvWeight, kQkvBias, q + 2 * b.attention.keys_width(), d, b.biases != Biases::kNone);
    AddLinear(name + ".attention_out", kAttentionOutWeight, kAttentionOutBias, d, q, biased);
    if (b.residual == Residual::kGated)
      AddLinear(name + ".attention_residual_gate", kAttentionResidualGateWeight, kAttentionResidualGateBias, d, d,
                biased);
    AddNorm(b.norm_kind, name + ".feed_forward_norm", kFeedForwardNormGain, kFeedForwardNormBias, d);
    AddLinear(name + ".feed_forward_in", kFeedForwardInWeight, kFeedForwardInBias, b.feed_forward.in_rows(), d, biased);
    AddLinear(name + ".feed_forward_out", kFeedForwardOutWeight, kFeedForwardOutBias, d, f, biased);
    if (b.residual == Residual::kGated)
      AddLinear(name + ".feed_forward_residual_gate", kFeedForwardResidualGateWeight, kFeedForwardResidualGateBias, d,
                d, biased);
    block = 0;
  }
  // In a model with adapters, only the adapters and the head that belongs to them are trained.
  void AddAdapters(const Architecture& a) {
    for (ParameterSpec& base : specs) {
      const bool head = base.role == ParameterRole::kClassWeight || base.role == ParameterRole::kClassBias;
      base.trained = base.trained && head && a.adapter->has_head;
    }
    const std::vector<ParameterSpec> bases = specs;
    for (const ParameterSpec& base : bases) {
      if (!(MatrixBit(base.role) & a.adapter->matrices)) continue;
      const AdapterRoles roles = *FindAdapterRoles(base.role);
      const std::string name = base.name.substr(0, base.name.rfind('.'));
      block = base.block;
      Add(name + ".adapter_down", roles.down, ParameterShape::kMatrix, a.adapter->rank, base.cols);
      Add(name + ".adapter_up", roles.up, ParameterShape::kMatrix, base.rows, a.adapter->rank);
    }
    block = 0;
  }
  void AddHead(const Architecture& a) {
    using enum ParameterRole;
    const uint32_t d = a.width;
    if (a.head.kind != HeadKind::kNextItem) {
      if (a.head.pooler != Pooler::kNone) AddLinear("pooler", kPoolerWeight, kPoolerBias, d, d);
      if (a.head.kind == HeadKind::kClasses) AddLinear("head", kClassWeight, kClassBias, a.head.num_classes, d);
      return;
    }
    if (a.head.output_table == OutputTable::kUntied) AddTable("output_embedding", kOutputTable, a.num_items, d);
    if (a.head.output_bias == OutputBias::kNone) return;
    AddVector("output_bias", kOutputBias, a.num_items, a.head.output_bias == OutputBias::kTrained);
  }
};

}  // namespace

UniformArchitecture::operator Architecture() const {
  const BlockSpec block{.norm = norm,
                        .norm_kind = norm_kind,
                        .norm_epsilon = norm_epsilon,
                        .residual = residual,
                        .biases = biases,
                        .attention = {.num_heads = num_heads,
                                      .num_kv_heads = num_kv_heads == 0 ? num_heads : num_kv_heads,
                                      .head_width = num_heads == 0 ? 0 : width / num_heads,
                                      .slope = attention_slope,
                                      .rotary = rotary},
                        .feed_forward = {.inner_width = inner_width, .activation = activation, .gated = gated}};
  Architecture a{.num_items = num_items,
                 .max_length = max_length,
                 .width = width,
                 .item_features = item_features,
                 .embedding_scale = embedding_scale,
                 .positions = positions,
                 .position_table = position_table,
                 .attend = attend,
                 .re_attention = re_attention,
                 .blocks = std::vector<BlockSpec>(std::min(num_blocks, kMaxBlocks + 1), block),
                 .head = {.kind = num_classes > 0 ? HeadKind::kClasses : HeadKind::kNextItem,
                          .output_table = output_table,
                          .output_bias = output_bias,
                          .num_classes = num_classes,
                          .temperature = temperature}};
  if (norm != NormPlacement::kPre) return a;
  a.final_norm_epsilon = norm_epsilon;
  a.final_norm_kind = norm_kind;
  return a;
}

std::optional<UniformArchitecture> AsUniform(const Architecture& a) {
  const BlockSpec first = a.blocks.empty() ? BlockSpec{.attention = {.head_width = a.width}} : a.blocks[0];
  UniformArchitecture u{
      .num_items = a.num_items,
      .max_length = a.max_length,
      .width = a.width,
      .num_heads = first.attention.num_heads,
      .num_kv_heads = first.attention.num_kv_heads == first.attention.num_heads ? 0 : first.attention.num_kv_heads,
      .num_blocks = static_cast<uint32_t>(a.blocks.size()),
      .inner_width = first.feed_forward.inner_width,
      .embedding_scale = a.embedding_scale,
      .norm_epsilon = first.norm_epsilon,
      .activation = first.feed_forward.activation,
      .norm = first.norm,
      .output_table = a.head.output_table,
      .output_bias = a.head.output_bias,
      .positions = a.positions,
      .attend = a.attend,
      .re_attention = a.re_attention,
      .attention_slope = first.attention.slope,
      .rotary = first.attention.rotary,
      .norm_kind = first.norm_kind,
      .residual = first.residual,
      .biases = first.biases,
      .gated = first.feed_forward.gated,
      .position_table = a.position_table,
      .temperature = a.head.temperature,
      .num_classes = a.head.num_classes,
      .item_features = a.item_features};
  if (a.blocks.empty()) {
    u.norm = a.final_norm_epsilon ? NormPlacement::kPre : NormPlacement::kPost;
    u.norm_epsilon = a.final_norm_epsilon.value_or(u.norm_epsilon);
    u.norm_kind = a.final_norm_kind;
  }
  if (static_cast<Architecture>(u) == a) return u;
  return std::nullopt;
}

Architecture WithoutAdapter(Architecture a) {
  a.adapter.reset();
  return a;
}

bool StandsBeside(const Architecture& adapted, const Architecture& base) {
  if (!adapted.adapter || (base.adapter && base.adapter != adapted.adapter)) return false;
  Architecture own = WithoutAdapter(adapted), other = WithoutAdapter(base);
  if (adapted.adapter->has_head && !base.adapter) {
    if (other.head.kind != HeadKind::kEmbedding) return false;
    other = WithClasses(other, own.head.num_classes);
  }
  return own == other;
}

Architecture WithClasses(Architecture a, uint32_t num_classes) {
  a.head.kind = HeadKind::kClasses;
  a.head.unit_length = false;
  a.head.num_classes = num_classes;
  return a;
}

Status Validate(const Architecture& a) {
  WISP_RETURN_IF_ERROR(CheckRange("num_items", a.num_items, 1, kMaxItems));
  WISP_RETURN_IF_ERROR(CheckRange("max_length", a.max_length, 1, kMaxLength));
  WISP_RETURN_IF_ERROR(CheckRange("width", a.width, 1, kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("num_blocks", a.blocks.size(), 0, kMaxBlocks));
  for (const BlockSpec& block : a.blocks) {
    WISP_RETURN_IF_ERROR(CheckBlock(block));
    if (block.attention.window > 0 && a.attend == Attend::kAll)
      return InvalidData("architecture: window is ", block.attention.window,
                         ", and positions attend all others; allowed is 0, or attend causal");
  }
  if (a.final_norm_epsilon) WISP_RETURN_IF_ERROR(CheckEpsilon(*a.final_norm_epsilon));
  WISP_RETURN_IF_ERROR(CheckKind("final_norm_kind", a.final_norm_kind));
  if (!a.final_norm_epsilon && a.final_norm_kind != NormKind::kLayer)
    return InvalidData("architecture: final_norm_kind is that of an RMS norm, and there is no final norm");
  WISP_RETURN_IF_ERROR(CheckKind("positions", a.positions));
  WISP_RETURN_IF_ERROR(CheckKind("position_table", a.position_table));
  WISP_RETURN_IF_ERROR(CheckKind("attend", a.attend));
  WISP_RETURN_IF_ERROR(CheckKind("re_attention", a.re_attention));
  if (!std::isfinite(a.embedding_scale) || a.embedding_scale <= 0) {
    return InvalidData("architecture: embedding_scale must be a positive number");
  }
  if (a.embedding_norm_epsilon) WISP_RETURN_IF_ERROR(CheckEpsilon(*a.embedding_norm_epsilon));
  WISP_RETURN_IF_ERROR(CheckTokenTypes(a));
  WISP_RETURN_IF_ERROR(CheckReAttention(a));
  WISP_RETURN_IF_ERROR(CheckHead(a));
  WISP_RETURN_IF_ERROR(CheckItemFeatures(a));
  WISP_RETURN_IF_ERROR(CheckAdapter(a));
  return CheckRange("number of parameters", NumParametersAtMost(a), 1, kMaxParameters);
}

Status Validate(const UniformArchitecture& a) {
  WISP_RETURN_IF_ERROR(CheckRange("width", a.width, 1, kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("num_heads", a.num_heads, 1, a.width));
  if (a.width % a.num_heads != 0) {
    return InvalidData("architecture: num_heads is ", a.num_heads, ", which does not divide width ", a.width);
  }
  return Validate(static_cast<Architecture>(a));
}

std::vector<ParameterSpec> ListParameters(const Architecture& a) {
  using enum ParameterRole;
  SpecList list;
  // The largest possible number of parameters. The model has two tables, a norm, a head and two variances. Each block
  // has sixteen parameters and two for each of four adapters. Text models add token types and an embedding norm.
  const size_t of_texts = (a.token_types.count > 0 ? 1 : 0) + (a.embedding_norm_epsilon ? 2 : 0);
  const size_t of_towers = a.item_features > 0 ? 2 : 0;
  list.specs.reserve((a.adapter ? 24 : 16) * a.blocks.size() + 8 + of_texts + of_towers);
  if (a.item_features > 0) {
    list.AddTable("item_tower", kItemTower, a.item_features, a.width);
    list.AddTable("item_features", kItemFeatures, a.num_items, a.item_features, /*trained=*/false);
  }
  list.AddTable("item_embedding", kItemTable, a.num_items, a.width, /*trained=*/a.item_features == 0);
  if (a.position_table == PositionTable::kLearned)
    list.AddTable("position_embedding", kPositionTable, a.max_length, a.width);
  if (a.token_types.count > 0) list.AddTable("type_embedding", kTypeTable, a.token_types.count, a.width);
  if (a.embedding_norm_epsilon)
    list.AddNorm(NormKind::kLayer, "embedding_norm", kEmbeddingNormGain, kEmbeddingNormBias, a.width);
  for (uint32_t b = 0; b < a.blocks.size(); ++b) list.AddBlock(a.blocks[b], b, a.width);
  if (a.final_norm_epsilon) list.AddNorm(a.final_norm_kind, "final_norm", kFinalNormGain, kFinalNormBias, a.width);
  list.AddHead(a);
  if (a.adapter) list.AddAdapters(a);
  if (a.re_attention == ReAttention::kOn) {
    const auto num_parameters = static_cast<uint32_t>(list.specs.size());
    list.AddVector("item_embedding.variance", kItemVariance, a.num_items, /*trained=*/false);
    list.AddVector("parameter_variance", kParameterVariance, num_parameters, /*trained=*/false);
  }
  return std::move(list.specs);
}

std::vector<ParameterSpec> StoredParameters(const Architecture& a) {
  std::vector<ParameterSpec> parameters = ListParameters(a);
  if (a.adapter) std::erase_if(parameters, [](const ParameterSpec& p) { return !p.trained; });
  return parameters;
}

std::optional<AdapterRoles> FindAdapterRoles(ParameterRole matrix) {
  using enum ParameterRole;
  switch (MatrixBit(matrix)) {
    case AdapterSpec::kQkv:
      return AdapterRoles{kQkvDown, kQkvUp};
    case AdapterSpec::kAttentionOut:
      return AdapterRoles{kAttentionOutDown, kAttentionOutUp};
    case AdapterSpec::kFeedForwardIn:
      return AdapterRoles{kFeedForwardInDown, kFeedForwardInUp};
    case AdapterSpec::kFeedForwardOut:
      return AdapterRoles{kFeedForwardOutDown, kFeedForwardOutUp};
    default:
      return std::nullopt;
  }
}

bool IsBlockRole(ParameterRole role) {
  const bool own = role >= ParameterRole::kAttentionNormGain && role <= ParameterRole::kFeedForwardResidualGateBias;
  return own || (role >= ParameterRole::kQkvDown && role <= ParameterRole::kFeedForwardOutUp);
}

std::optional<size_t> FindParameter(const std::vector<ParameterSpec>& parameters, ParameterRole role, uint32_t block) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const ParameterSpec& p) { return p.role == role && p.block == block; });
  if (found == parameters.end()) return std::nullopt;
  return static_cast<size_t>(found - parameters.begin());
}

size_t RequireParameter(const std::vector<ParameterSpec>& parameters, ParameterRole role, uint32_t block) {
  const std::optional<size_t> found = FindParameter(parameters, role, block);
  assert(found);
  return *found;
}

std::optional<size_t> FindHeadTable(const Architecture& a, const std::vector<ParameterSpec>& parameters) {
  if (a.head.kind != HeadKind::kNextItem) return std::nullopt;
  const bool tied = a.head.output_table == OutputTable::kTied;
  return FindParameter(parameters, tied ? ParameterRole::kItemTable : ParameterRole::kOutputTable);
}

std::vector<float> AttentionSlopes(const AttentionSpec& a) {
  std::vector<float> slopes;
  for (uint32_t h = 0; a.slope > 0 && h < a.num_heads; ++h) {
    slopes.push_back(static_cast<float>(a.slope * std::exp2(-8.0 * h / a.num_heads)));
  }
  return slopes;
}

size_t FlatSize(const std::vector<ParameterSpec>& parameters) {
  if (parameters.empty()) return 0;
  const ParameterSpec& last = parameters.back();
  return last.offset + AlignedSize(last.size());
}

}  // namespace wisp
