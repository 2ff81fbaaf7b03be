#include "tools/wisp/recipe/recipe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "runtime/core/native_path.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {

namespace {

// Reads one key. The setter follows from the field's type.
void ReadField(JsonSection& s, const char* key, const Field& field, RunSpec& spec) {
  const nlohmann::json* json = s.Any(key);
  if (json == nullptr) return;
  const FieldSlot slot = field.slot(spec);
  const auto refuse = [&] {
    const bool several = slot.type == FieldType::kFlag || !field.words.empty();
    s.Fail(InvalidData(s.where(), ".", key, " is ", Dumped(*json), several ? ", allowed are " : ", allowed is ",
                       Allowed(field)));
  };
  const auto in_range = [&] { return json->get<double>() >= field.low && json->get<double>() <= field.high; };
  const auto all = [&](bool (nlohmann::json::*is)() const noexcept) {
    return json->is_array() &&
           std::all_of(json->begin(), json->end(), [&](const nlohmann::json& value) { return (value.*is)(); });
  };
  switch (slot.type) {
    case FieldType::kFlag:
      return json->is_boolean() ? slot.SetFlag(json->get<bool>()) : refuse();
    case FieldType::kWhole:
      return json->is_number_integer() && in_range() ? slot.SetWhole(json->get<uint64_t>()) : refuse();
    case FieldType::kNumber:
      return json->is_number() && in_range() ? slot.SetNumber(json->get<double>()) : refuse();
    case FieldType::kText:
      if (!json->is_string() || (!field.words.empty() && json->get<std::string>() != field.words[0].word))
        return refuse();
      return slot.SetText(json->get<std::string>());
    case FieldType::kChoice:
      for (const ChoiceWord& word : field.words) {
        if (json->is_string() && json->get<std::string>() == word.word) return slot.SetChoice(word.value);
      }
      return refuse();
    case FieldType::kTexts:
      return all(&nlohmann::json::is_string) ? slot.SetTexts(json->get<std::vector<std::string>>()) : refuse();
    case FieldType::kNumbers:
      return all(&nlohmann::json::is_number) ? slot.SetNumbers(json->get<std::vector<double>>()) : refuse();
    case FieldType::kObject:
      return;
  }
}

// Reads the fields whose path begins with `prefix`, in the order of the table.
void ReadFields(JsonSection& s, const std::string& prefix, RunKind kind, RunSpec& spec) {
  std::set<std::string> sections;
  for (const Field& field : Fields()) {
    if ((field.kinds & static_cast<uint8_t>(kind)) == 0 || !std::string_view(field.path).starts_with(prefix)) continue;
    const char* key = field.path + prefix.size();
    const char* dot = std::strchr(key, '.');
    if (GetType(field) == FieldType::kObject) {
      const std::string name = key;
      s.Object(key, [&](JsonSection& inner) {
        if (name == "adapter") return ReadAdapter(inner, spec.adapter);
        ReadArchitecture(inner, {.attend = spec.architecture.attend}, spec.architecture);
      });
    } else if (dot == nullptr) {
      ReadField(s, key, field, spec);
    } else if (const std::string section(key, dot); sections.insert(section).second) {
      s.Object(section.c_str(), [&](JsonSection& inner) { ReadFields(inner, prefix + section + ".", kind, spec); });
    }
  }
}

// Reads a recipe of that kind.
Result<RunSpec> Parse(const std::string& where, const nlohmann::json& json, RunKind kind) {
  RunSpec spec = DefaultsFor(kind);
  spec.text.emplace();  // so that its keys are known
  JsonSection s(where, json);
  ReadFields(s, "", kind, spec);
  if (json.is_object() && !json.contains("text")) spec.text.reset();
  if (json.is_object() && !json.contains("adapter")) spec.adapter.reset();
  if (spec.text) {
    const Result<data::TextUnit> unit = data::ParseTextUnit(where + " text.record", spec.text->record);
    if (unit.ok()) spec.text->unit = *unit;
    if (!unit.ok()) s.Fail(InvalidData(unit.status().message()));
  }
  WISP_RETURN_IF_ERROR(s.Finish());
  spec.unit_chosen = json.contains("privacy") && json["privacy"].contains("unit");
  if (json.contains("architecture")) {
    for (const auto& [key, value] : json["architecture"].items()) spec.names_architecture.push_back(key);
  }
  return spec;
}

}  // namespace

bool DescribesClassifier(const nlohmann::json& json) {
  return json.is_object() && (json.contains("dp_fp") ||
                              (json.contains("data") && json["data"].is_object() && json["data"].contains("classes")));
}

