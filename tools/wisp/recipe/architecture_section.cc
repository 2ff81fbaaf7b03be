// The sections "architecture" and "adapter" of a recipe. Each key stands here once, for reading, writing and showing.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {
namespace {

template <class T>
using Names = std::pair<const char*, T>;

constexpr Names<ActivationKind> kActivations[] = {{"relu", ActivationKind::kRelu},
                                                  {"gelu", ActivationKind::kGelu},
                                                  {"gelu_tanh", ActivationKind::kGeluTanh},
                                                  {"silu", ActivationKind::kSilu}};
constexpr Names<NormPlacement> kPlacements[] = {{"pre", NormPlacement::kPre}, {"post", NormPlacement::kPost}};
constexpr Names<NormKind> kNormKinds[] = {{"layer", NormKind::kLayer}, {"rms", NormKind::kRms}};
constexpr Names<Residual> kResiduals[] = {{"plain", Residual::kPlain}, {"gated", Residual::kGated}};
constexpr Names<OutputTable> kOutputTables[] = {{"tied", OutputTable::kTied}, {"untied", OutputTable::kUntied}};
constexpr Names<OutputBias> kOutputBiases[] = {
    {"none", OutputBias::kNone}, {"fixed", OutputBias::kFixed}, {"trained", OutputBias::kTrained}};
constexpr Names<PositionAlignment> kAlignments[] = {{"start", PositionAlignment::kStart},
                                                    {"end", PositionAlignment::kEnd}};
constexpr Names<PositionTable> kPositionTables[] = {{"learned", PositionTable::kLearned},
                                                    {"none", PositionTable::kNone}};
constexpr Names<Pooling> kPoolings[] = {{"first", Pooling::kFirst}, {"mean", Pooling::kMean}};
constexpr Names<Pooler> kPoolers[] = {{"tanh", Pooler::kTanh}, {"none", Pooler::kNone}, {"relu", Pooler::kRelu}};
constexpr Names<Attend> kAttends[] = {{"causal", Attend::kCausal}, {"all", Attend::kAll}};
constexpr Names<ReAttention> kReAttentions[] = {{"off", ReAttention::kOff}, {"on", ReAttention::kOn}};
constexpr std::pair<const char*, AdapterSpec::Matrix> kMatrices[] = {
    {"qkv", AdapterSpec::kQkv},
    {"attention_out", AdapterSpec::kAttentionOut},
    {"feed_forward_in", AdapterSpec::kFeedForwardIn},
    {"feed_forward_out", AdapterSpec::kFeedForwardOut}};

template <class T, size_t kCount>
const char* GetName(const Names<T> (&names)[kCount], T value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "unknown";
}

// Returns the shortest number that reads as this float, instead of all digits of its double.
double Shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

// A block as its keys say it. Values that follow from other keys are absent until all keys are read.
struct ReadBlock {
  BlockSpec spec;
  std::optional<uint32_t> head_width, num_kv_heads;
  std::optional<float> rotary_base;
  bool rotary_interleaved = false;
};

// "qkv_biases" says that queries, keys and values have biases and nothing else has.
void ReadBiases(JsonSection& s, Biases& biases) {
  bool all = biases == Biases::kAll, qkv = biases == Biases::kQkv;
  s.Flag("biases", all);
  s.Flag("qkv_biases", qkv);
  biases = all ? Biases::kAll : qkv ? Biases::kQkv : Biases::kNone;
}

void ReadKeys(JsonSection& s, ReadBlock& block) {
  BlockSpec& b = block.spec;
  s.Number("num_heads", b.attention.num_heads, 1, kMaxWidth);
  s.Number("num_kv_heads", block.num_kv_heads, 1, kMaxWidth);
  s.Number("attention_slope", b.attention.slope, 0, 100);
  s.Number("rotary_width", b.attention.rotary.width, 0, kMaxWidth);
  s.Number("rotary_base", block.rotary_base, 1.001, 1e9);
  s.Flag("rotary_interleaved", block.rotary_interleaved);
  s.Number("window", b.attention.window, 0, kMaxLength);
  s.Number("inner_width", b.feed_forward.inner_width, 1, 4.0 * kMaxWidth);
  s.ParseChoice<ActivationKind>("activation", b.feed_forward.activation, kActivations);
  s.Flag("gated", b.feed_forward.gated);
  s.Number("norm_epsilon", b.norm_epsilon, 1e-12, 1e-1);
  s.ParseChoice<NormPlacement>("norm", b.norm, kPlacements);
  s.ParseChoice<NormKind>("norm_kind", b.norm_kind, kNormKinds);
  s.ParseChoice<Residual>("residual", b.residual, kResiduals);
  ReadBiases(s, b.biases);
}

void ReadTextKeys(JsonSection& s, Architecture& a) {
  std::optional<uint32_t> separator;
  s.Number("token_types", a.token_types.count, 0, kMaxTokenTypes);
  s.Number("token_separator", separator, 0, kMaxItems - 1);
  s.Number("embedding_norm_epsilon", a.embedding_norm_epsilon, 1e-12, 1e-1);
  s.ParseChoice<Pooling>("pooling", a.head.pooling, kPoolings);
  s.ParseChoice<Pooler>("pooler", a.head.pooler, kPoolers);
  if (separator) a.token_types.separator = static_cast<int32_t>(*separator);
}

BlockSpec Finished(JsonSection& s, const ReadBlock& block, uint32_t width, const char* hint) {
  BlockSpec b = block.spec;
  const uint32_t heads = b.attention.num_heads;
  if (!block.head_width && width % heads != 0) {
    s.Fail(InvalidData(s.where(), ".num_heads is ", heads, ", which does not divide width ", width, hint));
  }
  b.attention.head_width = block.head_width.value_or(width / heads);
  b.attention.num_kv_heads = block.num_kv_heads.value_or(heads);
  if (b.attention.rotary.width == 0) return b;
  b.attention.rotary.base = block.rotary_base.value_or(RotarySpec().base);
  b.attention.rotary.interleaved = block.rotary_interleaved;
  return b;
}

// Checks rules that involve several keys. The recipe does not set the items.
void CheckTogether(JsonSection& s, Architecture architecture) {
  architecture.num_items = 1;
  const Status status = Validate(architecture);
  constexpr std::string_view kPrefix = "architecture: ";
  if (status.ok() || status.message().substr(0, kPrefix.size()) != kPrefix) return;
  s.Fail(InvalidData(s.where(), ": ", status.message().substr(kPrefix.size())));
}

// Returns the first block, or the default that an architecture without blocks would have.
BlockSpec GetFirst(const Architecture& a) {
  if (!a.blocks.empty()) return a.blocks.front();
  UniformArchitecture u = AsUniform(WithoutAdapter(a)).value_or(UniformArchitecture());
  u.num_blocks = 1;
  return static_cast<Architecture>(u).blocks.front();
}

// Keys that were added later are written only if they differ from their default.
void WriteLater(const BlockSpec& b, nlohmann::ordered_json& json) {
  const RotarySpec& rotary = b.attention.rotary;
  if (b.attention.num_kv_heads != b.attention.num_heads) json["num_kv_heads"] = b.attention.num_kv_heads;
  if (rotary.width > 0) {
    json["rotary_width"] = rotary.width;
    json["rotary_base"] = Shortest(rotary.base);
    if (rotary.interleaved) json["rotary_interleaved"] = true;
  }
  if (b.attention.window > 0) json["window"] = b.attention.window;
  if (b.feed_forward.gated) json["gated"] = true;
  if (b.norm_kind != NormKind::kLayer) json["norm_kind"] = GetName(kNormKinds, b.norm_kind);
  if (b.residual != Residual::kPlain) json["residual"] = GetName(kResiduals, b.residual);
  if (b.biases != Biases::kAll) json["biases"] = false;
  if (b.biases == Biases::kQkv) json["qkv_biases"] = true;
}

// Reads all keys. A block takes missing keys from the section, which equals the first block.
nlohmann::ordered_json WriteBlock(const BlockSpec& b) {
  const RotarySpec& rotary = b.attention.rotary;
  nlohmann::ordered_json json = {{"num_heads", b.attention.num_heads},
                                 {"num_kv_heads", b.attention.num_kv_heads},
                                 {"head_width", b.attention.head_width},
                                 {"inner_width", b.feed_forward.inner_width},
                                 {"attention_slope", Shortest(b.attention.slope)},
                                 {"rotary_width", rotary.width},
                                 {"window", b.attention.window},
                                 {"norm_epsilon", Shortest(b.norm_epsilon)},
                                 {"activation", GetName(kActivations, b.feed_forward.activation)},
                                 {"gated", b.feed_forward.gated},
                                 {"norm", GetName(kPlacements, b.norm)},
                                 {"norm_kind", GetName(kNormKinds, b.norm_kind)},
                                 {"residual", GetName(kResiduals, b.residual)},
                                 {"biases", b.biases == Biases::kAll},
                                 {"qkv_biases", b.biases == Biases::kQkv}};
  if (rotary.width == 0) return json;
  json["rotary_base"] = Shortest(rotary.base);
  json["rotary_interleaved"] = rotary.interleaved;
  return json;
}

void WriteTextKeys(const Architecture& a, nlohmann::ordered_json& json) {
  if (a.token_types.count > 0) json["token_types"] = a.token_types.count;
  if (a.token_types.separator >= 0) json["token_separator"] = a.token_types.separator;
  if (a.embedding_norm_epsilon) json["embedding_norm_epsilon"] = Shortest(*a.embedding_norm_epsilon);
  if (a.head.pooling != Pooling::kFirst) json["pooling"] = GetName(kPoolings, a.head.pooling);
  if (a.head.pooler != Pooler::kTanh) json["pooler"] = GetName(kPoolers, a.head.pooler);
}

}  // namespace

