// The sessions of a log as private runs have read them, kept in the log: sessions.h says what for.
//
//   WISP_ASSIGN_OR_RETURN(SessionReading reading, SessionReading::Read(path, database, options, builder));
//   SqliteTransaction transaction(database);
//   WISP_RETURN_IF_ERROR(reading.Save(work));
//   transaction.Commit()
//
// wisp_readings has a row for each way in which the log is cut; wisp_sessions one for each time of a user, with the
// name of its session; wisp_ledgers the ledgers that such sessions were charged to. None has an item. A time goes with
// its last event. Tables of these names that are others are left alone.
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

// A source says what is cut, and how.
struct SessionSource {
  std::string table, user, time;  // columns of the table
  int64_t gap = 0;                // in seconds
  uint32_t times_per_second = 1;
};

// One reading of a log by session. The database is open for writing, with AddEventFunctions, and outlives it.
class SessionReading {
 public:
  // Reads the rows with options.private_run, and cuts them by what earlier readings found. Writes nothing. kInvalidData
  // for tables of these names that are others; errors of ReadSqlite (readers.h).
  static Result<SessionReading> Read(const std::string& path, sqlite3* database, const ReadOptions& options,
                                     SequenceBuilder& builder);

  // Remembers what came, and drops what has no event any more; in a transaction that the caller commits. kIo where the
  // log cannot be written, whether or not something came: a refusal must not tell that an event did. It does on a disk
  // with room for less than what came. kIo too where another run has read the log since Read.
  Status Save(WorkLimit& work);
  bool has_changed() const { return has_changed_; }  // whether there is something to commit

  // After Save.
  int64_t id() const { return id_; }  // its row in wisp_readings
  std::shared_ptr<const SessionsRead> sessions() const;

 private:
  SessionReading(std::string path, sqlite3* database, SessionSource source)
      : path_(std::move(path)), database_(database), source_(std::move(source)) {}
  // Whether the tables are there.
  Result<bool> HasTables() const;
  Status Error() const;
  // Sets the row and how often it was read, where there is one.
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

// The names of the three tables where they are in a log; empty where they are not, or are others. Nothing on errors.
std::optional<std::vector<std::string>> SessionTables(sqlite3* database);

// How often Read and Save go over a log and its tables.
inline constexpr int kSessionPasses = 8;

// kIo: the log cannot be written. To be called before anything else is asked of the database.
Status CannotRemember(const std::string& path, sqlite3* database);

// Writes into the log that what was read is charged to a ledger, by Ledger::id. Before its first charge. kIo as Save.
Status AddLedger(const SessionsRead& sessions, const std::string& ledger);

// Deletes the events of the table `events` whose session ended before `limit`, all of a session or none, and those that
// are in no session by their own time. Right after Save of that table, in the same transaction. How many went; -1 on
// errors: see sqlite3_errcode.
int64_t DeleteSessionsBefore(sqlite3* database, int64_t reading, uint32_t times_per_second, int64_t limit);

// After events were deleted, in the same transaction: whoever is forgotten is forgotten here too. How many rows went;
// -1 on errors.
int64_t ForgetSessionsWithoutEvents(sqlite3* database, WorkLimit& work);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SESSION_TABLE_H_
