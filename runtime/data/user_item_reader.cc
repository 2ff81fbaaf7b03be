// Reads "user item", the form in which SASRec's data sets are distributed. The order of the lines is the time order.
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::string_view TakeField(std::string_view& rest) {
  size_t begin = 0, end;
  while (begin < rest.size() && IsBlank(rest[begin])) ++begin;
  for (end = begin; end < rest.size() && !IsBlank(rest[end]);) ++end;
  const std::string_view field = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return field;
}

// A JSON object or list; if it contains one blank, it would pass for two keys.
bool IsJson(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t,");
  if (first == std::string_view::npos || last == std::string_view::npos) return false;
  return (line[first] == '{' && line[last] == '}') || (line[first] == '[' && line[last] == ']');
}

Status AddLine(std::string_view line, uint64_t number, SequenceBuilder& builder) {
  if (line.size() > kMaxLineBytes) return builder.Error(number, TooLong(line.size()));
  if (IsJson(line))
    return builder.Error(number, Shown(line) + " is JSON; allowed is a user and an item, separated by blanks");
  std::string_view rest = line;
  const std::string_view user = TakeField(rest), item = TakeField(rest), more = TakeField(rest);
  if (item.empty() || !more.empty()) {
    const char* what = item.empty() ? "one field, " : "more than two fields, ";
    return builder.Error(number, what + Shown(line) + "; allowed is a user and an item, separated by blanks");
  }
  return builder.Add(number, user, item, static_cast<int64_t>(number));
}

}  // namespace

Status ReadUserItem(std::string_view text, SequenceBuilder& builder) {
  builder.set_untimed();
  Lines lines(text);
  while (lines.Next()) WISP_RETURN_IF_ERROR(builder.TakeRow(AddLine(lines.line(), lines.number(), builder)));
  builder.set_num_lines(lines.number());
  return OkStatus();
}

}  // namespace wisp::data
