#include "tools/convert/torch_names.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace wisp::convert {
namespace {

// Names within a block. The matrices of attention have the names of torch.nn.MultiheadAttention.
constexpr std::pair<const char*, const char*> kInBlock[] = {
    {"attention_norm.gain", "attention_norm.weight"},
    {"attention_norm.bias", "attention_norm.bias"},
    {"qkv.weight", "attention.in_proj_weight"},
    {"qkv.bias", "attention.in_proj_bias"},
    {"attention_out.weight", "attention.out_proj.weight"},
    {"attention_out.bias", "attention.out_proj.bias"},
    {"attention_residual_gate.weight", "attention_residual_gate.weight"},
    {"attention_residual_gate.bias", "attention_residual_gate.bias"},
    {"feed_forward_norm.gain", "feed_forward_norm.weight"},
    {"feed_forward_norm.bias", "feed_forward_norm.bias"},
    {"feed_forward_in.weight", "feed_forward_in.weight"},
    {"feed_forward_in.bias", "feed_forward_in.bias"},
    {"feed_forward_out.weight", "feed_forward_out.weight"},
    {"feed_forward_out.bias", "feed_forward_out.bias"},
    {"feed_forward_residual_gate.weight", "feed_forward_residual_gate.weight"},
    {"feed_forward_residual_gate.bias", "feed_forward_residual_gate.bias"}};
// All other names are equal in both.
constexpr std::pair<const char*, const char*> kOutside[] = {{"item_embedding", "item_embedding.weight"},
                                                            {"position_embedding", "position_embedding.weight"},
                                                            {"output_embedding", "output_embedding.weight"},
                                                            {"final_norm.gain", "final_norm.weight"}};

Result<const SafeTensor*> FindMatrix(const std::string& path, const SafeTensorsFile& file, const std::string& name,
                                     uint64_t most_rows) {
  const SafeTensor* tensor = file.Find(name);
  if (tensor == nullptr)
    return InvalidData(path, ": there is no tensor '", name,
                       "', which tells the architecture; names as in docs/convert.md are needed");
  const auto in_range = [](uint64_t n, uint64_t most) { return n >= 1 && n <= most; };
  if (tensor->shape.size() == 2 && in_range(tensor->shape[0], most_rows) && in_range(tensor->shape[1], kMaxWidth))
    return tensor;
  return InvalidData(path, ": tensor '", name, "' has the shape ", ShapeInWords(tensor->shape), ", allowed are 1 to ",
                     most_rows, " rows and 1 to ", kMaxWidth, " columns");
}

// Checks that every tensor is a parameter, and every parameter a tensor of its shape.
Status CheckShapes(const std::string& path, const SafeTensorsFile& file, const std::vector<ParameterSpec>& parameters) {
  std::set<std::string, std::less<>> known;
  for (const ParameterSpec& p : parameters) {
    const std::string name = TorchName(p.name);
    const SafeTensor* tensor = file.Find(name);
    if (tensor == nullptr) return InvalidData(path, ": there is no tensor '", name, "', which the architecture has");
    if (tensor->shape != TorchShape(p)) {
      return InvalidData(path, ": tensor '", name, "' has the shape ", ShapeInWords(tensor->shape),
                         ", the architecture needs ", ShapeInWords(TorchShape(p)));
    }
    known.insert(name);
  }
  for (const SafeTensor& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    return InvalidData(path, ": tensor ", Shown(tensor.name),
                       " belongs to nothing of the architecture; allowed are the names of docs/convert.md");
  }
  return OkStatus();
}

Status CheckNumbers(const std::string& path, const ParameterSpec& p, std::span<const float> values) {
  const bool variance = p.role == ParameterRole::kItemVariance || p.role == ParameterRole::kParameterVariance;
  const auto wrong =
      std::find_if(values.begin(), values.end(), [&](float v) { return !std::isfinite(v) || (variance && v < 0); });
  if (wrong == values.end()) return OkStatus();
  return InvalidData(path, ": tensor '", TorchName(p.name), "' holds ", *wrong, " at place ", wrong - values.begin(),
                     ", allowed are ", (variance ? "finite numbers from 0" : "finite numbers"));
}

}  // namespace

std::string TorchName(const std::string& name) {
  for (const auto& [ours, theirs] : kOutside) {
    if (name == ours) return theirs;
  }
  const size_t dot = name.find('.');
  if (!name.starts_with("block") || dot == std::string::npos) return name;
  const std::string inner = name.substr(dot + 1), number = name.substr(5, dot - 5);
  for (const auto& [ours, theirs] : kInBlock) {
    if (inner == ours) return "blocks." + number + "." + theirs;
  }
  return name;
}

