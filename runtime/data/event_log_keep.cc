// What a log forgets, and what it holds.
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/data/event_log.h"
#include "runtime/data/read_marks.h"
#include "runtime/core/date.h"
#include "runtime/data/sqlite_file.h"

namespace wisp::data {
namespace {

constexpr char kForgetting[] = "cannot forget", kEvents[] = "events";

// The time from which on a user's events stay; those at `times`, which ascend.
int64_t FirstKept(const std::vector<int64_t>& times, const PruneOptions& o) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::min(), kNone = std::numeric_limits<int64_t>::max();
  const int64_t second = o.units.times_per_second;
  int64_t first = kAll;
  if (o.units.unit == RecordUnit::kUser) {
    if (o.before) first = *o.before;
    if (o.newest_per_user > 0 && times.size() > o.newest_per_user)
      first = std::max(first, times[times.size() - o.newest_per_user]);
    return first;
  }
  if (o.units.unit == RecordUnit::kDay) return *o.before - *o.before % (second * kSecondsOfDay);
  // Back over all pauses that end no session.
  const int64_t gap = o.units.session_gap * second;
  first = kNone;
  int64_t later = *o.before;
  auto event = std::lower_bound(times.begin(), times.end(), *o.before);
  if (event != times.end()) first = later = *event;
  while (event != times.begin() && *(event - 1) >= later - gap) first = later = *--event;
  return first;
}

Status Check(const PruneOptions& o) {
  WISP_RETURN_IF_ERROR(CheckUnits(o.units));
  if (!o.before && o.newest_per_user == 0)
    return InvalidArgument("nothing says what the log is to forget: give an age, or a number of events for each user");
  if (o.units.unit == RecordUnit::kUser) return OkStatus();
  if (o.newest_per_user > 0)
    return InvalidArgument(
        "a number of events for each user is given, and the unit is smaller than a user: one session or day would "
        "decide whether another stays; allowed is an age");
  if (*o.before < 0)
    return InvalidArgument("the log is to forget what was before ", *o.before, ", allowed is 0 and more");
  return OkStatus();
}

}  // namespace

// secure_delete: Debian's SQLite has it as its default, others do not.
Result<uint64_t> EventLog::Erase(const std::string& user) {
  WISP_RETURN_IF_ERROR(Execute("PRAGMA secure_delete=ON", kForgetting));
  uint64_t erased = 0;
  {
    SqliteTransaction transaction(database_);
    if (!transaction.is_open()) return Error(kForgetting);
    WorkLimit work(database_);
    work.AllowForSize();
    const SqliteStatement erase = Prepare(database_, "DELETE FROM events WHERE user = ?");
    if (erase == nullptr) return Error(kForgetting);
    BindText(erase.get(), 1, user);
    if (sqlite3_step(erase.get()) != SQLITE_DONE) return Error(kForgetting);
    erased = static_cast<uint64_t>(sqlite3_changes64(database_));
    if (!TidyMarks(database_, kEvents) || !transaction.Commit()) return Error(kForgetting);
  }
  WISP_RETURN_IF_ERROR(Shrink());
  return erased;
}

Result<std::vector<int64_t>> EventLog::Times(const std::string& user, uint32_t per_second) const {
  const SqliteStatement select =
      Prepare(database_, "SELECT wisp_time(time, ?2) AS at FROM events WHERE user = ?1 AND at IS NOT NULL ORDER BY at");
  if (select == nullptr) return Error("cannot read");
  BindText(select.get(), 1, user);
  sqlite3_bind_int64(select.get(), 2, per_second);
  std::vector<int64_t> times;
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) times.push_back(sqlite3_column_int64(select.get(), 0));
  if (code != SQLITE_DONE) return Error("cannot read");
  return times;
}

Result<uint64_t> EventLog::DeleteBefore(const std::string& user, int64_t time, uint32_t per_second) {
  const SqliteStatement remove = Prepare(database_, "DELETE FROM events WHERE user = ?1 AND wisp_time(time, ?3) < ?2");
  if (remove == nullptr) return Error(kForgetting);
  BindText(remove.get(), 1, user);
  sqlite3_bind_int64(remove.get(), 2, time);
  sqlite3_bind_int64(remove.get(), 3, per_second);
  if (sqlite3_step(remove.get()) != SQLITE_DONE) return Error(kForgetting);
  return static_cast<uint64_t>(sqlite3_changes64(database_));
}

Result<uint64_t> EventLog::PruneUsers(const PruneOptions& o) {
  uint64_t pruned = 0;
  constexpr size_t kAtOnce = 256;
  std::string after;
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const std::vector<LogUser> users, Users(after, kAtOnce));
    for (const LogUser& u : users) {
      WorkLimit work(database_);
      work.AllowForSize();
      const uint32_t per_second = o.units.times_per_second;
      WISP_ASSIGN_OR_RETURN(const std::vector<int64_t> times, Times(u.user, per_second));
      WISP_ASSIGN_OR_RETURN(const uint64_t gone, DeleteBefore(u.user, FirstKept(times, o), per_second));
      pruned += gone;
    }
    if (users.size() < kAtOnce) return pruned;
    after = users.back().user;
  }
}

Result<uint64_t> EventLog::Prune(const PruneOptions& o) {
  WISP_RETURN_IF_ERROR(Check(o));
  WISP_RETURN_IF_ERROR(Execute("PRAGMA secure_delete=ON", kForgetting));
  uint64_t pruned = 0;
  {
    SqliteTransaction transaction(database_);
    if (!transaction.is_open()) return Error(kForgetting);
    WISP_ASSIGN_OR_RETURN(pruned, PruneUsers(o));
    if (!TidyMarks(database_, kEvents) || !transaction.Commit()) return Error(kForgetting);
  }
  WISP_RETURN_IF_ERROR(Shrink());
  return pruned;
}

