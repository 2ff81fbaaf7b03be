// The device's log of user events: one SQLite file, appended to as events happen, and read when the model is
// fine-tuned.
//
//   WISP_ASSIGN_OR_RETURN(EventLog log, EventLog::Open("events.db"));
//   WISP_RETURN_IF_ERROR(log.Append({.user = "anna", .item = "espresso", .time = 1700000000}));
//
// The table is events(user TEXT, item TEXT, time INTEGER), which the SQLite reader reads too. An existing table may
// have more columns, with constants for defaults, integers for users and items, and dates of ISO 8601 for times
// (date_time.h). An event counts here if and as training reads it (AddEventFunctions, sqlite_file.h). Events that
// training cannot read are counted (LogCount::unreadable) and pruned by their age; they are neither listed nor
// exported.
//
// Nothing in the file is executed: triggers do not fire, and CHECK constraints are not evaluated. Used by one thread at
// a time. In a forked process every call refuses, and the destructor leaves the file open, because SQLite would take
// its parent's locks for its own.
//
// A file that Open created is complete after each append: it has no write-ahead log, so a copy of the file alone is a
// copy of the log. A reader blocks appenders for as long as reading takes. A file that another program created keeps
// its own journal mode.
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

// Counts of what a log holds. Local only: not private.
struct LogCount {
  uint64_t events = 0, users = 0, items = 0;
  uint64_t unreadable = 0;                // events whose user, item or time training cannot read
  uint64_t dates = 0;                     // events whose time is a date, which is converted to units since 1970
  std::optional<int64_t> oldest, newest;  // times; nullopt if no event has one
};
struct LogUser {
  std::string user;
  uint64_t events = 0;
  std::optional<int64_t> newest;  // nullopt if no event has a time
};

// Selects what may be deleted. Whether an event stays depends only on its own unit. If it depended on the number of
// events, one record would decide over others, and a bound on one record would bound nothing. So a log cannot be pruned
// to a total number of events; it can be bounded by age and, with the unit user, by a number for each user.
struct PruneOptions {
  // Deletes events before this time, except those of a unit that has later events too, or that a later event may still
  // join. An event of which training can read only the time is deleted by that time.
  std::optional<int64_t> before = {};
  uint64_t newest_per_user = 0;  // with the unit user, keeps so many of each user; 0: all
  Units units = {};              // the units that the log is trained with
};

class EventLog {
 public:
  // Opens the file, or creates it with an empty table, readable by the owner alone. kInvalidArgument for a path that is
  // not a file's name (CheckDatabaseName); kInvalidData if `events` is not a plain table with the three columns, or has
  // computed columns.
  static Result<EventLog> Open(const std::string& path);
  // Opens an existing log to count and list; adds nothing to it. Changes that a killed app left in SQLite's journal are
  // recovered. Works on a read-only file system, too. kInvalidData if there is no table, otherwise as Open.
  static Result<EventLog> OpenExisting(const std::string& path);
  // Writes a copy of the current log into one complete file, readable by the owner alone. Takes memory of the log's
  // size. kInvalidArgument if a file is at `copy`, because it would be lost.
  Status Backup(const std::string& copy) const;
  // Replaces the whole content of the log at `path` by that of `copy`, or changes no byte of it. A log that is missing
  // is made; so is one of a file without any table, which a restoration that met a full disk leaves. kInvalidData if
  // `copy` is not a log. kInvalidArgument if the file has a table that the copy lacks, because it would be lost; the
  // tables in which wisp stores sessions (session_table.h) are excepted.
  static Status Restore(const std::string& path, const std::string& copy);
  EventLog(EventLog&&) noexcept;
  EventLog& operator=(EventLog&&) noexcept;
  ~EventLog();

  // The event is on disk when it returns. Users and items with a KeyFault (sequences.h) are refused.
  Status Append(const Event& event);
  // Appends all events or none, with one write to the disk.
  Status AppendAll(std::span<const Event> events);

  // Deletes all events of the user, including those that training cannot read, overwrites them in the file, and returns
  // their number. What a model has learned from them stays in the model. kIo if another program reads the log for
  // longer than a few seconds: the sentence says whether the events are deleted and their bytes not yet overwritten, or
  // nothing was done. Call it again then. Opening the log overwrites what could not be overwritten before.
  Result<uint64_t> Erase(const std::string& user);
  // Returns the number of deleted events. Sessions are cut as training cuts them, so this is a reading, which the log
  // remembers (session_table.h). kIo as in Erase. kInvalidArgument for options that would make one record decide over
  // others (PruneOptions), and for bad units. kInvalidData with the unit session for a log that training by session
  // refuses. If Open created the file, it shrinks by what was in it.
  Result<uint64_t> Prune(const PruneOptions& options);

  // Here and below, dates are converted to `per_second` units a second since 1970.
  Result<LogCount> Count(uint32_t per_second = 1) const;
  // Lists at most `limit` users by key, beginning with the first after `after`.
  Result<std::vector<LogUser>> Users(const std::string& after, size_t limit, uint32_t per_second = 1) const;

  // The user's events that training can read, oldest first; equal times in the order of appending, or of the primary
  // key in a table without rowid.
  Result<std::vector<Event>> Events(const std::string& user, uint32_t per_second = 1) const;
  // The item keys of the user's newest `limit` events, oldest first; equal times in the order of appending.
  Result<std::vector<std::string>> History(const std::string& user, size_t limit) const;

 private:
  EventLog(std::string path, sqlite3* database);
  static Result<EventLog> Connect(const std::string& path, int flags);
  // Opens the file to write, and creates it without a table.
  static Result<EventLog> Create(const std::string& path);
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
  // False if another program is reading an older state.
  Result<bool> EmptyWriteAheadLog();

  std::string path_;
  sqlite3* database_ = nullptr;
  Origin origin_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_EVENT_LOG_H_
