#include "tools/convert/foreign_sasrec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <utility>

namespace wisp::convert {
namespace {

using enum ParameterRole;

// "{b}" stands for the number of a block; several names are stacked. kBehindPadding: the first row is the padding's.
enum class Rows : uint8_t { kAll, kBehindPadding };
struct Row {
  ParameterRole role;
  std::array<const char*, 3> names;
  Rows rows = Rows::kAll;
};

constexpr Row kPmixerRows[] = {{kItemTable, {"item_emb.weight"}, Rows::kBehindPadding},
                               {kPositionTable, {"pos_emb.weight"}, Rows::kBehindPadding},
                               {kAttentionNormGain, {"attention_layernorms.{b}.weight"}},
                               {kAttentionNormBias, {"attention_layernorms.{b}.bias"}},
                               {kQkvWeight, {"attention_layers.{b}.in_proj_weight"}},
                               {kQkvBias, {"attention_layers.{b}.in_proj_bias"}},
                               {kAttentionOutWeight, {"attention_layers.{b}.out_proj.weight"}},
                               {kAttentionOutBias, {"attention_layers.{b}.out_proj.bias"}},
                               {kFeedForwardNormGain, {"forward_layernorms.{b}.weight"}},
                               {kFeedForwardNormBias, {"forward_layernorms.{b}.bias"}},
                               {kFeedForwardInWeight, {"forward_layers.{b}.conv1.weight"}},
                               {kFeedForwardInBias, {"forward_layers.{b}.conv1.bias"}},
                               {kFeedForwardOutWeight, {"forward_layers.{b}.conv2.weight"}},
                               {kFeedForwardOutBias, {"forward_layers.{b}.conv2.bias"}},
                               {kFinalNormGain, {"last_layernorm.weight"}},
                               {kFinalNormBias, {"last_layernorm.bias"}}};
constexpr Row kRecBoleRows[] = {
    {kItemTable, {"item_embedding.weight"}, Rows::kBehindPadding},
    {kPositionTable, {"position_embedding.weight"}},
    {kEmbeddingNormGain, {"LayerNorm.weight"}},
    {kEmbeddingNormBias, {"LayerNorm.bias"}},
    {kQkvWeight,
     {"trm_encoder.layer.{b}.multi_head_attention.query.weight",
      "trm_encoder.layer.{b}.multi_head_attention.key.weight",
      "trm_encoder.layer.{b}.multi_head_attention.value.weight"}},
    {kQkvBias,
     {"trm_encoder.layer.{b}.multi_head_attention.query.bias", "trm_encoder.layer.{b}.multi_head_attention.key.bias",
      "trm_encoder.layer.{b}.multi_head_attention.value.bias"}},
    {kAttentionOutWeight, {"trm_encoder.layer.{b}.multi_head_attention.dense.weight"}},
    {kAttentionOutBias, {"trm_encoder.layer.{b}.multi_head_attention.dense.bias"}},
    {kAttentionNormGain, {"trm_encoder.layer.{b}.multi_head_attention.LayerNorm.weight"}},
    {kAttentionNormBias, {"trm_encoder.layer.{b}.multi_head_attention.LayerNorm.bias"}},
    {kFeedForwardInWeight, {"trm_encoder.layer.{b}.feed_forward.dense_1.weight"}},
    {kFeedForwardInBias, {"trm_encoder.layer.{b}.feed_forward.dense_1.bias"}},
    {kFeedForwardOutWeight, {"trm_encoder.layer.{b}.feed_forward.dense_2.weight"}},
    {kFeedForwardOutBias, {"trm_encoder.layer.{b}.feed_forward.dense_2.bias"}},
    {kFeedForwardNormGain, {"trm_encoder.layer.{b}.feed_forward.LayerNorm.weight"}},
    {kFeedForwardNormBias, {"trm_encoder.layer.{b}.feed_forward.LayerNorm.bias"}}};

std::span<const Row> GetRows(SasrecLayout layout) {
  return layout == SasrecLayout::kPmixer ? std::span<const Row>(kPmixerRows) : std::span<const Row>(kRecBoleRows);
}

const Row* FindRow(SasrecLayout layout, ParameterRole role) {
  const std::span<const Row> rows = GetRows(layout);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.role == role; });
  return found == rows.end() ? nullptr : &*found;
}

std::string NameInBlock(const char* pattern, uint32_t block) {
  std::string name = pattern;
  if (const size_t at = name.find("{b}"); at != std::string::npos) name.replace(at, 3, std::to_string(block));
  return name;
}

// Returns a matrix's shape. A convolution of width 1 is a matrix with one more dimension.
std::vector<uint64_t> PlainShape(const SafeTensor& tensor) {
  std::vector<uint64_t> shape = tensor.shape;
  if (shape.size() == 3 && shape[2] == 1) shape.pop_back();
  return shape;
}

