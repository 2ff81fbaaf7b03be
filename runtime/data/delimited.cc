// CSV, TSV and RecBole's .inter: a header that names columns, then one event a line.
#include <algorithm>
#include <array>
#include <vector>

#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

// One record of RFC 4180: fields between separators, quoted ones with doubled quotes; a quoted field may span lines.
class Records {
 public:
  Records(const std::string& name, std::string_view text, char separator)
      : name_(name), rest_(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text), separator_(separator) {}

  // False at the end. Blank lines are skipped.
  Result<bool> Next() {
    while (!rest_.empty()) {
      line_ = next_line_;
      fields_.clear();
      WISP_RETURN_IF_ERROR(ReadRecord());
      if (fields_.size() > 1 || fields_[0].find_first_not_of(" \t") != std::string::npos) return true;
    }
    return false;
  }
  const std::vector<std::string>& fields() const { return fields_; }
  std::string where() const { return Where(name_, line_); }

 private:
  Status ReadRecord() {
    for (bool more = true; more;) {
      std::string field;
      if (rest_.starts_with('"')) {
        WISP_RETURN_IF_ERROR(ReadQuoted(field));
      } else {
        const size_t end = std::min(rest_.find_first_of(separator_ == ',' ? ",\n" : "\t\n"), rest_.size());
        field = rest_.substr(0, end);
        rest_.remove_prefix(end);
        if (rest_.empty() || rest_[0] == '\n') {
          if (field.ends_with('\r')) field.pop_back();
        }
      }
      fields_.push_back(std::move(field));
      more = !rest_.empty() && rest_[0] == separator_;
      if (more) rest_.remove_prefix(1);
    }
    if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    if (rest_.empty()) return OkStatus();
    if (rest_[0] != '\n') return InvalidData(where() + ": " + Shown(rest_) + " follows a closing quote; allowed is a separator or the end of the line");
    rest_.remove_prefix(1);
    ++next_line_;
    return OkStatus();
  }

  Status ReadQuoted(std::string& field) {
    rest_.remove_prefix(1);
    while (true) {
      const size_t end = rest_.find('"');
      if (end == std::string_view::npos) return InvalidData(where() + ": a quoted field is not closed");
      field += rest_.substr(0, end);
      next_line_ += static_cast<uint64_t>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with('"')) return OkStatus();
      field += '"';
      rest_.remove_prefix(1);
    }
  }

  const std::string& name_;
  std::string_view rest_;
  char separator_;
  std::vector<std::string> fields_;
  uint64_t line_ = 1, next_line_ = 1;
};

constexpr size_t kAbsent = static_cast<size_t>(-1);

size_t FindColumn(const std::vector<std::string>& header, const std::string& column) {
  const auto it = std::find(header.begin(), header.end(), column);
  return it == header.end() ? kAbsent : static_cast<size_t>(it - header.begin());
}

Status MissingColumn(const std::string& where, const std::string& column, const std::vector<std::string>& header) {
  std::string present;
  for (const std::string& name : header) present += (present.empty() ? "" : ", ") + Shown(name);
  return InvalidData(where + ": there is no column '" + column + "'; the columns are " + present);
}

// Without a time column the order of the lines is the order in time.
Status ReadRows(Records& records, std::array<size_t, 3> columns, SequenceBuilder& builder) {
  const size_t needed = 1 + std::max({columns[0], columns[1], columns[2] == kAbsent ? 0 : columns[2]});
  int64_t row = 0;
  while (true) {
    WISP_ASSIGN_OR_RETURN(const bool more, records.Next());
    if (!more) return OkStatus();
    const std::vector<std::string>& fields = records.fields();
    if (fields.size() < needed) {
      return InvalidData(records.where() + ": " + std::to_string(fields.size()) + " fields; at least " + std::to_string(needed) + " are needed");
    }
    int64_t time = row++;
    if (columns[2] != kAbsent) {
      WISP_ASSIGN_OR_RETURN(time, ParseTime(records.where(), fields[columns[2]]));
    }
    WISP_RETURN_IF_ERROR(builder.Add(records.where(), fields[columns[0]], fields[columns[1]], time));
  }
}

}  // namespace

Status ReadDelimited(const std::string& name, std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder) {
  Records records(name, text, separator);
  WISP_ASSIGN_OR_RETURN(const bool any, records.Next());
  if (!any) return InvalidData(name + ": it is empty; a header with the names of the columns is needed");
  const std::vector<std::string> header = records.fields();
  const std::array<size_t, 3> columns = {FindColumn(header, options.user_column), FindColumn(header, options.item_column),
                                         FindColumn(header, options.time_column)};
  if (columns[0] == kAbsent) return MissingColumn(records.where(), options.user_column, header);
  if (columns[1] == kAbsent) return MissingColumn(records.where(), options.item_column, header);
  return ReadRows(records, columns, builder);
}

Status ReadInter(const std::string& name, std::string_view text, const ReadOptions&, SequenceBuilder& builder) {
  Records records(name, text, '\t');
  WISP_ASSIGN_OR_RETURN(const bool any, records.Next());
  if (!any) return InvalidData(name + ": it is empty; a header like user_id:token is needed");
  std::vector<std::string> header;
  for (const std::string& field : records.fields()) header.push_back(field.substr(0, field.find(':')));
  const std::array<size_t, 3> columns = {FindColumn(header, "user_id"), FindColumn(header, "item_id"), FindColumn(header, "timestamp")};
  if (columns[0] == kAbsent) return MissingColumn(records.where(), "user_id", header);
  if (columns[1] == kAbsent) return MissingColumn(records.where(), "item_id", header);
  return ReadRows(records, columns, builder);
}

}  // namespace wisp::data
