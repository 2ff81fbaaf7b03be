#include "runtime/train/run/run_spec.h"

#include <cstring>
#include <system_error>
#include <utility>

#include "runtime/core/decimal.h"
#include "runtime/privacy/json.h"
#include "runtime/train/run/classifier_start.h"

namespace wisp {
namespace {

template <class T>
void Copy(T value, void* at) {
  std::memcpy(at, &value, sizeof(T));
}

template <class T>
T Read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

std::string Listed(std::span<const ChoiceWord> words) {
  std::string list;
  for (const ChoiceWord& w : words) list += (list.empty() ? "" : ", ") + std::string(w.word);
  return list;
}

// Writes a whole number with all its digits if six significant digits would change it.
std::string BoundText(double bound) {
  const std::string text = privacy::ShortText(bound, 6);
  double read = 0;
  const bool says_all = ReadDecimal(text.data(), text.data() + text.size(), read).ec == std::errc() && read == bound;
  return says_all ? text : std::to_string(static_cast<uint64_t>(bound));
}

std::string Quoted(const std::string& text) { return '"' + text + '"'; }

std::string NumberText(const FieldSlot& slot) {
  if (!slot.is_optional)
    return slot.bytes == sizeof(float) ? privacy::ShortText(Read<float>(slot.at))
                                       : privacy::ShortText(Read<double>(slot.at));
  const auto* number = static_cast<const std::optional<double>*>(slot.at);
  return *number ? privacy::ShortText(**number) : "";
}

std::string FlagText(const FieldSlot& slot) {
  if (!slot.is_optional) return *static_cast<const bool*>(slot.at) ? "true" : "false";
  const auto* flag = static_cast<const std::optional<bool>*>(slot.at);
  return !*flag ? "" : **flag ? "true" : "false";
}

}  // namespace

void FieldSlot::SetFlag(bool value) const {
  is_optional ? void(*static_cast<std::optional<bool>*>(at) = value) : void(*static_cast<bool*>(at) = value);
}

void FieldSlot::SetWhole(uint64_t value) const {
  bytes == sizeof(uint32_t) ? Copy(static_cast<uint32_t>(value), at) : Copy(value, at);
}

void FieldSlot::SetNumber(double value) const {
  if (is_optional) {
    *static_cast<std::optional<double>*>(at) = value;
  } else {
    bytes == sizeof(float) ? Copy(static_cast<float>(value), at) : Copy(value, at);
  }
}

void FieldSlot::SetChoice(int value) const { Copy(value, at); }
void FieldSlot::SetText(std::string value) const { *static_cast<std::string*>(at) = std::move(value); }
void FieldSlot::SetTexts(std::vector<std::string> v) const {
  *static_cast<std::vector<std::string>*>(at) = std::move(v);
}
void FieldSlot::SetNumbers(std::vector<double> v) const { *static_cast<std::vector<double>*>(at) = std::move(v); }

RunSpec DefaultsFor(RunKind kind) {
  RunSpec s;
  TrainingOptions& o = s.training;
  switch (kind) {
    case RunKind::kEvents:
      break;
    case RunKind::kTexts:
      s.text.emplace();
      s.epochs = 3;
      o.expected_batch = 64;
      o.optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 2e-4f, .decay = Decay::kLinear};
      o.privacy.steps_per_charge = 10;
      break;
    case RunKind::kClasses:
      s.architecture = UniformArchitecture{.attend = Attend::kAll};
      s.unit = privacy::PrivacyUnit::kInteraction;  // one labelled text is one record
      o.method = Method::kDpFp;
      o.sampling = Sampling::kPoisson;
      o.expected_batch = 32;
      o.optimizer.kind = OptimizerKind::kAdamW;
      break;
    case RunKind::kDevice:
      s.hold_out = HoldOut::kNothing;
      s.epochs = 20;
      o.method = Method::kPhantom;
      o.sampling = Sampling::kPoisson;
      o.expected_batch = 64;
      o.optimizer.learning_rate = 0.003f;
      o.optimizer.decay = Decay::kLinear;
      break;
  }
  return s;
}

TrainingOptions MakeOptions(const RunSpec& spec) {
  TrainingOptions o = spec.training;
  // The seed of a classifier's recipe is that of fresh weights alone.
  if (!spec.classes.empty()) {
    o.seed = TrainingOptions().seed;
    o.classes_hash = HashClasses(spec.classes);
  }
  if (spec.text) o.cut_to = spec.text->max_length;
  return o;
}

FieldType GetType(const Field& field) {
  RunSpec any;
  any.text.emplace();
  return field.slot(any).type;
}

std::string Allowed(const Field& field) {
  switch (GetType(field)) {
    case FieldType::kFlag:
      return "true and false";
    case FieldType::kWhole:
    case FieldType::kNumber:
      return std::string(GetType(field) == FieldType::kWhole ? "a whole number" : "a number") + " from " +
             BoundText(field.low) + " to " + BoundText(field.high);
    case FieldType::kText:
      return field.words.empty() ? "a text" : Listed(field.words);
    case FieldType::kChoice:
      return Listed(field.words);
    case FieldType::kTexts:
      return "a list of texts";
    case FieldType::kNumbers:
      return "a list of numbers";
    case FieldType::kObject:
      return "an object";
  }
  return "";
}

std::string DefaultText(const Field& field, RunKind kind) {
  RunSpec spec = DefaultsFor(kind);
  if (!spec.text) spec.text.emplace();
  return ValueText(field, spec);
}

std::string ValueText(const Field& field, RunSpec& spec) {
  const FieldSlot slot = field.slot(spec);
  switch (slot.type) {
    case FieldType::kFlag:
      return FlagText(slot);
    case FieldType::kWhole:
      return std::to_string(slot.bytes == sizeof(uint32_t) ? Read<uint32_t>(slot.at) : Read<uint64_t>(slot.at));
    case FieldType::kNumber:
      return NumberText(slot);
    case FieldType::kText:
      return Quoted(*static_cast<const std::string*>(slot.at));
    case FieldType::kChoice:
      for (const ChoiceWord& w : field.words) {
        if (w.value == Read<int>(slot.at)) return Quoted(w.word);
      }
      return "";
    case FieldType::kTexts:
    case FieldType::kNumbers:
    case FieldType::kObject:
      return "";
  }
  return "";
}

}  // namespace wisp
