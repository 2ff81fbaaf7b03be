// Readers of interaction data. Each knows one format; all of them fill a SequenceBuilder.
//
//   user item      one event a line, separated by blanks, in time order               1 32
//   ratings.dat    MovieLens: user::item::rating::timestamp                           1::1193::5::978300760
//   CSV, TSV       a header that names the columns; RFC 4180 quotes                   user,item,time
//   .inter         RecBole: tab-separated, header "user_id:token<TAB>item_id:token"   196<TAB>242<TAB>881250949
//   SQLite         a table, no view and no virtual table; ties in time in the order of rowid
//
//   WISP_ASSIGN_OR_RETURN(ReadResult data, ReadLog("events.db", {.known_items = &index}));
//
// Text is UTF-8, with or without a byte order mark. Lines end in LF or CRLF; the last one may lack its end. Blank lines
// are skipped. Times are numbers, also negative, or dates of ISO 8601 (date_time.h). Errors name file, line, field, the
// value found and what is allowed: kInvalidData for faults of the file, kIo for errors of the system.
#ifndef WISP_RUNTIME_DATA_READERS_H_
#define WISP_RUNTIME_DATA_READERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/sequences.h"

namespace wisp::data {

enum class Format { kAuto, kUserItem, kRatingsDat, kCsv, kTsv, kInter, kSqlite };

// Names such as "csv", for messages and options: auto, user-item, ratings-dat, csv, tsv, inter, sqlite.
const char* FormatName(Format format);
// kInvalidArgument, with the allowed names, if there is no such format.
Result<Format> ParseFormat(std::string_view name);

// The format that a name's ending implies (.db .sqlite .sqlite3 .csv .tsv .inter, in capitals too); kAuto for other
// endings.
Format FormatFromName(std::string_view path);

// kAuto goes by the name (.db .sqlite .sqlite3 .csv .tsv .inter), then by the first bytes (SQLite; a first line of
// four fields between "::"; a first line with "name:token" between tabs); anything else is "user item".
// In a private run only the name counts, where .dat is ratings-dat and .txt "user item", because one row must not
// decide how the others are read. A database that this process itself has open must be given as kSqlite or end in .db,
// .sqlite or .sqlite3: reading its first bytes would drop the locks that SQLite holds for the process.
Result<ReadResult> ReadSequences(const std::string& path, Format format, const ReadOptions& options);

// Reads an SQLite file. A library that reads only logs is linked without the readers of text.
Result<ReadResult> ReadLog(const std::string& path, const ReadOptions& options);

// Reads all events of a file in its order; for "user item" the time is the line number. Of `options` only the names of
// columns and table are read. kInvalidData for an event that cannot be read.
Result<std::vector<Event>> ReadEvents(const std::string& path, Format format, const ReadOptions& options);

// ReadSequences for text in memory (not kAuto, not kSqlite); `name` is used in messages.
Result<ReadResult> ReadText(const std::string& name, std::string_view text, Format format, const ReadOptions& options);

// Checks that SQLite takes the path for a file's name: kInvalidArgument for "", ":memory:" and a path that begins with
// "file:".
Status CheckDatabaseName(const std::string& path);

// Each reads one format.
Status ReadUserItem(std::string_view text, SequenceBuilder& builder);
Status ReadRatingsDat(std::string_view text, const ReadOptions& options, SequenceBuilder& builder);
Status ReadDelimited(std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder);
Status ReadInter(std::string_view text, const ReadOptions& options, SequenceBuilder& builder);
Status ReadSqlite(const std::string& path, const ReadOptions& options, SequenceBuilder& builder);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_READERS_H_
