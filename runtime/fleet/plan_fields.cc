#include "runtime/fleet/plan_fields.h"

#include <cmath>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/core/decimal.h"
#include "runtime/core/first_characters.h"
#include "runtime/core/text.h"

namespace wisp::fleet {
namespace {

using Kind = PlanField::Kind;

constexpr size_t kMostTextBytes = 4096;

template <class T>
T Get(const PlanField& field) {
  T value;
  std::memcpy(&value, field.at, sizeof(value));
  return value;
}
template <class T>
void Set(const PlanField& field, T value) {
  std::memcpy(field.at, &value, sizeof(value));
}

bool IsWhole(const PlanField& field) { return field.kind == Kind::kWhole32 || field.kind == Kind::kWhole64; }

uint64_t GetWhole(const PlanField& field) {
  return field.kind == Kind::kWhole32 ? Get<uint32_t>(field) : Get<uint64_t>(field);
}

// The shortest decimal that is this float when it is read as a double and rounded.
double ShortestDouble(float number) {
  for (int digits = 1; digits <= 9; ++digits) {
    char text[kDecimalBytes];
    const char* end = WriteDecimal(text, static_cast<double>(number), digits);
    double read = 0;
    if (ReadDecimal(text, end, read).ec == std::errc() && static_cast<float>(read) == number) return read;
  }
  return static_cast<double>(number);
}

double GetNumber(const PlanField& field) {
  if (IsWhole(field)) return static_cast<double>(GetWhole(field));
  return field.kind == Kind::kFloat ? static_cast<double>(Get<float>(field)) : Get<double>(field);
}

// A number in a sentence: whole ones with all of their digits.
std::string InWords(double number) {
  if (number == std::floor(number) && std::abs(number) < 0x1p53) return std::to_string(static_cast<int64_t>(number));
  return privacy::DoubleText(number);
}

Status ReadNumber(FlatJson& json, const PlanField& field) {
  const auto [least, most] = field.range;
  if (IsWhole(field)) {
    WISP_ASSIGN_OR_RETURN(const int64_t whole,
                          json.Whole(field.name, static_cast<int64_t>(least), static_cast<int64_t>(most)));
    field.kind == Kind::kWhole32 ? Set(field, static_cast<uint32_t>(whole)) : Set(field, static_cast<uint64_t>(whole));
    return OkStatus();
  }
  WISP_ASSIGN_OR_RETURN(const double number, json.Number(field.name, least, most));
  field.kind == Kind::kFloat ? Set(field, static_cast<float>(number)) : Set(field, number);
  return OkStatus();
}

Status ReadWord(FlatJson& json, const PlanField& field) {
  WISP_ASSIGN_OR_RETURN(const size_t index,
                        json.Choice(field.name, std::vector<std::string_view>(field.names.begin(), field.names.end())));
  Set(field, static_cast<int>(index));
  return OkStatus();
}

Status ReadWords(FlatJson& json, const std::string& source, const PlanField& field) {
  WISP_ASSIGN_OR_RETURN(const std::string text, json.Text(field.name, kMostTextBytes));
  uint32_t bits = 0;
  for (std::string_view rest = text;;) {
    const std::string_view word = rest.substr(0, rest.find(','));
    size_t index = 0;
    while (index < field.names.size() && word != field.names[index]) ++index;
    if (index == field.names.size() || (bits >> index & 1) != 0) {
      return InvalidData(source, ": \"", field.name, "\" is \"", OneLine(std::string(FirstCharacters(text, 40))),
                         "\"; allowed are some of ", ListWords(~0u, field.names, ", "),
                         ", each once, with commas between");
    }
    bits |= 1u << index;
    if (word.size() == rest.size()) break;
    rest.remove_prefix(word.size() + 1);
  }
  Set(field, bits);
  return OkStatus();
}

Status ReadField(FlatJson& json, const std::string& source, const PlanField& field) {
  switch (field.kind) {
    case Kind::kTruth: {
      WISP_ASSIGN_OR_RETURN(const bool truth, json.Truth(field.name));
      Set(field, truth);
      return OkStatus();
    }
    case Kind::kText: {
      WISP_ASSIGN_OR_RETURN(*static_cast<std::string*>(field.at), json.Text(field.name, kMostTextBytes));
      return OkStatus();
    }
    case Kind::kWord:
      return ReadWord(json, field);
    case Kind::kWords:
      return ReadWords(json, source, field);
    default:
      return ReadNumber(json, field);
  }
}

}  // namespace

std::string ListWords(uint32_t bits, PlanField::Names names, const char* between) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) text += (text.empty() ? "" : between) + std::string(names[i]);
  }
  return text;
}

void WriteFields(std::span<const PlanField> fields, privacy::JsonWriter& json) {
  for (const PlanField& field : fields) {
    json.Key(field.name);
    switch (field.kind) {
      case Kind::kWhole32:
      case Kind::kWhole64:
        json.Value(GetWhole(field));
        break;
      case Kind::kFloat:
        json.Value(ShortestDouble(Get<float>(field)));
        break;
      case Kind::kDouble:
        json.Value(Get<double>(field));
        break;
      case Kind::kTruth:
        json.Value(Get<bool>(field));
        break;
      case Kind::kText:
        json.Value(*static_cast<const std::string*>(field.at));
        break;
      case Kind::kWord:
        json.Value(field.names[static_cast<size_t>(Get<int>(field))]);
        break;
      case Kind::kWords:
        json.Value(ListWords(Get<uint32_t>(field), field.names, ","));
        break;
    }
  }
}

Status ReadFields(FlatJson& json, const std::string& source, std::span<const PlanField> fields) {
  for (const PlanField& field : fields) WISP_RETURN_IF_ERROR(ReadField(json, source, field));
  return OkStatus();
}

Status CheckFields(const std::string& source, std::span<const PlanField> fields) {
  for (const PlanField& field : fields) {
    if (field.kind <= Kind::kDouble) {
      const double number = GetNumber(field);
      const auto [least, most] = field.range;
      if (number >= least && number <= most) continue;  // not for NaN
      return InvalidArgument(source, ": ", field.name, " is ", InWords(number), ", allowed is ", InWords(least), " to ",
                             InWords(most));
    }
    if (field.kind == Kind::kWords && Get<uint32_t>(field) == 0)
      return InvalidArgument(source, ": ", field.name, " is empty, allowed is one or more");
  }
  return OkStatus();
}

}  // namespace wisp::fleet