Result<const SafeTensor*> FindSasrecMatrix(const std::string& path, const SafeTensorsFile& file,
                                           const std::string& name, uint64_t most_rows) {
  const SafeTensor* tensor = file.Find(name);
  if (tensor == nullptr) return InvalidData(path, ": there is no tensor '", name, "', which tells the architecture");
  const std::vector<uint64_t> shape = PlainShape(*tensor);
  if (shape.size() == 2 && shape[0] >= 1 && shape[0] <= most_rows && shape[1] >= 1 && shape[1] <= kMaxWidth)
    return tensor;
  return InvalidData(path, ": tensor '", name, "' has the shape ", ShapeInWords(tensor->shape), ", allowed are 1 to ",
                     most_rows, " rows and 1 to ", kMaxWidth, " columns");
}

// Versions before June 2024 trained the rows of padding, and computed something else.
Status CheckPaddingIsZero(const std::string& path, const SafeTensor& table) {
  std::vector<float> first(table.shape[1]);
  SafeTensor row = table;
  row.bytes = table.bytes.first(first.size() * ElementBytes(table.type));
  row.CopyTo(first);
  if (std::all_of(first.begin(), first.end(), [](float v) { return v == 0; })) return OkStatus();
  return Unsupported(path, ": the first row of '", table.name,
                     "', which stands for padding, is not zero: the model is of SASRec.pytorch before June 2024, whose "
                     "blocks add and norm otherwise; supported are versions from 21 May 2025 on");
}

Status CheckChoices(const std::string& path, SasrecLayout layout, const SasrecChoices& choices) {
  const bool pmixer = layout == SasrecLayout::kPmixer;
  if (pmixer && (!choices.num_heads || !choices.norm)) {
    return InvalidArgument(path,
                           ": it is a SASRec of SASRec.pytorch, whose tensors do not tell the heads of attention and "
                           "where norms stand: --config is needed, {\"num_heads\": 1, \"norm\": \"post\"} as args.txt "
                           "says; norm_first true is \"pre\". Without norm_first there the version is too old, and its "
                           "blocks add and norm otherwise");
  }
  if (!choices.num_heads) {
    return InvalidArgument(path,
                           ": it is a SASRec of RecBole, whose tensors do not tell the heads of attention: --config is "
                           "needed, {\"num_heads\": 2} for n_heads: 2; activation (gelu) and norm_epsilon (1e-12) too "
                           "where hidden_act and layer_norm_eps are others");
  }
  if (!pmixer && choices.norm == NormPlacement::kPre)
    return InvalidArgument(path, ": --config says norm pre, allowed is post: RecBole's norms stand behind");
  return OkStatus();
}

Status CheckFinite(const std::string& path, const SafeTensor& tensor, std::span<const float> values) {
  const auto wrong = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (wrong == values.end()) return OkStatus();
  return InvalidData(path, ": tensor ", Shown(tensor.name), " holds ", *wrong, " at place ", wrong - values.begin(),
                     ", allowed are finite numbers");
}

// Reads one of `count` tensors that are stacked to form the parameter.
Status ReadPart(const std::string& path, const SafeTensor& tensor, const ParameterSpec& p, Rows rows, size_t count,
                std::span<float> to) {
  const uint64_t before = rows == Rows::kBehindPadding ? 1 : 0;
  std::vector<uint64_t> needed = {p.rows / count + before, p.cols};
  if (p.shape == ParameterShape::kVector) needed = {p.cols / count};
  if (PlainShape(tensor) != needed) {
    return InvalidData(path, ": tensor ", Shown(tensor.name), " has the shape ", ShapeInWords(tensor.shape),
                       ", the other tensors need ", ShapeInWords(needed));
  }
  SafeTensor part = tensor;
  part.bytes = tensor.bytes.subspan(before * p.cols * ElementBytes(tensor.type));
  part.CopyTo(to);
  return CheckFinite(path, tensor, to);
}

}  // namespace

const char* GetName(SasrecLayout layout) { return layout == SasrecLayout::kPmixer ? "SASRec.pytorch" : "RecBole"; }

std::optional<SasrecLayout> FindSasrecLayout(const SafeTensorsFile& file) {
  const auto has = [&](const char* name) { return file.Find(name) != nullptr; };
  if (has("item_emb.weight") && has("pos_emb.weight") && has("attention_layernorms.0.weight"))
    return SasrecLayout::kPmixer;
  if (has("item_embedding.weight") && has("position_embedding.weight") && has("LayerNorm.weight") &&
      has("trm_encoder.layer.0.multi_head_attention.query.weight"))
    return SasrecLayout::kRecBole;
  return std::nullopt;
}

