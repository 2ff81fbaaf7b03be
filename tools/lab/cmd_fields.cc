// Implements `wisp-lab fields`: the table of runtime/train/run/run_spec.h. tests/fields.py checks the reference of
// recipes and the ports against it.
#include <nlohmann/json.hpp>

#include "runtime/train/run/run_spec.h"
#include "tools/lab/commands.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

constexpr std::pair<const char*, RunKind> kKinds[] = {{"events", RunKind::kEvents},
                                                      {"texts", RunKind::kTexts},
                                                      {"classes", RunKind::kClasses},
                                                      {"device", RunKind::kDevice}};

const char* ToText(FieldType type) {
  switch (type) {
    case FieldType::kFlag:
      return "flag";
    case FieldType::kWhole:
      return "whole";
    case FieldType::kNumber:
      return "number";
    case FieldType::kText:
      return "text";
    case FieldType::kChoice:
      return "choice";
    case FieldType::kTexts:
      return "list of texts";
    case FieldType::kNumbers:
      return "list of numbers";
    case FieldType::kObject:
      return "object";
  }
  return "";
}

Json ToJson(const Field& field) {
  Json j = {{"path", field.path}, {"type", ToText(GetType(field))}, {"allowed", Allowed(field)}};
  if (field.low != 0 || field.high != 0) j["low"] = field.low, j["high"] = field.high;
  for (const ChoiceWord& word : field.words) j["words"].push_back(word.word);
  for (const auto& [name, kind] : kKinds) {
    if (FindField(field.path, kind) == &field) j["defaults"][name] = DefaultText(field, kind);
  }
  for (const auto& [name, text] : {std::pair{"unit", field.unit}, std::pair{"option", field.option},
                                   std::pair{"port", field.port}, std::pair{"sentence", field.sentence}})
    j[name] = text;
  return j;
}

}  // namespace

Status ListFields(const FieldsArguments&, OutputFormat format) {
  Json all = Json::array();
  for (const Field& field : Fields()) all.push_back(ToJson(field));
  if (format == OutputFormat::kJson) {
    PrintJson(all);
    return OkStatus();
  }
  for (const Field& field : Fields()) PrintText("%s: %s; %s\n", field.path, field.sentence, Allowed(field).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
