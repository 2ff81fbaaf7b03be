#include "runtime/data/readers.h"

#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/data/lines.h"

namespace wisp::data {
namespace {

constexpr std::array<std::pair<Format, const char*>, 7> kFormats = {{{Format::kAuto, "auto"},
                                                                     {Format::kUserItem, "user-item"},
                                                                     {Format::kRatingsDat, "ratings-dat"},
                                                                     {Format::kCsv, "csv"},
                                                                     {Format::kTsv, "tsv"},
                                                                     {Format::kInter, "inter"},
                                                                     {Format::kSqlite, "sqlite"}}};

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

Format GuessByText(std::string_view text) {
  if (text.starts_with(std::string_view("SQLite format 3\0", 16))) return Format::kSqlite;
  Lines lines(text.substr(0, 4096));
  if (!lines.Next()) return Format::kUserItem;
  const std::string_view line = lines.line();
  if (line.find_first_of(" \t") == std::string_view::npos)
    return CountOf(line, "::") == 3 ? Format::kRatingsDat : Format::kUserItem;
  return line.find(":token\t") != std::string_view::npos ? Format::kInter : Format::kUserItem;
}

// The path, names of tables and columns, and what SQLite says of a schema may hold anything.
Result<ReadResult> Quoted(Result<ReadResult> read) {
  if (read.ok()) return read;
  return Status(read.status().code(), OneLine(read.status().message()));
}

Status FillFromText(std::string_view text, Format format, const ReadOptions& options, SequenceBuilder& builder) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return InvalidData(builder.name(), ": it starts with the mark of UTF-16; allowed is UTF-8");
  }
  switch (format) {
    case Format::kRatingsDat:
      return ReadRatingsDat(text, options, builder);
    case Format::kCsv:
      return ReadDelimited(text, ',', options, builder);
    case Format::kTsv:
      return ReadDelimited(text, '\t', options, builder);
    case Format::kInter:
      return ReadInter(text, options, builder);
    case Format::kUserItem:
      return ReadUserItem(text, builder);
    case Format::kAuto:
    case Format::kSqlite:
      break;
  }
  return InvalidArgument(builder.name(), ": the format ", FormatName(format), " is not one of text");
}

Result<ReadResult> ReadDatabase(const std::string& path, const ReadOptions& options) {
  SequenceBuilder builder(path, "table " + options.table + ", row", options.private_run);
  WISP_RETURN_IF_ERROR(ReadSqlite(path, options, builder));
  return builder.Finish(options);
}

Result<ReadResult> ReadFile(const std::string& path, Format format, const ReadOptions& options) {
  if (format == Format::kAuto) format = FormatOfName(path);
  if (format == Format::kAuto && options.private_run) {
    // The first row would decide how all others are read.
    if (path.ends_with(".dat")) format = Format::kRatingsDat;
    if (path.ends_with(".txt")) format = Format::kUserItem;
    if (format == Format::kAuto) {
      return InvalidArgument(
          path,
          ": its name does not say which format it has, and a private run does not look at the rows for that; "
          "allowed are names that end in .db, .sqlite, .csv, .tsv, .inter, .dat (ratings-dat) or .txt (user-item), or "
          "a format that is given");
    }
  }
  if (format == Format::kSqlite) return ReadDatabase(path, options);
  if (options.is_read_again && options.units.unit == RecordUnit::kSession)
    return InvalidArgument(path,
                           ": sessions must stay what they were when they were first read, and a file of text has no "
                           "place to note how far that was; allowed is an SQLite log");
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (format == Format::kAuto) format = GuessByText(text);
  if (format == Format::kSqlite) return ReadDatabase(path, options);
  return ReadText(path, text, format, options);
}

}  // namespace

Format FormatOfName(std::string_view path) {
  if (path.ends_with(".db") || path.ends_with(".sqlite") || path.ends_with(".sqlite3")) return Format::kSqlite;
  if (path.ends_with(".csv")) return Format::kCsv;
  if (path.ends_with(".tsv")) return Format::kTsv;
  return path.ends_with(".inter") ? Format::kInter : Format::kAuto;
}

const char* FormatName(Format format) {
  for (const auto& [candidate, name] : kFormats) {
    if (candidate == format) return name;
  }
  return "unknown";
}

Result<Format> ParseFormat(std::string_view name) {
  std::string allowed;
  for (const auto& [format, candidate] : kFormats) {
    if (name == candidate) return format;
    allowed += (allowed.empty() ? "" : ", ") + std::string(candidate);
  }
  return InvalidArgument("the format is ", Shown(name), "; allowed are ", allowed);
}

Result<ReadResult> ReadText(const std::string& name, std::string_view text, Format format, const ReadOptions& options) {
  SequenceBuilder builder(name, "line", options.private_run);
  const Status filled = FillFromText(text, format, options, builder);
  return filled.ok() ? Quoted(builder.Finish(options)) : Quoted(filled);
}

Result<ReadResult> ReadSequences(const std::string& path, Format format, const ReadOptions& options) {
  // A file within the limits can still be larger than the memory of a device.
  try {
    return Quoted(ReadFile(path, format, options));
  } catch (const std::bad_alloc&) {
    return IoError(path, ": there is not enough memory for its events");
  }
}

}  // namespace wisp::data