Status RefuseOtherRecommenders(const std::string& path, const SafeTensorsFile& file) {
  constexpr std::pair<const char*, const char*> kKinds[] = {{"gru", "a recurrent network (GRU4Rec)"},
                                                            {"weight_ih_l0", "a recurrent network (GRU4Rec)"},
                                                            {"lstm", "a recurrent network"},
                                                            {"user_tower", "a model of two towers"},
                                                            {"item_tower", "a model of two towers"},
                                                            {"query_tower", "a model of two towers"},
                                                            {"candidate_tower", "a model of two towers"},
                                                            {"user_emb", "a model with a row for each user"},
                                                            {"user_mlp", "a model of two towers"}};
  for (const SafeTensor& tensor : file.tensors()) {
    for (const auto& [part, kind] : kKinds) {
      if (tensor.name.find(part) == std::string::npos) continue;
      return Unsupported(
          path, ": tensor ", Shown(tensor.name), " is of ", kind,
          ", which this runtime does not have; supported are SASRec's, of wisp, of SASRec.pytorch and of "
          "RecBole");
    }
  }
  return OkStatus();
}

Result<Architecture> SasrecArchitecture(const std::string& path, const SafeTensorsFile& file, SasrecLayout layout,
                                        const SasrecChoices& choices) {
  const bool pmixer = layout == SasrecLayout::kPmixer;
  WISP_RETURN_IF_ERROR(CheckChoices(path, layout, choices));
  WISP_ASSIGN_OR_RETURN(const SafeTensor* items,
                        FindSasrecMatrix(path, file, FindRow(layout, kItemTable)->names[0], uint64_t{kMaxItems} + 1));
  WISP_ASSIGN_OR_RETURN(
      const SafeTensor* positions,
      FindSasrecMatrix(path, file, FindRow(layout, kPositionTable)->names[0], uint64_t{kMaxLength} + 1));
  if (pmixer) {
    WISP_RETURN_IF_ERROR(CheckPaddingIsZero(path, *positions));
    WISP_RETURN_IF_ERROR(CheckPaddingIsZero(path, *items));
  }
  const char* inner = FindRow(layout, kFeedForwardInWeight)->names[0];
  WISP_ASSIGN_OR_RETURN(const SafeTensor* first, FindSasrecMatrix(path, file, NameInBlock(inner, 0), 4 * kMaxWidth));
  Architecture a;
  a.num_items = static_cast<uint32_t>(items->shape[0] - 1);
  a.width = static_cast<uint32_t>(items->shape[1]);
  a.max_length = static_cast<uint32_t>(positions->shape[0]) - (pmixer ? 1 : 0);
  if (pmixer) {
    a.positions = PositionAlignment::kEnd;
    a.embedding_scale = std::sqrt(static_cast<float>(a.width));
  }
  if (a.width % *choices.num_heads != 0)
    return InvalidArgument(path, ": --config says num_heads ", *choices.num_heads, ", which does not divide the width ",
                           a.width);
  BlockSpec block;
  block.norm = choices.norm.value_or(NormPlacement::kPost);
  block.norm_epsilon = choices.norm_epsilon.value_or(pmixer ? 1e-8f : 1e-12f);
  block.attention.num_heads = block.attention.num_kv_heads = *choices.num_heads;
  block.attention.head_width = a.width / *choices.num_heads;
  block.feed_forward.inner_width = static_cast<uint32_t>(first->shape[0]);
  block.feed_forward.activation = choices.activation.value_or(pmixer ? ActivationKind::kRelu : ActivationKind::kGelu);
  uint32_t blocks = 0;
  while (blocks < kMaxBlocks && file.Find(NameInBlock(inner, blocks)) != nullptr) ++blocks;
  a.blocks.assign(blocks, block);
  if (pmixer) {
    a.final_norm_epsilon = block.norm_epsilon;
  } else {
    a.embedding_norm_epsilon = block.norm_epsilon;
  }
  if (const Status status = Validate(a); !status.ok()) return InvalidData(path, ": ", status.message());
  return a;
}

Result<std::vector<float>> SasrecWeights(const std::string& path, const SafeTensorsFile& file, SasrecLayout layout,
                                         const Architecture& architecture) {
  const std::vector<ParameterSpec> parameters = ListParameters(architecture);
  std::vector<float> weights(FlatSize(parameters));
  std::set<const SafeTensor*> used;
  for (const ParameterSpec& p : parameters) {
    const Row* row = FindRow(layout, p.role);
    if (row == nullptr) return Unsupported(path, ": ", GetName(layout), " has no tensor for ", p.name);
    const auto count =
        static_cast<size_t>(std::find(row->names.begin(), row->names.end(), nullptr) - row->names.begin());
    const size_t size = p.size() / count;
    for (size_t i = 0; i < count; ++i) {
      const std::string name = NameInBlock(row->names[i], p.block);
      const SafeTensor* tensor = file.Find(name);
      if (tensor == nullptr) return InvalidData(path, ": there is no tensor '", name, "', which the other ones need");
      used.insert(tensor);
      WISP_RETURN_IF_ERROR(
          ReadPart(path, *tensor, p, row->rows, count, std::span(weights).subspan(p.offset + i * size, size)));
    }
  }
  for (const SafeTensor& tensor : file.tensors()) {
    if (!used.contains(&tensor))
      return InvalidData(path, ": tensor ", Shown(tensor.name), " ", ShapeInWords(tensor.shape),
                         " belongs to nothing of a SASRec of ", GetName(layout));
  }
  return weights;
}

}  // namespace wisp::convert
