// Shared parts of the text readers: lines, and values as messages show them.
#ifndef WISP_RUNTIME_DATA_LINES_H_
#define WISP_RUNTIME_DATA_LINES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/first_characters.h"
#include "runtime/core/status.h"
#include "runtime/core/text.h"
#include "runtime/data/date_time.h"
#include "runtime/data/sequences.h"

namespace wisp::data {

// A longer line or quoted record is not an event: the file is of another kind, or a quote is never closed.
inline constexpr size_t kMaxLineBytes = size_t{1} << 20;

// Removes byte order marks from the front. This is done for every line alike, because which line comes first depends on
// other records, and must change nothing.
inline std::string_view WithoutMarks(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  while (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

// A value for a message: its first characters, without control characters for a terminal.
inline std::string Shown(std::string_view value) {
  constexpr size_t kMost = 40;
  const std::string_view beginning = FirstCharacters(value, kMost);
  return "'" + OneLine(std::string(beginning)) + (beginning.size() < value.size() ? "...'" : "'");
}

// Iterates over lines without their ends (LF or CRLF) and without byte order marks; skips blank lines. `number` counts
// from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool Next() {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      line_ = WithoutMarks(rest_.substr(0, end));
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

inline std::string TooLong(size_t bytes) {
  return std::to_string(bytes) + " bytes without an end of the line; allowed are at most " +
         std::to_string(kMaxLineBytes);
}

// True if a file of texts is written in another form than the one it is read in: many of its texts cannot be read, and
// more than can. Each text is a record of its own and counts once. So a single record changes the result only if
// exactly half can be read, or if it reaches the smallest number. Logs of events count users instead
// (SequenceBuilder::CheckForm).
inline constexpr uint64_t kMinTextsOfAForm = 100;
inline bool HasAnotherForm(uint64_t bad, uint64_t read) { return bad >= kMinTextsOfAForm && bad > read; }

// The error about such a file; `rows` names what was counted. It is reported before anything is charged, to the device
// alone.
inline Status AnotherForm(const std::string& name, uint64_t bad, uint64_t read, const char* rows,
                          const std::string& first) {
  return InvalidData(name, ": ", bad, " of its ", bad + read, " ", rows,
                     " cannot be read, so nothing can be learned from it (local only). The first: ", first);
}

inline Status BadTime(const SequenceBuilder& builder, uint64_t line, std::string_view value) {
  return builder.Error(line, "the time is " + Shown(value) + "; " + std::string(kTimeFormats));
}

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_LINES_H_
