// The device's log of what its users did: one SQLite file, appended to as events happen, read when the model is
// fine-tuned.
//
//   WISP_ASSIGN_OR_RETURN(EventLog log, EventLog::Open("events.db"));
//   WISP_RETURN_IF_ERROR(log.Append({.user = "anna", .item = "espresso", .time = 1700000000}));
//
// Table events(user TEXT, item TEXT, time INTEGER), the same that the SQLite reader reads. One that is there already
// may have more columns, with constants for defaults, integers for users and items, and dates of ISO 8601 for times
// (date_time.h). An event counts here as training reads it (AddEventFunctions, sqlite_file.h). Events that training
// cannot read are counted (LogCount::unreadable) and forgotten by their age; they are neither listed nor exported.
// Nothing that the file says is run: no trigger fires, no CHECK is asked. Used by one thread at a time. In a process
// that was forked off every call refuses, and the destructor leaves the file as it is open: SQLite would take the locks
// of its parent for its own.
//
// A file that Open made is whole after each append: it has no write-ahead log, so a copy of it alone is a copy of the
// log. Who reads it keeps those waiting who append, for as long as reading takes. A file that another program made
// keeps the way of writing that it has.
#ifndef WISP_RUNTIME_DATA_EVENT_LOG_H_
#define WISP_RUNTIME_DATA_EVENT_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/fork.h"
#include "runtime/core/status.h"
#include "runtime/data/sequences.h"

struct sqlite3;
struct sqlite3_stmt;

namespace wisp::data {

class WorkLimit;  // sqlite_file.h

// What a log holds. Local only: not private.
struct LogCount {
  uint64_t events = 0, users = 0, items = 0;
  uint64_t unreadable = 0;                // events whose user, item or time training cannot read
  uint64_t dates = 0;                     // events whose time is a date, which counts from 1970
  std::optional<int64_t> oldest, newest;  // times; none where no event has one
};
struct LogUser {
  std::string user;
  uint64_t events = 0;
  std::optional<int64_t> newest;  // none where no event has a time
};

// What may be forgotten. Whether an event stays follows from its own unit alone: were it to follow from how many events
// there are, one record would decide over others, and a bound on one record would bound nothing. So a log cannot be
// pruned to a number of events in all; what bounds it are an age and, with the unit user, a number for each user.
struct PruneOptions {
  // Events before this time go, but for those of a unit that has later ones too, or that a later one may still join.
  // An event of which training can read the time alone goes by that time.
  std::optional<int64_t> before = {};
  uint64_t newest_per_user = 0;  // unit user: so many of each user stay; 0: all
  Units units = {};              // as the log is trained with
};

class EventLog {
 public:
  // Opens the file, or makes it with an empty table, readable by the owner alone. kInvalidArgument for what is no
  // file's name (CheckDatabaseName), kInvalidData where `events` is no plain table with the three columns, or has
  // others that are computed.
  static Result<EventLog> Open(const std::string& path);
  // One that is there and has the table, to count and list: nothing is added to it. What a killed app has left for
  // SQLite to take up is taken up. Also where nothing can be written. kInvalidData where there is no table, otherwise
  // as Open.
  static Result<EventLog> OpenExisting(const std::string& path);
  // Writes a copy of what the log holds now, one file, whole, the owner's alone. Takes memory of the log's size.
  // kInvalidArgument where a database is at `copy`: it would be lost.
  Status Backup(const std::string& copy) const;
  // All that the log holds becomes what `copy` holds, or nothing changes. kInvalidData where that is no log,
  // kInvalidArgument where the file has a table that the copy lacks and that is not one in which wisp notes sessions
  // (session_table.h): it would be lost.
  Status Restore(const std::string& copy);
  EventLog(EventLog&&) noexcept;
  EventLog& operator=(EventLog&&) noexcept;
  ~EventLog();

  // On disk when it returns. Users and items with a KeyFault (sequences.h) are refused.
  Status Append(const Event& event);
  // All of them or none, with one write to the disk.
  Status AppendAll(std::span<const Event> events);

  // Takes all events of the user away, those too that training cannot read, and overwrites them in the file. How many
  // there were. What a model has learned from them stays in the model. kIo where another program is reading the log for
  // longer than a few seconds: the sentence says whether the events are deleted and their bytes not yet overwritten, or
  // nothing was done. To be called again then. Opening the log overwrites what could not be overwritten before.
  Result<uint64_t> Erase(const std::string& user);
  // Returns how many events went. Sessions are cut as training cuts them, so this is a reading, which the log remembers
  // (session_table.h). kIo as Erase. kInvalidArgument for options that no pruning keeps (PruneOptions), and for bad
  // units. kInvalidData with the unit session for a log that training by session refuses. The file shrinks by what was
  // in it, if it was made by Open.
  Result<uint64_t> Prune(const PruneOptions& options);

  // Here and below a date counts from 1970, so many times to the second.
  Result<LogCount> Count(uint32_t per_second = 1) const;
  // Users by key, from the first after `after` on, at most `limit` of them.
  Result<std::vector<LogUser>> Users(const std::string& after, size_t limit, uint32_t per_second = 1) const;

  // All that the user did and training can read, the oldest first; ties in time in the order of appending, or of the
  // primary key in a table without rowid.
  Result<std::vector<Event>> Events(const std::string& user, uint32_t per_second = 1) const;
  // The item keys of the user's newest `limit` events, oldest first; ties in time in the order of appending.
  Result<std::vector<std::string>> History(const std::string& user, size_t limit) const;

 private:
  EventLog(std::string path, sqlite3* database);
  static Result<EventLog> Connect(const std::string& path, int flags);
  Status CheckProcess() const;
  Status CheckTable() const;
  Status Error(const char* doing) const;
  Status Execute(const char* sql, const char* doing);
  Status Insert(std::span<const Event> events);
  // Each deletes events and returns how many.
  Result<uint64_t> DeleteBefore(int64_t time, uint32_t per_second);
  Result<uint64_t> KeepNewest(const PruneOptions& options);
  Result<uint64_t> DeleteSessions(const PruneOptions& options, WorkLimit& work);
  Result<uint64_t> DeleteEvents(const PruneOptions& options);
  Status Shrink();
  // False where another program is reading an older state.
  Result<bool> EmptyWriteAheadLog();

  std::string path_;
  sqlite3* database_ = nullptr;
  Origin origin_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_EVENT_LOG_H_
