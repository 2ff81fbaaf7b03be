#include "runtime/data/readers.h"

#include <algorithm>

#include "runtime/core/file.h"
#include "runtime/data/lines.h"

namespace wisp::data {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view TakeField(std::string_view& rest) {
  const size_t begin = rest.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return rest = {};
  rest.remove_prefix(begin);
  const size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end);
  return field;
}

Format Guess(const std::string& path, std::string_view start) {
  if (start.starts_with(std::string_view("SQLite format 3\0", 16))) return Format::kSqlite;
  if (path.ends_with(".dat")) return Format::kRatingsDat;
  if (path.ends_with(".csv")) return Format::kCsv;
  if (path.ends_with(".tsv")) return Format::kTsv;
  return path.ends_with(".inter") ? Format::kInter : Format::kUserItem;
}

}  // namespace

Status ReadUserItem(const std::string& name, std::string_view text, SequenceBuilder& builder) {
  for (Lines lines(text); lines.Next();) {
    std::string_view rest = lines.line();
    const std::string_view user = TakeField(rest), item = TakeField(rest);
    if (item.empty() || rest.find_first_not_of(kBlanks) != std::string_view::npos) {
      return InvalidData(Where(name, lines.number()) + ": " + Shown(lines.line()) + "; allowed is a user and an item, separated by a blank");
    }
    // The order of the lines is the order in time.
    WISP_RETURN_IF_ERROR(builder.Add(Where(name, lines.number()), user, item, static_cast<int64_t>(lines.number())));
  }
  return OkStatus();
}

Status ReadRatingsDat(const std::string& name, std::string_view text, SequenceBuilder& builder) {
  for (Lines lines(text); lines.Next();) {
    std::string_view rest = lines.line(), fields[4];
    size_t count = 0;
    for (bool more = true; more && count < 4; ++count) {
      const size_t end = rest.find("::");
      more = end != std::string_view::npos;
      fields[count] = rest.substr(0, end);
      rest.remove_prefix(more ? end + 2 : rest.size());
    }
    const std::string where = Where(name, lines.number());
    if (count != 4 || !rest.empty()) {
      return InvalidData(where + ": " + Shown(lines.line()) + "; allowed is user::item::rating::timestamp");
    }
    WISP_ASSIGN_OR_RETURN(const int64_t time, ParseTime(where, fields[3]));
    WISP_RETURN_IF_ERROR(builder.Add(where, fields[0], fields[1], time));
  }
  return OkStatus();
}

Result<ReadResult> ReadSequences(const std::string& path, Format format, const ReadOptions& options) {
  SequenceBuilder builder;
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (format == Format::kAuto) format = Guess(path, text);
  Status status;
  switch (format) {
    case Format::kSqlite: status = ReadSqlite(path, options, builder); break;
    case Format::kRatingsDat: status = ReadRatingsDat(path, text, builder); break;
    case Format::kCsv: status = ReadDelimited(path, text, ',', options, builder); break;
    case Format::kTsv: status = ReadDelimited(path, text, '\t', options, builder); break;
    case Format::kInter: status = ReadInter(path, text, options, builder); break;
    default: status = ReadUserItem(path, text, builder); break;
  }
  WISP_RETURN_IF_ERROR(status);
  return builder.Finish(path, options);
}

}  // namespace wisp::data
