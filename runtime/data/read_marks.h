// How far private runs have read a log, kept in the log: so it is known which events came after a reading, and what a
// session was then stays what it is (sessions.h).
//
//   WISP_ASSIGN_OR_RETURN(const std::vector<int64_t> marks, MarkRead(path, "events"));
//   ... read the rows up to marks.back(); those up to marks[i] were there at reading i ...
//
// A table wisp_reads(log, last): one row for each reading that found something new, the rowid of the newest event. It
// is written before anything is read, so a run that is killed leaves at most one more mark, which changes nothing.
// Marks go with the events that they mark, so there are never more of them than events.
#ifndef WISP_RUNTIME_DATA_READ_MARKS_H_
#define WISP_RUNTIME_DATA_READ_MARKS_H_

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::data {

// Marks what is in the table now as read. All marks, ascending; none where the table is empty. kIo: the log cannot be
// written, whether or not there is something new in it. kInvalidData: it has no rowid, or a table wisp_reads that is
// another one.
Result<std::vector<int64_t>> MarkRead(const std::string& path, const std::string& table);

// The marks that are there, ascending, of a log that MarkRead has marked. Nothing on errors: see sqlite3_errcode.
std::optional<std::vector<int64_t>> ReadMarks(sqlite3* database, const std::string& table);

// After events were deleted, in the same transaction: a rowid that is given anew must not pass for one that was read.
// False: see sqlite3_errcode.
bool TidyMarks(sqlite3* database, const std::string& table);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_READ_MARKS_H_
