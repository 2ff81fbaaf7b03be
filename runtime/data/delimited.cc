// CSV, TSV and RecBole's .inter: a header that names columns, then one event a record.
#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/data/columns.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

// Records of RFC 4180: fields between separators; a field that starts with a quote ends with one, may span lines and
// doubles the quotes in it. A quote inside an unquoted field stands for itself.
class Records {
 public:
  Records(const SequenceBuilder& builder, std::string_view text, char separator)
      : builder_(builder), rest_(text), separator_(separator) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  // False at the end, or after an error. Blank lines are skipped.
  bool Next() {
    while (!rest_.empty() && status_.ok()) {
      line_ = next_line_;
      status_ = ReadRecord();
      if (!status_.ok()) return false;
      if (fields_.size() > 1 || fields_[0].find_first_not_of(" \t") != std::string_view::npos) return true;
    }
    return false;
  }
  const Status& status() const { return status_; }
  // Valid until Next.
  const std::vector<std::string_view>& fields() const { return fields_; }
  uint64_t line() const { return line_; }                                      // where the record starts
  uint64_t num_lines() const { return ended_ ? next_line_ - 1 : next_line_; }  // read so far

 private:
  Status ReadRecord() {
    fields_.clear();
    unquoted_.clear();
    const size_t before = rest_.size();
    for (bool more = true; more;) {
      if (rest_.starts_with('"')) {
        WISP_RETURN_IF_ERROR(ReadQuoted());
      } else {
        size_t end = 0;
        while (end < rest_.size() && rest_[end] != separator_ && rest_[end] != '\n') ++end;
        std::string_view field = rest_.substr(0, end);
        rest_.remove_prefix(end);
        if (field.ends_with('\r') && (rest_.empty() || rest_[0] == '\n')) field.remove_suffix(1);
        fields_.push_back(field);
      }
      if (before - rest_.size() > kMaxLineBytes) return builder_.Error(line_, TooLong(before - rest_.size()));
      more = rest_.starts_with(separator_);
      if (more) rest_.remove_prefix(1);
    }
    if (rest_ == "\r" || rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    ended_ = !rest_.empty();  // else the text ends without an end of its last line
    if (!ended_) return OkStatus();
    if (rest_[0] != '\n') {
      return builder_.Error(next_line_, Shown(rest_.substr(0, rest_.find('\n'))) +
                                            " follows a closing quote; allowed is a separator or the end of the line");
    }
    rest_.remove_prefix(1);
    ++next_line_;
    return OkStatus();
  }

  Status ReadQuoted() {
    rest_.remove_prefix(1);
    std::string* joined = nullptr;  // made for a field with quotes in it; others are views
    while (true) {
      const size_t end = rest_.find('"');
      if (end == std::string_view::npos)
        return builder_.Error(line_, "a quoted field is not closed; a quote is needed after " + Shown(rest_));
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

  const SequenceBuilder& builder_;
  std::string_view rest_;
  char separator_;
  Status status_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // a deque: fields_ points into its strings
  uint64_t line_ = 1, next_line_ = 1;
  bool ended_ = true;  // the last record had an end of line
};

Status ReadRows(Records& records, const Columns& columns, const ReadOptions& options, SequenceBuilder& builder) {
  const size_t width = records.fields().size();
  while (records.Next()) {
    const std::vector<std::string_view>& fields = records.fields();
    if (fields.size() != width) {
      return builder.Error(records.line(), std::to_string(fields.size()) + " fields, the first is " + Shown(fields[0]) +
                                               "; allowed are " + std::to_string(width) + ", as in the header");
    }
    auto time = static_cast<int64_t>(records.line());
    if (options.time == TimeSource::kColumn && !ParseTime(fields[*columns.time], time)) {
      return BadTime(builder, records.line(), fields[*columns.time]);
    }
    WISP_RETURN_IF_ERROR(builder.Add(records.line(), fields[columns.user], fields[columns.item], time));
  }
  builder.set_num_lines(records.num_lines());
  return records.status();
}

// `name_of` makes the name of a column out of a field of the header, or an error.
template <class NameOf>
Status ReadTable(std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder,
                 NameOf&& name_of) {
  Records records(builder, text, separator);
  if (!records.Next()) {
    WISP_RETURN_IF_ERROR(records.status());
    return InvalidData(builder.name() + ": it is empty; a header with the names of the columns is needed");
  }
  std::vector<std::string> header;
  for (const std::string_view field : records.fields()) {
    std::string_view name;
    WISP_RETURN_IF_ERROR(name_of(records.line(), field, name));
    header.emplace_back(name);
  }
  const std::string where = builder.name() + ", line " + std::to_string(records.line());
  WISP_ASSIGN_OR_RETURN(const Columns columns, ChooseColumns(where, header, options));
  return ReadRows(records, columns, options, builder);
}

}  // namespace

Status ReadDelimited(std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder) {
  return ReadTable(text, separator, options, builder, [](uint64_t, std::string_view field, std::string_view& name) {
    name = field;
    return OkStatus();
  });
}

Status ReadInter(std::string_view text, const ReadOptions& options, SequenceBuilder& builder) {
  return ReadTable(text, '\t', options, builder, [&](uint64_t line, std::string_view field, std::string_view& name) {
    const size_t colon = field.find(':');
    const std::string_view type = colon == std::string_view::npos ? std::string_view() : field.substr(colon + 1);
    name = field.substr(0, colon);
    if (type == "token" || type == "float" || type == "token_seq" || type == "float_seq") return OkStatus();
    return builder.Error(line, "the header has " + Shown(field) +
                                   "; allowed is name:type with type token, float, token_seq or float_seq");
  });
}

}  // namespace wisp::data
