#include "runtime/privacy/ledger/record_spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/core/hex.h"
#include "runtime/core/text.h"

namespace wisp::privacy {
namespace {

constexpr std::string_view kEvents = "events", kAny = "any", kChunk = "chunk:";

// A name in RecordSpec::Source: in ToText, in InWords, and the column that readers prefer by default.
struct SourceName {
  std::string RecordSpec::Source::*name;
  std::string_view in_text, in_words, usual;
};
constexpr SourceName kNames[] = {{&RecordSpec::Source::user_column, "user", "users by the column", "user"},
                                 {&RecordSpec::Source::item_column, "item", "items by the column", "item"},
                                 {&RecordSpec::Source::time_column, "time", "times by the column", "time"},
                                 {&RecordSpec::Source::table, "table", "from the table", "events"}};

// Escapes blanks and the characters that have a meaning in ToText.
std::string Escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    text += is_plain ? std::string(1, c) : "%" + ToHex(static_cast<unsigned char>(c), 2);
  }
  return text;
}

// nullopt if `text` is not an escaped name.
std::optional<std::string> Unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      name += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const end = text.data() + std::min(i + 3, text.size());
    const auto read = std::from_chars(text.data() + i + 1, end, byte, 16);
    if (read.ec != std::errc() || read.ptr != text.data() + i + 3) return std::nullopt;
    name += static_cast<char>(byte);
    i += 2;
  }
  return name;
}

// Removes " NAME=VALUE" from the front of `rest` and returns the value. nullopt if another name is there.
std::optional<std::string_view> Take(std::string_view& rest, std::string_view name) {
  if (!rest.starts_with(' ') || !rest.substr(1).starts_with(name)) return std::nullopt;
  std::string_view value = rest.substr(1 + name.size());
  if (!value.starts_with('=')) return std::nullopt;
  value = value.substr(1, value.find(' ') - 1);
  rest.remove_prefix(name.size() + 2 + value.size());
  return value;
}

template <typename Number>
bool TakeNumber(std::string_view& rest, std::string_view name, Number& number) {
  const auto value = Take(rest, name);
  if (!value) return true;
  const auto read = std::from_chars(value->data(), value->data() + value->size(), number);
  return read.ec == std::errc() && read.ptr == value->data() + value->size();
}

bool TakeName(std::string_view& rest, std::string_view name, std::string& text) {
  const auto value = Take(rest, name);
  if (!value) return true;
  const auto read = Unescaped(*value);
  if (read) text = *read;
  return read.has_value();
}

std::string TextInWords(const std::string& kind) {
  if (kind == RecordSpec::kLabelledText) return "one labelled text";
  if (kind == RecordSpec::kPromptText) return "one private text in a prompt";
  if (kind.starts_with(kChunk)) return "one chunk of " + kind.substr(kChunk.size()) + " bytes of text";
  return "one " + kind + " of text";
}

}  // namespace

RecordSpec RecordSpec::OfEvents(const Events& given) {
  Events events = given;
  const bool has_times = events.unit == PrivacyUnit::kSession || events.unit == PrivacyUnit::kDay;
  // Clears the fields that do not affect the definition of a record.
  if (events.unit != PrivacyUnit::kSession) events.session_gap = 0;
  if (!has_times) events.source.time_column.clear();
  for (const auto& n : kNames) {
    if (events.source.*n.name == n.usual) (events.source.*n.name).clear();
  }
  return {std::string(kEvents), std::move(events)};
}

RecordSpec RecordSpec::OfTexts(PrivacyUnit unit, std::string kind) { return {std::move(kind), {.unit = unit}}; }

RecordSpec RecordSpec::Any(PrivacyUnit unit) { return {std::string(kAny), {.unit = unit}}; }

bool RecordSpec::is_any() const { return kind_ == kAny; }
bool RecordSpec::is_of_texts() const { return kind_ != kEvents && kind_ != kAny; }

std::string RecordSpec::InWords() const {
  if (is_any()) return "whatever the weights learned from";
  if (is_of_texts()) return TextInWords(kind_) + (unit() == PrivacyUnit::kUser ? ", all that one user wrote" : "");
  std::string words;
  switch (unit()) {
    case PrivacyUnit::kUser:
      words = "all events of one user";
      break;
    case PrivacyUnit::kSession:
      words = "the events of one user without a pause of more than " + Counted(events_.session_gap, "second");
      break;
    case PrivacyUnit::kDay:
      words = "the events of one user on one day";
      break;
    case PrivacyUnit::kInteraction:
      words = "one event";
      break;
    case PrivacyUnit::kDevice:
      return "all that one device holds";
  }
  if (events_.times_per_second != 1 || unit() == PrivacyUnit::kSession || unit() == PrivacyUnit::kDay)
    words += ", by times that count " + std::to_string(events_.times_per_second) + " to the second";
  for (const auto& n : kNames) {
    if (const std::string& name = events_.source.*n.name; !name.empty())
      words += ", " + std::string(n.in_words) + " '" + OneLine(name) + "'";
  }
  return words;
}

std::string RecordSpec::ToText() const {
  std::string text = kind_ + " unit=" + std::string(privacy::ToText(unit()));
  if (unit() == PrivacyUnit::kSession) text += " gap=" + std::to_string(events_.session_gap);
  if (events_.times_per_second != 1 ||
      (kind_ == kEvents && unit() != PrivacyUnit::kUser && unit() != PrivacyUnit::kDevice))
    text += " times_per_second=" + std::to_string(events_.times_per_second);
  for (const auto& n : kNames) {
    if (const std::string& name = events_.source.*n.name; !name.empty())
      text += " " + std::string(n.in_text) + "=" + Escaped(name);
  }
  return text;
}

Result<RecordSpec> RecordSpec::FromText(const std::string& text) {
  const size_t end = std::min(text.find(' '), text.size());
  std::string_view rest = std::string_view(text).substr(end);
  const auto unit = PrivacyUnitFromText(Take(rest, "unit").value_or(""));
  Events e;
  if (unit.ok()) e.unit = *unit;
  const bool read = unit.ok() && TakeNumber(rest, "gap", e.session_gap) &&
                    TakeNumber(rest, "times_per_second", e.times_per_second) &&
                    std::all_of(std::begin(kNames), std::end(kNames),
                                [&](const auto& n) { return TakeName(rest, n.in_text, e.source.*n.name); });
  // A text that ToText would write differently is of another version, or invalid.
  if (RecordSpec spec(text.substr(0, end), std::move(e)); read && end > 0 && spec.ToText() == text) return spec;
  return InvalidData("what one record is stands as '", OneLine(text), "', which this version does not know");
}

}  // namespace wisp::privacy
