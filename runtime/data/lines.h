// Walking through a text line by line, and numbers in it.
#ifndef WISP_RUNTIME_DATA_LINES_H_
#define WISP_RUNTIME_DATA_LINES_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::data {

inline std::string Where(const std::string& name, uint64_t line) { return name + ", line " + std::to_string(line); }

// A value as a message shows it: cut, and without what a terminal would act on.
inline std::string Shown(std::string_view value) {
  std::string shown(value.substr(0, 40));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return "'" + shown + (value.size() > 40 ? "...'" : "'");
}

// Lines without their ends (LF or CRLF), without a byte order mark, blank ones skipped. `number` counts from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text) {}
  bool Next() {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      ++number_;
      if (line_.find_first_not_of(" \t") != std::string_view::npos) return true;
    }
    return false;
  }
  std::string_view line() const { return line_; }
  uint64_t number() const { return number_; }

 private:
  std::string_view rest_, line_;
  uint64_t number_ = 0;
};

// A whole number, or one with a fraction, which is cut off (some exports write 8.8e8 or 881250949.0).
inline Result<int64_t> ParseTime(const std::string& where, std::string_view value) {
  int64_t whole = 0;
  const char* end = value.data() + value.size();
  const auto exact = std::from_chars(value.data(), end, whole);
  if (exact.ec == std::errc() && exact.ptr == end) return whole;
  double real = 0;
  const auto general = std::from_chars(value.data(), end, real);
  if (general.ec == std::errc() && general.ptr == end && real > -9e18 && real < 9e18) return static_cast<int64_t>(real);
  return InvalidData(where + ": the time is " + Shown(value) + "; allowed is a number between -9e18 and 9e18");
}

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_LINES_H_
