#include "runtime/data/readers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
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

// Ignores case, as in EVENTS.CSV.
bool EndsWith(std::string_view path, std::string_view end) {
  return path.size() >= end.size() &&
         std::equal(end.begin(), end.end(), path.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [](char a, char b) { return a == AsciiLower(b); });
}

size_t GetCount(std::string_view text, std::string_view part) {
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
    return GetCount(line, "::") == 3 ? Format::kRatingsDat : Format::kUserItem;
  return line.find(":token\t") != std::string_view::npos ? Format::kInter : Format::kUserItem;
}

Status FillFromText(std::string_view text, Format format, const ReadOptions& options, SequenceBuilder& builder) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return InvalidData(builder.name(), ": it starts with the mark of UTF-16; allowed is UTF-8");
  }
  if (options.private_run && options.units.unit == RecordUnit::kSession) {
    return InvalidArgument(builder.name(),
                           ": sessions must stay what they were when they were first read, and a text has no place to "
                           "note that; allowed is an SQLite log, which wisp log import makes");
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

Status FillFromDatabase(const std::string& path, const ReadOptions& options, std::optional<SequenceBuilder>& builder) {
  builder.emplace(path, "table " + options.table + ", row", options.private_run);
  return ReadSqlite(path, options, *builder);
}

Status FillFromFile(const std::string& path, Format format, const ReadOptions& options,
                    std::optional<SequenceBuilder>& builder) {
  if (format == Format::kAuto) format = FormatFromName(path);
  if (format == Format::kAuto && options.private_run) {
    // The first row must not decide how all others are read.
    if (EndsWith(path, ".dat")) format = Format::kRatingsDat;
    if (EndsWith(path, ".txt")) format = Format::kUserItem;
    if (format == Format::kAuto) {
      return InvalidArgument(
          path,
          ": its name does not say which format it has, and a private run does not look at the rows for that; "
          "allowed are names that end in .db, .sqlite, .csv, .tsv, .inter, .dat (ratings-dat) or .txt (user-item), or "
          "a format that is given");
    }
  }
  if (format == Format::kSqlite) return FillFromDatabase(path, options, builder);
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (format == Format::kAuto) format = GuessByText(text);
  if (format == Format::kSqlite) return FillFromDatabase(path, options, builder);
  builder.emplace(path, "line", options.private_run);
  return FillFromText(text, format, options, *builder);
}

// A file within the limits may still be larger than a device's memory.
template <class Value>
Result<Value> WithinMemory(const std::string& path, const std::function<Result<Value>()>& read) {
  try {
    Result<Value> value = read();
    if (value.ok()) return value;
    // The path, names of tables and columns, and SQLite's message about a schema may contain any characters.
    return Status(value.status().code(), OneLine(value.status().message()));
  } catch (const std::bad_alloc&) {
    return IoError(path, ": there is not enough memory for its events");
  }
}

}  // namespace

Format FormatFromName(std::string_view path) {
  if (EndsWith(path, ".db") || EndsWith(path, ".sqlite") || EndsWith(path, ".sqlite3")) return Format::kSqlite;
  if (EndsWith(path, ".csv")) return Format::kCsv;
  if (EndsWith(path, ".tsv")) return Format::kTsv;
  return EndsWith(path, ".inter") ? Format::kInter : Format::kAuto;
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
  Status status = FillFromText(text, format, options, builder);
  if (status.ok()) {
    Result<ReadResult> read = builder.Finish(options);
    if (read.ok()) return read;
    status = read.status();
  }
  return Status(status.code(), OneLine(status.message()));
}

Result<ReadResult> ReadSequences(const std::string& path, Format format, const ReadOptions& options) {
  return WithinMemory<ReadResult>(path, [&]() -> Result<ReadResult> {
    std::optional<SequenceBuilder> builder;
    WISP_RETURN_IF_ERROR(FillFromFile(path, format, options, builder));
    return builder->Finish(options);
  });
}

Result<ReadResult> ReadLog(const std::string& path, const ReadOptions& options) {
  return WithinMemory<ReadResult>(path, [&]() -> Result<ReadResult> {
    std::optional<SequenceBuilder> builder;
    WISP_RETURN_IF_ERROR(FillFromDatabase(path, options, builder));
    return builder->Finish(options);
  });
}

Result<std::vector<Event>> ReadEvents(const std::string& path, Format format, const ReadOptions& options) {
  return WithinMemory<std::vector<Event>>(path, [&]() -> Result<std::vector<Event>> {
    std::optional<SequenceBuilder> builder;
    WISP_RETURN_IF_ERROR(FillFromFile(path, format, options, builder));
    return builder->Events();
  });
}

}  // namespace wisp::data
