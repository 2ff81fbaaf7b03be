#include "runtime/privacy/json.h"

#include <cstdio>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/core/decimal.h"
#include "runtime/core/text.h"

namespace wisp::privacy {
namespace {

// Of a well-formed character of `length` bytes, 1 to 3.
uint32_t CodePoint(std::string_view text, size_t length) {
  uint32_t point = static_cast<uint8_t>(text[0]) & (length == 1 ? 0x7Fu : 0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  return point;
}

}  // namespace

std::string ShortText(double number, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, number);
  return text;
}

std::string EpsilonText(double number, int digits) {
  if (!(number >= 0 && std::isfinite(number))) return DoubleText(number);
  std::string text = ShortText(number, digits);
  if (std::strtod(text.c_str(), nullptr) >= number) return text;
  // One more in the last place that is shown. Decimals of so few digits come back from a double as they went in.
  char nearest[40];
  std::snprintf(nearest, sizeof nearest, "%.*e", digits - 1, number);
  const int exponent = std::atoi(std::strchr(nearest, 'e') + 1);
  std::snprintf(nearest, sizeof nearest, "1e%d", exponent - digits + 1);
  return ShortText(std::strtod(text.c_str(), nullptr) + std::strtod(nearest, nullptr), digits);
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
      text_ += "\xEF\xBF\xBD";
    } else if (IsControl(text, length) && c != '\t') {
      char escape[16];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(CodePoint(text, length)));
      text_ += escape;
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

std::string JsonWriter::Take() {
  text_ += '\n';
  counts_.clear();
  after_key_ = false;
  return std::exchange(text_, {});
}

}  // namespace wisp::privacy