Status CheckTuning(const std::string& declared) {
  return privacy::CheckTuning(
      "the tuning that is declared (--uncharged-tuning, or privacy.uncharged_tuning in a recipe)", declared);
}

Result<RunSpec> ReadRecipe(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  if (DescribesClassifier(json))
    return InvalidData(path, ": it is the recipe of a classifier, for wisp train --labelled and wisp-lab audit step");
  return ParseRecipe(path + ":", json);
}

constexpr size_t kMaxDepth = 32;  // depth of nested objects and lists; a recipe has 4

Result<nlohmann::json> ReadJson(const std::string& path) {
  std::ifstream file(NativePath(path));
  if (!file) return IoError(path, ": cannot be opened: ", std::strerror(errno));
  std::stringstream text;
  text << file.rdbuf();
  try {
    size_t deepest = 0;
    std::vector<std::set<std::string>> keys(kMaxDepth + 2);
    std::string twice;
    const auto note = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
      deepest = std::max(deepest, static_cast<size_t>(depth));
      if (deepest > kMaxDepth) return false;
      auto& seen = keys[static_cast<size_t>(depth)];
      if (event == nlohmann::json::parse_event_t::object_start) keys[static_cast<size_t>(depth) + 1].clear();
      if (event == nlohmann::json::parse_event_t::key && !seen.insert(parsed.get<std::string>()).second)
        twice = parsed.get<std::string>();
      return true;
    };
    nlohmann::json json = nlohmann::json::parse(text.str(), note);
    if (deepest > kMaxDepth)
      return InvalidData(path, ": objects lie deeper than ", kMaxDepth, " in each other, which is allowed");
    if (!twice.empty())
      return Readable(InvalidData(path, ": the key '", twice, "' is there twice in one object; allowed is once"));
    return json;
  } catch (const nlohmann::json::exception& error) {
    // The library puts its own name in brackets before the sentence.
    const std::string sentence = error.what();
    const size_t end = sentence.starts_with("[") ? sentence.find("] ") : std::string::npos;
    return Readable(
        InvalidData(path, ": not JSON: ", (end == std::string::npos ? sentence : sentence.substr(end + 2))));
  }
}

Result<RunSpec> ParseRecipe(const std::string& where, const nlohmann::json& json) {
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, Parse(where, json, RunKind::kEvents));
  using privacy::PrivacyUnit;
  if (recipe.text && recipe.unit_chosen && recipe.unit != PrivacyUnit::kUser &&
      recipe.unit != PrivacyUnit::kInteraction)
    return InvalidData(where, " privacy.unit is ", privacy::ToText(recipe.unit),
                       ", allowed are interaction and user: the records are texts");
  return recipe;
}

Result<RunSpec> ReadClassifyRecipe(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  if (json.is_object() && !DescribesClassifier(json)) {
    return InvalidData(
        path,
        ": it is the recipe of a recommender, for wisp train --data or --texts; one of a classifier names its classes "
        "(data.classes)");
  }
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, Parse(path + ":", json, RunKind::kClasses));
  if (recipe.classes.size() < 2)
    return InvalidData(path, ": data.classes names ", recipe.classes.size(), " classes, allowed are 2 and more");
  return recipe;
}

Status OverrideTrains(const std::string& trains, TrainingOptions& o) {
  if (trains.empty()) return OkStatus();
  if (trains != "all" && trains != "blocks" && trains != "head")
    return InvalidArgument("--trains is '", trains, "', allowed are all, blocks and head");
  if (o.method == Method::kDpFp && trains != "all")
    return InvalidArgument("--trains is '", trains,
                           "', and dp-fp says by --mode what trains: aggregate the head alone, ",
                           "clipped and paper everything; leave --trains out");
  o.trained_part = trains == "all" ? TrainedPart::kAll : trains == "blocks" ? TrainedPart::kBlocks : TrainedPart::kHead;
  return OkStatus();
}

Status CheckPublicCatalogue(const RunSpec& recipe) {
  for (const auto& [name, count] :
       {std::pair{"min_item_events", recipe.min_item_events}, std::pair{"min_user_events", recipe.min_user_events}}) {
    if (count <= 1) continue;
    return PrivacyRefused("data.", name, " is ", count,
                          ", allowed is 1 where the list of items is taken from the data: which items are in it would "
                          "follow from how much a user did, which no declaration covers");
  }
  return OkStatus();
}

}  // namespace wisp::tools
