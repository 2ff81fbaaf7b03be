// Splits a delimited text into records and fields. The readers interpret the fields.
#ifndef WISP_RUNTIME_DATA_DELIMITED_RECORDS_H_
#define WISP_RUNTIME_DATA_DELIMITED_RECORDS_H_

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/lines.h"

namespace wisp::data {

// Records of RFC 4180: fields between separators; a field that starts with a quote ends with one, may span lines and
// doubles the quotes in it. A quote inside an unquoted field stands for itself. Between tabs, where most files have no
// quotes, a field is quoted only if its closing quote ends it on the same line: "Best" tea is a name.
class Records {
 public:
  // `lines_alone`: a record ends with its line, even inside quotes, and a malformed record has a fault without ending
  // the reading.
  Records(std::string name, std::string_view text, char separator, bool lines_alone = false)
      : name_(std::move(name)), rest_(WithoutMarks(text)), separator_(separator), lines_alone_(lines_alone) {}

  // False at the end, or after an error. Blank lines are skipped.
  bool Next() {
    while (!rest_.empty() && status_.ok()) {
      line_ = next_line_;
      if (lines_alone_) {
        if (ReadLineAlone()) return true;
        continue;
      }
      status_ = ReadRecord();
      if (!status_.ok()) return false;
      if (fields_.size() > 1 || fields_[0].find_first_not_of(" \t") != std::string_view::npos) return true;
    }
    return false;
  }
  const Status& status() const { return status_; }
  // With lines_alone: the error in this record, whose fields are then empty.
  const Status& fault() const { return fault_; }
  // Valid until Next.
  const std::vector<std::string_view>& fields() const { return fields_; }
  uint64_t line() const { return line_; }                                      // line on which the record starts
  uint64_t num_lines() const { return ended_ ? next_line_ - 1 : next_line_; }  // read so far

 private:
  Status Error(uint64_t line, const std::string& sentence) const {
    return InvalidData(name_, ", line ", line, ": ", sentence);
  }

  // False for a blank line.
  bool ReadLineAlone() {
    const size_t size = std::min(rest_.find('\n'), rest_.size() - 1) + 1;
    const std::string_view after = rest_.substr(size);
    rest_ = rest_.substr(0, size);
    const bool blank = rest_.find_first_not_of(" \t\r\n") == std::string_view::npos;
    const bool ends = rest_.ends_with('\n');
    fault_ = blank ? OkStatus() : ReadRecord();
    rest_ = after;
    next_line_ = line_ + (ends ? 1 : 0);
    ended_ = ends;
    return !blank;
  }

  Status ReadRecord() {
    fields_.clear();
    unquoted_.clear();
    const size_t before = rest_.size();
    for (bool more = true; more;) {
      if (IsQuoted()) {
        WISP_RETURN_IF_ERROR(ReadQuoted());
      } else {
        size_t end = 0;
        while (end < rest_.size() && rest_[end] != separator_ && rest_[end] != '\n') ++end;
        std::string_view field = rest_.substr(0, end);
        rest_.remove_prefix(end);
        if (field.ends_with('\r') && (rest_.empty() || rest_[0] == '\n')) field.remove_suffix(1);
        fields_.push_back(field);
      }
      if (before - rest_.size() > kMaxLineBytes) return Error(line_, TooLong(before - rest_.size()));
      more = rest_.starts_with(separator_);
      if (more) rest_.remove_prefix(1);
    }
    if (rest_ == "\r" || rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    ended_ = !rest_.empty();  // false if the text's last line has no end of line
    if (!ended_) return OkStatus();
    if (rest_[0] != '\n') {
      return Error(next_line_, Shown(rest_.substr(0, rest_.find('\n'))) +
                                   " follows a closing quote; allowed is a separator or the end of the line");
    }
    rest_.remove_prefix(1);
    ++next_line_;
    return OkStatus();
  }

  // True if a quoted field begins here.
  bool IsQuoted() const {
    if (!rest_.starts_with('"')) return false;
    if (separator_ != '\t') return true;
    for (size_t at = 1; at < rest_.size() && rest_[at] != '\n'; ++at) {
      if (rest_[at] != '"') continue;
      const std::string_view after = rest_.substr(at + 1);
      if (after.starts_with('"')) {
        ++at;
        continue;
      }
      return after.empty() || after[0] == separator_ || after[0] == '\n' || after == "\r" || after.starts_with("\r\n");
    }
    return false;
  }

  Status ReadQuoted() {
    rest_.remove_prefix(1);
    std::string* joined = nullptr;  // used for a field with quotes in it; other fields are views
    while (true) {
      const size_t end = rest_.find('"');
      if (end == std::string_view::npos)
        return Error(line_, "a quoted field is not closed; a quote is needed after " + Shown(rest_));
      const std::string_view part = rest_.substr(0, end);
      next_line_ += static_cast<uint64_t>(std::count(part.begin(), part.end(), '\n'));
      rest_.remove_prefix(end + 1);
      const bool doubled = rest_.starts_with('"');
      if (doubled && joined == nullptr) joined = &unquoted_.emplace_back();
      if (joined != nullptr) joined->append(part);
      if (!doubled) {
        fields_.push_back(joined != nullptr ? std::string_view(*joined) : part);
        return OkStatus();
      }
      joined->push_back('"');
      rest_.remove_prefix(1);
    }
  }

  std::string name_;
  std::string_view rest_;
  char separator_;
  bool lines_alone_;
  Status status_, fault_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // a deque: fields_ points into its strings
  uint64_t line_ = 1, next_line_ = 1;
  bool ended_ = true;  // the last record ended with an end of line
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_DELIMITED_RECORDS_H_