std::vector<uint64_t> TorchShape(const ParameterSpec& p) {
  if (p.shape == ParameterShape::kVector) return {p.cols};
  return {p.rows, p.cols};
}

Status CheckIsRecommender(const std::string& path, const SafeTensorsFile& file) {
  if (file.Find("item_embedding.weight") != nullptr || file.Find("position_embedding.weight") != nullptr)
    return OkStatus();
  constexpr size_t kShown = 3;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, file.tensors().size()); ++i) {
    names += (i == 0 ? "" : ", ") + Shown(file.tensors()[i].name) + " " + ShapeInWords(file.tensors()[i].shape);
  }
  const size_t more = file.tensors().size() - std::min(kShown, file.tensors().size());
  return InvalidData(path, ": it is not a recommender of wisp's: it holds ", (names.empty() ? "no tensor" : names),
                     (more > 0 ? " and " + std::to_string(more) + " more" : ""),
                     ". Supported are SASRec's of SASRec.pytorch and of RecBole, and the state_dict of "
                     "tools/lab/bench/peers/sasrec_torch.py: "
                     "item_embedding.weight [items, width], "
                     "position_embedding.weight [positions, width], blocks.0.attention.in_proj_weight [3 width, "
                     "width], blocks.0.feed_forward_in.weight "
                     "[inner, width] and so on; docs/convert.md lists every name with its shape");
}

Result<UniformArchitecture> InferArchitecture(const std::string& path, const SafeTensorsFile& file) {
  UniformArchitecture a;
  WISP_ASSIGN_OR_RETURN(const SafeTensor* items, FindMatrix(path, file, "item_embedding.weight", kMaxItems));
  const bool learned = file.Find("position_embedding.weight") != nullptr;
  a.num_items = static_cast<uint32_t>(items->shape[0]);
  a.width = static_cast<uint32_t>(items->shape[1]);
  if (learned) {
    WISP_ASSIGN_OR_RETURN(const SafeTensor* positions, FindMatrix(path, file, "position_embedding.weight", kMaxLength));
    a.max_length = static_cast<uint32_t>(positions->shape[0]);
  }
  a.position_table = learned ? PositionTable::kLearned : PositionTable::kNone;
  a.num_blocks = 0;
  while (a.num_blocks < kMaxBlocks &&
         file.Find("blocks." + std::to_string(a.num_blocks) + ".feed_forward_in.weight") != nullptr)
    ++a.num_blocks;
  if (a.num_blocks > 0) {
    WISP_ASSIGN_OR_RETURN(const SafeTensor* in,
                          FindMatrix(path, file, "blocks.0.feed_forward_in.weight", 8 * kMaxWidth));
    const SafeTensor* out = file.Find("blocks.0.feed_forward_out.weight");
    const uint64_t inner = out != nullptr && out->shape.size() == 2 ? out->shape[1] : in->shape[0];
    a.inner_width = static_cast<uint32_t>(std::min<uint64_t>(inner, 4 * kMaxWidth));
    a.gated = in->shape[0] == 2 * inner;
    const bool biased = file.Find("blocks.0.feed_forward_in.bias") != nullptr;
    const bool qkv_biased = file.Find("blocks.0.attention.in_proj_bias") != nullptr;
    a.biases = biased ? Biases::kAll : qkv_biased ? Biases::kQkv : Biases::kNone;
    a.norm_kind = file.Find("blocks.0.attention_norm.bias") != nullptr ? NormKind::kLayer : NormKind::kRms;
    a.residual =
        file.Find(TorchName("block0.attention_residual_gate.weight")) != nullptr ? Residual::kGated : Residual::kPlain;
  }
  a.norm = file.Find("final_norm.weight") != nullptr ? NormPlacement::kPre : NormPlacement::kPost;
  a.output_table = file.Find("output_embedding.weight") != nullptr ? OutputTable::kUntied : OutputTable::kTied;
  a.output_bias = file.Find("output_bias") != nullptr ? OutputBias::kTrained : OutputBias::kNone;
  a.re_attention = file.Find("item_embedding.variance") != nullptr ? ReAttention::kOn : ReAttention::kOff;
  return a;
}

Result<std::vector<float>> ReadWeights(const std::string& path, const SafeTensorsFile& file,
                                       const Architecture& architecture) {
  const std::vector<ParameterSpec> parameters = ListParameters(architecture);
  WISP_RETURN_IF_ERROR(CheckShapes(path, file, parameters));
  std::vector<float> weights(FlatSize(parameters));
  for (const ParameterSpec& p : parameters) {
    const std::span<float> values = std::span(weights).subspan(p.offset, p.size());
    file.Find(TorchName(p.name))->CopyTo(values);
    WISP_RETURN_IF_ERROR(CheckNumbers(path, p, values));
  }
  return weights;
}

}  // namespace wisp::convert
