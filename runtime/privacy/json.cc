#include "runtime/privacy/json.h"

#include <cstdio>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace wisp::privacy {
namespace {

// Length of the valid UTF-8 sequence at the start of `s`; 0 if there is none (Unicode 15, table 3-7).
size_t Utf8Length(std::string_view s) {
  const auto byte = [s](size_t i) { return static_cast<unsigned char>(i < s.size() ? s[i] : 0); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;  // allowed second bytes
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;   // no overlong forms
    if (first == 0xED) high = 0x9F;  // no surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;  // nothing above U+10FFFF
  }
  if (length == 0 || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
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
  char buffer[32];  // the longest is -2.2250738585072014e-308
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number);
  return std::string(buffer, end.ptr);
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
  constexpr char kHex[] = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text.front();
    if (length == 0) {
      text_ += "\xEF\xBF\xBD";
    } else if (length > 1) {
      text_ += text.substr(0, length);
    } else if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '\t') {
      text_ += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      text_ += "\\u00";
      text_ += kHex[c >> 4];
      text_ += kHex[c & 15];
    } else {
      text_ += c;
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
