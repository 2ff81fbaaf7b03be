// Readers of interaction data. Each knows one format and nothing of the others; all of them end in a SequenceBuilder.
//
//   user item      one event a line, separated by blanks, in time order               1 32
//   ratings.dat    MovieLens: user::item::rating::timestamp                           1::1193::5::978300760
//   CSV, TSV       a header that names the columns; RFC 4180 quotes                   user,item,time
//   .inter         RecBole: tab-separated, header "user_id:token<TAB>item_id:token"   196<TAB>242<TAB>881250949
//   SQLite         a table; ordered by time, then rowid
//
// Errors name file, line, field, the value found and what is allowed. Blank lines are skipped.
#ifndef WISP_RUNTIME_DATA_READERS_H_
#define WISP_RUNTIME_DATA_READERS_H_

#include <string>
#include <string_view>

#include "runtime/data/sequences.h"

namespace wisp::data {

enum class Format { kAuto, kUserItem, kRatingsDat, kCsv, kTsv, kInter, kSqlite };

// kAuto goes by the first bytes (SQLite), then by the name: .dat, .csv, .tsv, .inter; anything else is "user item".
Result<ReadResult> ReadSequences(const std::string& path, Format format, const ReadOptions& options);

// One format each, from text in memory; `name` is used in messages.
Status ReadUserItem(const std::string& name, std::string_view text, SequenceBuilder& builder);
Status ReadRatingsDat(const std::string& name, std::string_view text, SequenceBuilder& builder);
Status ReadDelimited(const std::string& name, std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder);
Status ReadInter(const std::string& name, std::string_view text, const ReadOptions& options, SequenceBuilder& builder);
Status ReadSqlite(const std::string& path, const ReadOptions& options, SequenceBuilder& builder);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_READERS_H_