nlohmann::ordered_json WriteBlocks(const Architecture& a) {
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
  for (const BlockSpec& block : a.blocks) blocks.push_back(WriteBlock(block));
  return blocks;
}

nlohmann::ordered_json WriteArchitecture(const Architecture& a) {
  const BlockSpec b = GetFirst(a);
  nlohmann::ordered_json json = {{"max_length", a.max_length},
                                 {"width", a.width},
                                 {"num_heads", b.attention.num_heads},
                                 {"num_blocks", a.blocks.size()},
                                 {"inner_width", b.feed_forward.inner_width},
                                 {"embedding_scale", Shortest(a.embedding_scale)},
                                 {"attention_slope", Shortest(b.attention.slope)},
                                 {"norm_epsilon", Shortest(b.norm_epsilon)},
                                 {"activation", GetName(kActivations, b.feed_forward.activation)},
                                 {"norm", GetName(kPlacements, b.norm)},
                                 {"output_table", GetName(kOutputTables, a.head.output_table)},
                                 {"output_bias", GetName(kOutputBiases, a.head.output_bias)},
                                 {"positions", GetName(kAlignments, a.positions)},
                                 {"attend", GetName(kAttends, a.attend)},
                                 {"re_attention", GetName(kReAttentions, a.re_attention)}};
  WriteLater(b, json);
  if (a.position_table != PositionTable::kLearned) json["position_table"] = GetName(kPositionTables, a.position_table);
  if (a.head.temperature != 0) json["temperature"] = Shortest(a.head.temperature);
  WriteTextKeys(a, json);
  if (!AsUniform(WithoutAdapter(a))) json["blocks"] = WriteBlocks(a);
  return json;
}

