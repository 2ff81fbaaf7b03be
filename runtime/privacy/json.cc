#include "runtime/privacy/json.h"

#include <cmath>
#include <utility>

#include "runtime/core/decimal.h"
#include "runtime/core/hex.h"
#include "runtime/core/text.h"

namespace wisp::privacy {
namespace {

// The code point of a well-formed character of `length` bytes, 1 to 3.
uint32_t CodePoint(std::string_view text, size_t length) {
  uint32_t point = static_cast<uint8_t>(text[0]) & (length == 1 ? 0x7Fu : 0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  return point;
}

// Appends the character as a JSON escape of four hexadecimal digits.
void AppendEscape(std::string& json, std::string_view text, size_t length) {
  json += "\\u" + ToHex(CodePoint(text, length), 4);
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Parses a number that this file wrote, with a sign of either kind in front.
double ParseDouble(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  (void)ReadDecimal(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string ShortText(double number, int digits) {
  char text[kDecimalBytes];
  return {text, WriteDecimal(text, number, digits)};
}

std::string EpsilonText(double number, int digits) {
  if (!(number >= 0 && std::isfinite(number))) return DoubleText(number);
  std::string text = ShortText(number, digits);
  const double shown = ParseDouble(text);
  if (shown >= number) return text;
  // Adds one in the last digit shown. Decimals with so few digits convert to double and back unchanged.
  char nearest[kDecimalBytes];
  const std::string_view scientific(nearest,
                                    static_cast<size_t>(WriteScientific(nearest, number, digits - 1) - nearest));
  const int exponent = static_cast<int>(ParseDouble(scientific.substr(scientific.find('e') + 1)));
  return ShortText(shown + ParseDouble("1e" + std::to_string(exponent - digits + 1)), digits);
}

std::string DoubleText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "infinity" : "-infinity";
  char buffer[kDecimalBytes];
  return {buffer, WriteDecimal(buffer, number)};
}

void JsonWriter::NewLine() {
  text_ += '\n';
  text_.append(2 * counts_.size(), ' ');
}

void JsonWriter::BeginValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (counts_.empty()) return;
  if (counts_.back()++ > 0) text_ += ',';
  NewLine();
}

JsonWriter& JsonWriter::Open(char bracket) {
  BeginValue();
  text_ += bracket;
  counts_.push_back(0);
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  const bool empty = counts_.back() == 0;
  counts_.pop_back();
  if (!empty) NewLine();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BeginValue();
  AppendQuoted(key);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) {
  BeginValue();
  AppendQuoted(text);
  return *this;
}

JsonWriter& JsonWriter::Value(double number) {
  if (!std::isfinite(number)) return Value(std::string_view(DoubleText(number)));
  BeginValue();
  text_ += DoubleText(number);
  return *this;
}

JsonWriter& JsonWriter::Value(uint64_t number) {
  BeginValue();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::Value(bool value) {
  BeginValue();
  text_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeginValue();
  text_ += "null";
  return *this;
}

void JsonWriter::AppendQuoted(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text.front();
    if (length == 0) {
      text_ += kReplacement;
    } else if (IsControl(text, length) && c != '\t') {
      AppendEscape(text_, text, length);
    } else if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '\t') {
      text_ += "\\t";
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

std::string EscapedJson(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  while (!json.empty()) {
    const size_t length = Utf8Length(json);
    const bool is_layout = json.front() == '\t' || json.front() == '\r';
    if (length == 0) {
      escaped += kReplacement;
    } else if (IsControl(json, length) && !is_layout) {
      AppendEscape(escaped, json, length);
    } else {
      escaped += json.substr(0, length);
    }
    json.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

std::string JsonWriter::Take() {
  text_ += '\n';
  counts_.clear();
  after_key_ = false;
  return std::exchange(text_, {});
}

}  // namespace wisp::privacy
