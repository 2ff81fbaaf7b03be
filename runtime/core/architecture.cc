#include "runtime/core/architecture.h"

#include <cmath>

namespace wisp {
namespace {

constexpr size_t kAlignFloats = 16;  // 64 bytes: one cache line, one AVX-512 register

Status CheckRange(const char* field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidData("architecture: ", field, " is ", value, ", allowed are ", low, " to ", high);
}

struct SpecList {
  std::vector<ParameterSpec> specs;
  size_t next = 0;
  void Add(std::string name, uint32_t rows, uint32_t cols, ParameterRole role, bool trained = true) {
    specs.push_back({std::move(name), rows, cols, role, trained, next});
    next += (specs.back().size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
  }
  void AddNorm(const std::string& name, uint32_t d) {
    Add(name + ".gain", 1, d, ParameterRole::kVector);
    Add(name + ".bias", 1, d, ParameterRole::kVector);
  }
  void AddLinear(const std::string& name, uint32_t n, uint32_t k) {
    Add(name + ".weight", n, k, ParameterRole::kMatrix);
    Add(name + ".bias", 1, n, ParameterRole::kVector);
  }
};

}  // namespace

Status Validate(const Architecture& a) {
  WISP_RETURN_IF_ERROR(CheckRange("num_items", a.num_items, 1, kMaxItems));
  WISP_RETURN_IF_ERROR(CheckRange("max_length", a.max_length, 1, kMaxLength));
  WISP_RETURN_IF_ERROR(CheckRange("width", a.width, 1, kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("num_heads", a.num_heads, 1, a.width));
  WISP_RETURN_IF_ERROR(CheckRange("num_blocks", a.num_blocks, 0, kMaxBlocks));
  WISP_RETURN_IF_ERROR(CheckRange("inner_width", a.inner_width, 1, 4 * kMaxWidth));
  WISP_RETURN_IF_ERROR(CheckRange("activation", static_cast<uint8_t>(a.activation), 0, 1));
  WISP_RETURN_IF_ERROR(CheckRange("norm", static_cast<uint8_t>(a.norm), 0, 1));
  WISP_RETURN_IF_ERROR(CheckRange("output_table", static_cast<uint8_t>(a.output_table), 0, 1));
  WISP_RETURN_IF_ERROR(CheckRange("output_bias", static_cast<uint8_t>(a.output_bias), 0, 2));
  WISP_RETURN_IF_ERROR(CheckRange("positions", static_cast<uint8_t>(a.positions), 0, 1));
  WISP_RETURN_IF_ERROR(CheckRange("attend", static_cast<uint8_t>(a.attend), 0, 1));
  WISP_RETURN_IF_ERROR(CheckRange("re_attention", static_cast<uint8_t>(a.re_attention), 0, 1));
  if (a.width % a.num_heads != 0) {
    return InvalidData("architecture: num_heads is ", a.num_heads, ", which does not divide width ", a.width);
  }
  if (!std::isfinite(a.embedding_scale) || a.embedding_scale <= 0) {
    return InvalidData("architecture: embedding_scale must be a positive number");
  }
  if (!(a.norm_epsilon > 0 && a.norm_epsilon < 1)) {
    return InvalidData("architecture: norm_epsilon must lie between 0 and 1");
  }
  if (!(a.attention_slope >= 0 && a.attention_slope <= 100)) {
    return InvalidData("architecture: attention_slope must lie between 0 and 100");
  }
  const uint64_t d = a.width, f = a.inner_width, tables = a.output_table == OutputTable::kUntied ? 2 : 1;
  const uint64_t total = (tables * a.num_items + a.max_length) * d + 2 * uint64_t{a.num_items} +
                         a.num_blocks * (4 * d * d + 2 * d * f + 16 * d + f);
  return CheckRange("number of parameters", total, 1, kMaxParameters);
}

std::vector<ParameterSpec> ParametersOf(const Architecture& a) {
  SpecList list;
  const uint32_t d = a.width;
  list.Add("item_embedding", a.num_items, d, ParameterRole::kTable);
  list.Add("position_embedding", a.max_length, d, ParameterRole::kTable);
  for (uint32_t b = 0; b < a.num_blocks; ++b) {
    const std::string block = "block" + std::to_string(b);
    list.AddNorm(block + ".attention_norm", d);
    list.AddLinear(block + ".qkv", 3 * d, d);
    list.AddLinear(block + ".attention_out", d, d);
    list.AddNorm(block + ".feed_forward_norm", d);
    list.AddLinear(block + ".feed_forward_in", a.inner_width, d);
    list.AddLinear(block + ".feed_forward_out", d, a.inner_width);
  }
  if (a.norm == NormPlacement::kPre) list.AddNorm("final_norm", d);
  if (a.output_table == OutputTable::kUntied) list.Add("output_embedding", a.num_items, d, ParameterRole::kTable);
  if (a.output_bias != OutputBias::kNone) {
    list.Add("output_bias", 1, a.num_items, ParameterRole::kVector, a.output_bias == OutputBias::kTrained);
  }
  if (a.re_attention == ReAttention::kOn) {
    const auto num_parameters = static_cast<uint32_t>(list.specs.size());
    list.Add(kItemVariance, 1, a.num_items, ParameterRole::kVector, false);
    list.Add(kParameterVariance, 1, num_parameters, ParameterRole::kVector, false);
  }
  return std::move(list.specs);
}

std::vector<float> AttentionSlopes(const Architecture& a) {
  std::vector<float> slopes;
  for (uint32_t h = 0; a.attention_slope > 0 && h < a.num_heads; ++h) {
    slopes.push_back(static_cast<float>(a.attention_slope * std::exp2(-8.0 * h / a.num_heads)));
  }
  return slopes;
}

size_t FlatSize(const std::vector<ParameterSpec>& parameters) {
  if (parameters.empty()) return 0;
  const ParameterSpec& last = parameters.back();
  return last.offset + (last.size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

}  // namespace wisp
