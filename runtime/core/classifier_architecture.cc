#include "runtime/core/classifier_architecture.h"

#include <string>

namespace wisp {
namespace {

constexpr size_t kAlignFloats = 16;  // every parameter starts on 64 bytes (ParameterSpec::offset)

}  // namespace

Status Validate(const ClassifierArchitecture& a) {
  WISP_RETURN_IF_ERROR(Validate(a.encoder));
  if (a.num_classes < 2 || a.num_classes > kMaxClasses) {
    return InvalidData("classifier: num_classes is ", a.num_classes, ", allowed are 2 to ", kMaxClasses);
  }
  if (a.encoder.output_table != OutputTable::kTied || a.encoder.output_bias != OutputBias::kNone) {
    return InvalidData(
        "classifier: the encoder has a next-item head of its own; output_table must be tied and output_bias none");
  }
  if (a.encoder.re_attention == ReAttention::kOn)
    return Unsupported("classifier: re-attention is offered for recommenders only; re_attention must be off");
  if (a.encoder.attend != Attend::kAll) {
    return InvalidData(
        "classifier: the first position is pooled, and with causal attention it sees itself alone; attend must be all");
  }
  return OkStatus();
}

std::vector<ParameterSpec> ParametersOf(const ClassifierArchitecture& a) {
  std::vector<ParameterSpec> parameters = ParametersOf(a.encoder);
  const uint32_t d = a.encoder.width;
  size_t next = FlatSize(parameters);
  const auto add = [&](const char* name, uint32_t rows, uint32_t cols, ParameterRole role) {
    parameters.push_back({name, rows, cols, role, /*trained=*/true, next});
    next += (parameters.back().size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
  };
  add("pooler.weight", d, d, ParameterRole::kMatrix);
  add("pooler.bias", 1, d, ParameterRole::kVector);
  add("head.weight", a.num_classes, d, ParameterRole::kMatrix);
  add("head.bias", 1, a.num_classes, ParameterRole::kVector);
  return parameters;
}

}  // namespace wisp
