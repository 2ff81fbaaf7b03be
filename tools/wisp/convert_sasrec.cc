// Implements `wisp convert` for a SASRec that another program wrote (tools/convert/foreign_sasrec.h). --config gives
// what its tensors do not tell.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {
namespace {

constexpr std::pair<const char*, NormPlacement> kSasrecPlacements[] = {{"pre", NormPlacement::kPre},
                                                                       {"post", NormPlacement::kPost}};
constexpr std::pair<const char*, ActivationKind> kSasrecActivations[] = {
    {"gelu", ActivationKind::kGelu}, {"relu", ActivationKind::kRelu}, {"silu", ActivationKind::kSilu}};

Result<convert::SasrecChoices> ReadChoices(const std::string& config) {
  convert::SasrecChoices choices;
  if (config.empty()) return choices;
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(config));
  JsonSection section(config + ":", json);
  std::optional<uint32_t> heads;
  NormPlacement norm = NormPlacement::kPost;
  ActivationKind activation = ActivationKind::kGelu;
  section.Number("num_heads", heads, 1, kMaxWidth);
  section.Number("norm_epsilon", choices.norm_epsilon, 1e-12, 1e-1);
  section.ParseChoice<NormPlacement>("norm", norm, kSasrecPlacements);
  section.ParseChoice<ActivationKind>("activation", activation, kSasrecActivations);
  WISP_RETURN_IF_ERROR(section.Finish());
  choices.num_heads = heads;
  if (json.contains("norm")) choices.norm = norm;
  if (json.contains("activation")) choices.activation = activation;
  return choices;
}

}  // namespace

Status ReadSasrec(const ConvertArguments& a, const convert::SafeTensorsFile& file, convert::SasrecLayout layout,
                  ModelContents& contents, std::vector<float>& weights) {
  WISP_ASSIGN_OR_RETURN(const convert::SasrecChoices choices, ReadChoices(a.config));
  WISP_ASSIGN_OR_RETURN(contents.architecture, convert::SasrecArchitecture(a.in, file, layout, choices));
  WISP_ASSIGN_OR_RETURN(weights, convert::SasrecWeights(a.in, file, layout, contents.architecture));
  if (layout == convert::SasrecLayout::kPmixer) {
    std::fprintf(
        stderr,
        "wisp: %s is of SASRec.pytorch, which attends to the padding before a history shorter than %u: lists of "
        "such histories differ from its own, those of longer ones do not\n",
        OneLine(a.in).c_str(), contents.architecture.max_length);
  }
  return OkStatus();
}

std::vector<std::string> NumbersFromOne(uint32_t count) {
  std::vector<std::string> numbers;
  for (uint32_t i = 1; i <= count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

}  // namespace wisp::tools
