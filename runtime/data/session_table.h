// The sessions of a log as private runs have read them, kept in the log: sessions.h says what for.
//
//   SqliteTransaction transaction(database);
//   SessionTable table(path, database, {.table = "events", .user = "user", .time = "time", .gap = 1800});
//   WISP_ASSIGN_OR_RETURN(SessionMemory memory, table.Load());
//   ... reads the rows, and cuts with memory.Cut ...
//   WISP_RETURN_IF_ERROR(table.Save(memory));
//   transaction.Commit()
//
// wisp_readings has a row for each way in which the log is cut; wisp_sessions one for each time of a user, with the
// name of its session. Neither has an item. A time goes with its last event.
#ifndef WISP_RUNTIME_DATA_SESSION_TABLE_H_
#define WISP_RUNTIME_DATA_SESSION_TABLE_H_

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/data/sessions.h"

namespace wisp::data {

// What is cut, and how.
struct SessionSource {
  std::string table, user, time;  // columns of the table
  int64_t gap = 0;                // in seconds
  uint32_t times_per_second = 1;
};

// Of a database that is open for writing, with AddEventFunctions, in a transaction. Both outlive it.
class SessionTable {
 public:
  SessionTable(std::string path, sqlite3* database, SessionSource source);

  // What earlier readings found. The tables are made where there are none. kIo where the log cannot be written, whether
  // or not there will be something to write: a refusal must not tell that an event came. kInvalidData for tables of
  // these names that are others.
  Result<SessionMemory> Load();
  // Drops what has no event any more, and writes what came.
  Status Save(const SessionMemory& memory);
  int64_t reading() const { return reading_; }       // its row
  bool has_changed() const { return has_changed_; }  // whether there is something to commit

 private:
  Status CheckTables() const;
  Status Error() const;
  // Whether there is one already.
  Result<bool> FindReading();

  std::string path_;
  sqlite3* database_;
  SessionSource source_;
  int64_t reading_ = 0;
  bool has_changed_ = false;
};

struct SessionReading {
  int64_t id = 0;            // in wisp_readings
  bool has_changed = false;  // whether there is something to commit
};
// All of it: reads the rows of a log by session, with options.private_run, and remembers what was read. The database as
// for SessionTable. Errors of both, and of ReadSqlite (readers.h).
Result<SessionReading> ReadSessions(const std::string& path, sqlite3* database, const ReadOptions& options,
                                    SequenceBuilder& builder);
// How often that goes over a log and its tables.
inline constexpr int kSessionPasses = 8;

// kIo: the log cannot be written. To be called before anything else is asked of the database.
Status CannotRemember(const std::string& path, sqlite3* database);

// Deletes the events of the table `events` whose session ended before `limit`, all of a session or none, and those that
// are in no session by their own time. Right after ReadSessions of that table, in the same transaction. How many went;
// -1 on errors: see sqlite3_errcode.
int64_t DeleteSessionsBefore(sqlite3* database, int64_t reading, uint32_t times_per_second, int64_t limit);

// After events were deleted, in the same transaction: whoever is forgotten is forgotten here too. How many times went;
// -1 on errors.
int64_t ForgetSessionsWithoutEvents(sqlite3* database);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SESSION_TABLE_H_
