#include "tools/wisp/given_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/core/decimal.h"
#include "runtime/train/run/run_spec.h"
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

template <class Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read;
  if constexpr (std::is_floating_point_v<Number>) {
    read = ReadDecimal(text.data(), end, number);
  } else {
    read = std::from_chars(text.data(), end, number);
  }
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

const ChoiceWord* FindWord(const Field& field, const std::string& text) {
  const auto word =
      std::find_if(field.words.begin(), field.words.end(), [&](const ChoiceWord& w) { return text == w.word; });
  return word == field.words.end() ? nullptr : &*word;
}

// The name of a field in messages: its option, or its key in a recipe.
std::string NameOf(const Field& field) { return *field.option != 0 ? std::string("--") + field.option : field.path; }

// Sets one field. False if the value is not allowed.
bool Set(const Field& field, const std::string& text, RunSpec& spec) {
  const FieldSlot slot = field.slot(spec);
  const auto in_range = [&](double number) { return number >= field.low && number <= field.high; };
  if (slot.type == FieldType::kFlag) {
    slot.SetFlag(text == "true");
  } else if (slot.type == FieldType::kWhole) {
    const auto number = ParseNumber<uint64_t>(text);
    if (!number || !in_range(static_cast<double>(*number))) return false;
    slot.SetWhole(*number);
  } else if (slot.type == FieldType::kNumber) {
    const auto number = ParseNumber<double>(text);
    if (!number || !in_range(*number)) return false;
    slot.SetNumber(*number);
  } else if (slot.type == FieldType::kChoice) {
    const ChoiceWord* const word = FindWord(field, text);
    if (word == nullptr) return false;
    slot.SetChoice(word->value);
  } else {
    slot.SetText(text);
  }
  return true;
}

bool IsNumeric(FieldType type) { return type == FieldType::kWhole || type == FieldType::kNumber; }

// A number out of the field's range. CheckNumbers refuses what is no number.
bool IsOutside(const Field& field, const std::string& text) {
  const auto number = ParseNumber<double>(text);
  return number && std::isfinite(*number) && *number >= 0 && !(*number >= field.low && *number <= field.high);
}

std::string MakeHelp(const Field& field, RunKind kind, const std::string& note) {
  std::string help = field.sentence;
  help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
  if (IsNumeric(GetType(field)) || GetType(field) == FieldType::kChoice) help += "; " + Allowed(field);
  if (GetType(field) == FieldType::kFlag) return help + note;
  const std::string fallback = DefaultText(field, kind), of_texts = DefaultText(field, RunKind::kTexts);
  const bool has_default = !fallback.empty() && fallback != "0" && fallback != "\"\"";
  help += "; default: the recipe's" + (has_default ? ", or " + fallback : "");
  if (kind == RunKind::kEvents && of_texts != fallback) help += "; without a recipe " + of_texts;
  return help + note;
}

}  // namespace

void GivenFields::Give(const Field& field, std::string text) {
  for (auto& [given, value] : values_) {
    if (given == &field) return void(value = std::move(text));
  }
  values_.emplace_back(&field, std::move(text));
}

std::string GivenFields::Text(std::string_view path) const {
  for (const auto& [field, text] : values_) {
    if (field->path == path) return text;
  }
  return "";
}

Status GivenFields::Apply(RunSpec& spec, RunKind kind) const {
  for (const auto& [given, text] : values_) {
    if (text.empty()) continue;
    const Field* const field = FindField(given->path, kind);
    if (field == nullptr)
      return InvalidArgument("--", given->option,
                             kind == RunKind::kClasses ? " is not for labelled texts, which --labelled gives"
                                                       : " is for labelled texts: give them with --labelled");
    if (Set(*field, text, spec)) continue;
    if (GetType(*field) != FieldType::kChoice)
      return InvalidArgument(NameOf(*field), " is ", text, ", allowed is ", Allowed(*field));
    const Field* const labelled = FindField(given->path, RunKind::kClasses);
    return InvalidArgument(NameOf(*field), " is '", text, "', allowed are ", Allowed(*field),
                           labelled != nullptr && FindWord(*labelled, text) != nullptr
                               ? ": that one is for labelled texts, which --labelled gives"
                               : "");
  }
  // A recipe for ordinary training has options that private training does not allow.
  if (Has("training.method") && kind != RunKind::kClasses && spec.training.method != Method::kOrdinary) {
    spec.training.sampling = Sampling::kPoisson;
    spec.training.loss = LossWeighting::kRecordMean;
  }
  if (Has("training.epochs")) spec.training.num_steps = 0;
  if (Has("privacy.delta")) spec.goal.allow_delta_of_one_record = false;
  if (Has("privacy.epsilon")) spec.goal.noise_multiplier.reset();
  if (Has("privacy.noise_multiplier")) spec.goal.epsilon.reset();
  return OkStatus();
}

Status OverrideMethod(const std::string& method, TrainingOptions& options) {
  RunSpec spec{.training = options};
  GivenFields given;
  given.Give(*FindField("training.method", RunKind::kEvents), method);
  WISP_RETURN_IF_ERROR(given.Apply(spec, RunKind::kEvents));
  options = std::move(spec.training);
  return OkStatus();
}

Status CheckOneGoal(const GivenFields& given) {
  if (!given.Has("privacy.epsilon") || !given.Has("privacy.noise_multiplier")) return OkStatus();
  return InvalidArgument("--epsilon and --noise-multiplier are both given, and one follows from the other: choose one");
}

CLI::Option* AddField(CLI::App* command, GivenFields& given, const char* path, RunKind kind, const std::string& note) {
  const Field& field = *FindField(path, kind);
  const FieldType type = GetType(field);
  const std::string help = MakeHelp(field, kind, note);
  const std::string name = std::string("--") + field.option;
  const auto give = [to = &given, of = &field](const std::string& text) { to->Give(*of, text); };
  if (type == FieldType::kFlag)
    return command->add_flag_callback(
        name, [give] { give("true"); }, help);
  CLI::Option* option = command->add_option_function<std::string>(name, give, help);
  option->default_function([from = &given, path] { return from->Text(path); });
  if (!IsNumeric(type)) return option;
  option->type_name(type == FieldType::kWhole ? "UINT" : "FLOAT");
  const auto outside = [of = &field](std::string& text) {
    return std::string(IsOutside(*of, text) ? "is outside" : "");
  };
  return option->check(Saying(CLI::Validator(outside, ""), "allowed is " + Allowed(field)));
}

}  // namespace wisp::tools
