// Stores the sessions of a log as private runs have read them, in the log itself; sessions.h says why.
//
//   WISP_ASSIGN_OR_RETURN(SessionReading reading, SessionReading::Read(path, database, options, builder));
//   SqliteTransaction transaction(database);
//   WISP_RETURN_IF_ERROR(reading.Save(work));
//   transaction.Commit()
//
// wisp_readings has a row for each way in which the log is cut. wisp_sessions has a row for each time of a user, with
// the name of its session. wisp_ledgers has the ledgers that such sessions were charged to. None of them has an item. A
// time is deleted with its last event. Tables of these names that have another form are not touched.
#ifndef WISP_RUNTIME_DATA_SESSION_TABLE_H_
#define WISP_RUNTIME_DATA_SESSION_TABLE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/sequences.h"
#include "runtime/data/sessions.h"
#include "runtime/data/sqlite_file.h"

namespace wisp::data {

// Says what is cut into sessions, and how.
struct SessionSource {
  std::string table, user, time;  // columns of the table
  int64_t gap = 0;                // in seconds
  uint32_t times_per_second = 1;
};

// One reading of a log by session. The database is open for writing, with AddEventFunctions, and outlives this object.
class SessionReading {
 public:
  // Reads the rows with options.private_run, and cuts them by what earlier readings found. Writes nothing. kInvalidData
  // for tables of these names that have another form; errors of ReadSqlite (readers.h).
  static Result<SessionReading> Read(const std::string& path, sqlite3* database, const ReadOptions& options,
                                     SequenceBuilder& builder);

  // Stores new times, and deletes those without events, in a transaction that the caller commits. kIo if the log cannot
  // be written, whether or not there are new events, because a refusal must not reveal that an event came. (It does
  // reveal it on a disk that has room for less than the new times.) kIo also if another run has read the log since
  // Read.
  Status Save(WorkLimit& work);
  bool has_changed() const { return has_changed_; }  // something is to be committed

  // Valid after Save.
  int64_t id() const { return id_; }  // row in wisp_readings
  std::shared_ptr<const SessionsRead> sessions() const;

 private:
  SessionReading(std::string path, sqlite3* database, SessionSource source)
      : path_(std::move(path)), database_(database), source_(std::move(source)) {}
  // True if the tables exist.
  Result<bool> HasTables() const;
  Status Error() const;
  // Sets the row and its number of readings, if it exists.
  Status Find();
  Status Load();
  Status Begin();

  std::string path_;
  sqlite3* database_;
  SessionSource source_;
  SessionMemory memory_;
  std::vector<std::string> ledgers_;
  int64_t id_ = -1, times_read_ = -1;
  bool has_changed_ = false;
};

// The names of the three tables if they are in the log; empty if they are not, or have another form. nullopt on errors.
std::optional<std::vector<std::string>> SessionTables(sqlite3* database);

// The number of passes of Read and Save over a log and its tables.
inline constexpr int kSessionPasses = 8;

// The error kIo for a log that cannot be written. It has the database's message, so call it right after the failure.
Status LogWriteError(const std::string& path, sqlite3* database);

// Stores in the log that a ledger, named by Ledger::id, was charged for the sessions that were read. Call it before the
// ledger's first charge. kIo as in Save.
Status AddLedger(const SessionsRead& sessions, const std::string& ledger);

// Deletes the events of the table `events` whose session ended before `limit`, all of a session or none, and events in
// no session by their own time. Call it right after Save of that table, in the same transaction. Returns the number of
// deleted events; -1 on errors: see sqlite3_errcode.
int64_t DeleteSessionsBefore(sqlite3* database, int64_t reading, uint32_t times_per_second, int64_t limit);

// Call this after events were deleted, in the same transaction: users who are forgotten must be forgotten here too.
// Returns the number of deleted rows; -1 on errors.
int64_t ForgetSessionsWithoutEvents(sqlite3* database, WorkLimit& work);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SESSION_TABLE_H_