void ReadArchitecture(JsonSection& s, const UniformArchitecture& defaults, Architecture& architecture) {
  architecture = defaults;
  ReadBlock common{.spec = GetFirst(architecture)};
  if (const RotarySpec& rotary = common.spec.attention.rotary; rotary.width > 0) {
    common.rotary_base = rotary.base;
    common.rotary_interleaved = rotary.interleaved;
  }
  if (defaults.num_kv_heads > 0) common.num_kv_heads = defaults.num_kv_heads;
  std::optional<uint32_t> num_blocks;
  s.Number("max_length", architecture.max_length, 1, kMaxLength);
  s.Number("width", architecture.width, 1, kMaxWidth);
  s.Number("num_blocks", num_blocks, 0, kMaxBlocks);
  s.Number("embedding_scale", architecture.embedding_scale, 1e-6, 1e6);
  ReadKeys(s, common);
  s.ParseChoice<OutputTable>("output_table", architecture.head.output_table, kOutputTables);
  s.ParseChoice<OutputBias>("output_bias", architecture.head.output_bias, kOutputBiases);
  s.Number("temperature", architecture.head.temperature, 0, 100);
  s.ParseChoice<PositionAlignment>("positions", architecture.positions, kAlignments);
  s.ParseChoice<PositionTable>("position_table", architecture.position_table, kPositionTables);
  s.ParseChoice<ReAttention>("re_attention", architecture.re_attention, kReAttentions);
  s.ParseChoice<Attend>("attend", architecture.attend, kAttends);
  ReadTextKeys(s, architecture);
  std::vector<BlockSpec> blocks;
  s.Objects("blocks", [&](JsonSection& inner) {
    ReadBlock block = common;
    inner.Number("head_width", block.head_width, 1, kMaxWidth);
    ReadKeys(inner, block);
    blocks.push_back(Finished(inner, block, architecture.width, ": allowed with a head_width"));
  });
  if (num_blocks && !blocks.empty() && *num_blocks != blocks.size()) {
    s.Fail(InvalidData(s.where(), ".num_blocks is ", *num_blocks, ", allowed is the number of blocks that are named, ",
                       blocks.size()));
  }
  const BlockSpec last = blocks.empty() ? Finished(s, common, architecture.width, "") : blocks.back();
  if (blocks.empty()) blocks.assign(num_blocks.value_or(defaults.num_blocks), last);
  architecture.blocks = std::move(blocks);
  const bool turns = std::any_of(architecture.blocks.begin(), architecture.blocks.end(),
                                 [](const BlockSpec& b) { return b.attention.rotary.width > 0; });
  if ((common.rotary_base || common.rotary_interleaved) && !turns)
    s.Fail(InvalidData(s.where(), ": rotary_base and rotary_interleaved need a rotary_width, which no block has"));
  const bool pre = last.norm == NormPlacement::kPre;
  architecture.final_norm_epsilon = pre ? std::optional(last.norm_epsilon) : std::nullopt;
  architecture.final_norm_kind = pre ? last.norm_kind : NormKind::kLayer;
  CheckTogether(s, architecture);
}