// Unused pages are given back. A file that another program made keeps them, and uses them again.
Status EventLog::Shrink() {
  WISP_RETURN_IF_ERROR(Execute("PRAGMA incremental_vacuum", kForgetting));
  WISP_ASSIGN_OR_RETURN(const bool overwritten, EmptyWriteAheadLog());
  if (overwritten) return OkStatus();
  return IoError("event log '", path_,
                 "': the events are deleted, but their bytes are still on the disk, as another program is reading the "
                 "log as it was; do the same again once that one has ended");
}

// A log that another program made may have a write-ahead log. What is overwritten is overwritten in there first, and in
// the file once nobody reads an older state.
Result<bool> EventLog::EmptyWriteAheadLog() {
  const SqliteStatement checkpoint = Prepare(database_, "PRAGMA wal_checkpoint(TRUNCATE)");
  const int stepped = checkpoint == nullptr ? SQLITE_ERROR : sqlite3_step(checkpoint.get());
  if (stepped == SQLITE_DONE) return true;  // an SQLite without write-ahead logs, as in browsers, has nothing to empty
  if (stepped != SQLITE_ROW) return Error(kForgetting);
  return sqlite3_column_int64(checkpoint.get(), 0) == 0;  // whether it was busy
}

// As SQLite would write it, at one moment; with what a write-ahead log holds.
Status EventLog::Backup(const std::string& copy) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  constexpr size_t kWriteVersionAt = 18, kReadVersionAt = 19;  // 2: there may be a write-ahead log; 1: there is none
  WISP_RETURN_IF_ERROR(CheckApart({"the copy", copy}, {"the log", path_}));
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes(sqlite3_serialize(database_, "main", &size, 0),
                                                                      &sqlite3_free);
  if (bytes == nullptr && size > 0)
    return IoError("event log '", path_, "': cannot be copied: there is not enough memory for its ", size, " bytes");
  if (bytes == nullptr || size <= static_cast<sqlite3_int64>(kReadVersionAt)) return Error("cannot be copied");
  bytes.get()[kWriteVersionAt] = bytes.get()[kReadVersionAt] = 1;
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(copy));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(bytes.get(), static_cast<size_t>(size)))));
  return file.Commit();
}

Status EventLog::Restore(const std::string& copy) {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WISP_RETURN_IF_ERROR(CheckApart({"the copy", copy}, {"the log", path_}));
  WISP_ASSIGN_OR_RETURN(const EventLog from, OpenExisting(copy));
  {
    WorkLimit work(from.database_);
    work.AllowForSize();
    const auto faults = Names(from.database_, "PRAGMA quick_check(1)");
    if (!faults) return from.Error("cannot be read");
    if (*faults != std::vector<std::string>{"ok"})
      return InvalidData("event log '", copy, "': is damaged, and nothing was restored: ", OneLine(faults->front()));
  }
  sqlite3_backup* backup = sqlite3_backup_init(database_, "main", from.database_, "main");
  if (backup == nullptr) return Error("cannot be restored");
  sqlite3_backup_step(backup, -1);
  // Finishing tells what stepping met, and undoes what is not complete.
  return sqlite3_backup_finish(backup) == SQLITE_OK ? OkStatus() : Error("cannot be restored");
}

Result<LogCount> EventLog::Count(uint32_t per_second) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WorkLimit work(database_);
  work.AllowForSize();
  const SqliteStatement select =
      Prepare(database_,
              "SELECT count(*), count(DISTINCT user), count(DISTINCT item), min(wisp_time(time, ?1)), "
              "max(wisp_time(time, ?1)) FROM events");
  if (select == nullptr) return Error("cannot read");
  sqlite3_bind_int64(select.get(), 1, per_second);
  if (sqlite3_step(select.get()) != SQLITE_ROW) return Error("cannot read");
  const auto number = [&](int column) { return sqlite3_column_int64(select.get(), column); };
  LogCount count{.events = static_cast<uint64_t>(number(0)),
                 .users = static_cast<uint64_t>(number(1)),
                 .items = static_cast<uint64_t>(number(2))};
  if (count.events > 0) count.oldest = number(3), count.newest = number(4);
  return count;
}

Result<std::vector<Event>> EventLog::Events(const std::string& user) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WorkLimit work(database_);
  work.AllowForSize();
  const SqliteStatement select =
      Prepare(database_, "SELECT item, time FROM events WHERE user = ? ORDER BY time, rowid");
  if (select == nullptr) return Error("cannot read");
  BindText(select.get(), 1, user);
  std::vector<Event> events;
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW)
    events.push_back({user, std::string(TextOf(select.get(), 0)), sqlite3_column_int64(select.get(), 1)});
  if (code != SQLITE_DONE) return Error("cannot read");
  return events;
}

Result<std::vector<LogUser>> EventLog::Users(const std::string& after, size_t limit) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WorkLimit work(database_);
  work.AllowForSize();
  const SqliteStatement select = Prepare(
      database_,
      "SELECT user, count(*), max(wisp_time(time, 1)) FROM events WHERE user > ? GROUP BY user ORDER BY user LIMIT ?");
  if (select == nullptr) return Error("cannot read");
  BindText(select.get(), 1, after);
  sqlite3_bind_int64(select.get(), 2, static_cast<sqlite3_int64>(limit));
  std::vector<LogUser> users;
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    users.push_back({.user = std::string(TextOf(select.get(), 0)),
                     .events = static_cast<uint64_t>(sqlite3_column_int64(select.get(), 1)),
                     .newest = sqlite3_column_int64(select.get(), 2)});
  }
  if (code != SQLITE_DONE) return Error("cannot read");
  return users;
}

}  // namespace wisp::data