// The adapter stands beside the matrices of --model, which do not change.
void ReadAdapter(JsonSection& s, std::optional<AdapterSpec>& adapter) {
  AdapterSpec a;
  std::optional<float> alpha;
  std::vector<std::string> matrices;
  s.Number("rank", a.rank, 1, kMaxWidth);
  s.Number("alpha", alpha, 1e-6, 1e6);
  s.List("matrices", matrices);
  a.alpha = alpha.value_or(static_cast<float>(a.rank));
  if (!matrices.empty()) a.matrices = 0;
  for (const std::string& name : matrices) {
    const auto* known = std::find_if(std::begin(kMatrices), std::end(kMatrices),
                                     [&](const auto& matrix) { return name == matrix.first; });
    if (known == std::end(kMatrices)) {
      return s.Fail(InvalidData(s.where(), ".matrices has '", name,
                                "', allowed are qkv, attention_out, feed_forward_in and feed_forward_out"));
    }
    a.matrices |= known->second;
  }
  adapter = a;
}

nlohmann::ordered_json WriteAdapter(const AdapterSpec& a) {
  nlohmann::ordered_json matrices = nlohmann::ordered_json::array();
  for (const auto& [name, matrix] : kMatrices) {
    if (a.matrices & matrix) matrices.push_back(name);
  }
  return {{"rank", a.rank}, {"alpha", Shortest(a.alpha)}, {"matrices", matrices}};
}

}  // namespace wisp::tools
