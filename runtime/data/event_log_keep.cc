// Pruning, erasing, copying and counting the events of a log.
#include <sqlite3.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "runtime/core/date.h"
#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/data/event_log.h"
#include "runtime/data/lines.h"
#include "runtime/data/session_table.h"
#include "runtime/data/sqlite_file.h"

namespace wisp::data {
namespace {

constexpr char kForgetting[] = "cannot forget";

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

// Compares users as text, whatever the column's type and collation, because a user may be an integer, or bytes that
// training cannot read. secure_delete is the default in Debian's SQLite, but not everywhere.
Result<uint64_t> EventLog::Erase(const std::string& user) {
  WISP_RETURN_IF_ERROR(Execute("PRAGMA secure_delete=ON", kForgetting));
  uint64_t erased = 0;
  {
    SqliteTransaction transaction(database_);
    if (!transaction.is_open()) return Error(kForgetting);
    WorkLimit work(database_);
    work.AllowForSize();
    const SqliteStatement erase = Prepare(database_, "DELETE FROM events WHERE CAST(user AS TEXT) = ? COLLATE BINARY");
    if (erase == nullptr) return Error(kForgetting);
    BindText(erase.get(), 1, user);
    if (sqlite3_step(erase.get()) != SQLITE_DONE) return Error(kForgetting);
    erased = static_cast<uint64_t>(sqlite3_changes64(database_));
    if (ForgetSessionsWithoutEvents(database_, work) < 0 || !transaction.Commit()) return Error(kForgetting);
  }
  WISP_RETURN_IF_ERROR(Shrink());
  return erased;
}

Result<uint64_t> EventLog::DeleteBefore(int64_t time, uint32_t per_second) {
  const SqliteStatement remove = Prepare(database_, "DELETE FROM events WHERE wisp_time(time, ?2) < ?1");
  if (remove == nullptr) return Error(kForgetting);
  sqlite3_bind_int64(remove.get(), 1, time);
  sqlite3_bind_int64(remove.get(), 2, per_second);
  if (sqlite3_step(remove.get()) != SQLITE_DONE) return Error(kForgetting);
  return static_cast<uint64_t>(sqlite3_changes64(database_));
}

// The first event of a user that stays is the one with newest_per_user - 1 later ones.
Result<uint64_t> EventLog::KeepNewest(const PruneOptions& o) {
  std::vector<std::pair<std::string, int64_t>> first_kept;
  {
    const SqliteStatement select =
        Prepare(database_,
                "SELECT key, at FROM (SELECT wisp_key(user) AS key, wisp_time(time, ?1) AS at FROM events) "
                "WHERE key IS NOT NULL AND at IS NOT NULL ORDER BY key, at DESC");
    if (select == nullptr) return Error(kForgetting);
    sqlite3_bind_int64(select.get(), 1, o.units.times_per_second);
    std::string user;
    uint64_t seen = 0;
    int code;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      if (const std::string_view key = GetText(select.get(), 0); key != user) user = key, seen = 0;
      if (++seen == o.newest_per_user) first_kept.emplace_back(user, sqlite3_column_int64(select.get(), 1));
    }
    if (code != SQLITE_DONE) return Error(kForgetting);
  }
  const SqliteStatement remove = Prepare(
      database_, (std::string("DELETE FROM events WHERE ") + kUserCondition + " AND wisp_time(time, ?4) < ?3").c_str());
  if (remove == nullptr) return Error(kForgetting);
  uint64_t gone = 0;
  for (const auto& [user, time] : first_kept) {
    BindUser(remove.get(), user);
    sqlite3_bind_int64(remove.get(), 3, time);
    sqlite3_bind_int64(remove.get(), 4, o.units.times_per_second);
    if (sqlite3_step(remove.get()) != SQLITE_DONE) return Error(kForgetting);
    gone += static_cast<uint64_t>(sqlite3_changes64(database_));
    sqlite3_reset(remove.get());
    sqlite3_clear_bindings(remove.get());
  }
  return gone;
}

// Sessions must be final before one is deleted; otherwise a late event could merge two of them.
Result<uint64_t> EventLog::DeleteSessions(const PruneOptions& o, WorkLimit& work) {
  const int64_t second = o.units.times_per_second;
  ReadOptions options{.units = o.units, .private_run = true};
  // Columns are named with the log's own spelling.
  for (const auto& [name, column] : {std::pair("user", &options.user_column), std::pair("item", &options.item_column),
                                     std::pair("time", &options.time_column)}) {
    const auto there =
        Names(database_, "SELECT name FROM pragma_table_info('events') WHERE name = ? COLLATE NOCASE", name);
    if (!there || there->empty()) return Error(kForgetting);
    *column = there->front();
  }
  SequenceBuilder builder(path_, "table events, row", true);
  WISP_ASSIGN_OR_RETURN(SessionReading reading, SessionReading::Read(path_, database_, options, builder));
  WISP_RETURN_IF_ERROR(reading.Save(work));
  const int64_t gone =
      DeleteSessionsBefore(database_, reading.id(), o.units.times_per_second, *o.before - o.units.session_gap * second);
  if (gone < 0) return Error(kForgetting);
  return static_cast<uint64_t>(gone);
}

Result<uint64_t> EventLog::DeleteEvents(const PruneOptions& o) {
  WorkLimit work(database_);
  work.AllowForSize(kSessionPasses);
  const uint32_t second = o.units.times_per_second;
  if (o.units.unit == RecordUnit::kSession) return DeleteSessions(o, work);
  if (o.units.unit == RecordUnit::kDay) return DeleteBefore(*o.before - *o.before % (second * kSecondsPerDay), second);
  uint64_t gone = 0;
  if (o.before) {
    WISP_ASSIGN_OR_RETURN(gone, DeleteBefore(*o.before, second));
  }
  if (o.newest_per_user == 0) return gone;
  WISP_ASSIGN_OR_RETURN(const uint64_t more, KeepNewest(o));
  return gone + more;
}

Result<uint64_t> EventLog::Prune(const PruneOptions& o) {
  WISP_RETURN_IF_ERROR(Check(o));
  WISP_RETURN_IF_ERROR(Execute("PRAGMA secure_delete=ON", kForgetting));
  uint64_t pruned = 0;
  {
    SqliteTransaction transaction(database_);
    if (!transaction.is_open()) return Error(kForgetting);
    WISP_ASSIGN_OR_RETURN(pruned, DeleteEvents(o));
    WorkLimit work(database_);
    if (ForgetSessionsWithoutEvents(database_, work) < 0 || !transaction.Commit()) return Error(kForgetting);
  }
  WISP_RETURN_IF_ERROR(Shrink());
  return pruned;
}

// Returns unused pages to the system. A file that another program created keeps them for reuse.
Status EventLog::Shrink() {
  WISP_RETURN_IF_ERROR(Execute("PRAGMA incremental_vacuum", kForgetting));
  WISP_ASSIGN_OR_RETURN(const bool overwritten, EmptyWriteAheadLog());
  if (overwritten) return OkStatus();
  return IoError("event log '", path_,
                 "': the events are deleted, but their bytes are still on the disk, as another program is reading the "
                 "log as it was; do the same again once that one has ended");
}

// A log that another program created may have a write-ahead log. Then overwriting happens there first, and in the file
// once nobody reads an older state.
Result<bool> EventLog::EmptyWriteAheadLog() {
  const SqliteStatement checkpoint = Prepare(database_, "PRAGMA wal_checkpoint(TRUNCATE)");
  const int stepped = checkpoint == nullptr ? SQLITE_ERROR : sqlite3_step(checkpoint.get());
  if (stepped == SQLITE_DONE) return true;  // an SQLite without write-ahead logs, as in browsers, has nothing to empty
  if (stepped != SQLITE_ROW) return Error(kForgetting);
  return sqlite3_column_int64(checkpoint.get(), 0) == 0;  // the checkpoint was not busy
}

// Writes what SQLite would write at one moment, including what is in a write-ahead log.
Status EventLog::Backup(const std::string& copy) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  constexpr size_t kWriteVersionAt = 18, kReadVersionAt = 19;  // 2: a write-ahead log is possible; 1: it is not
  WISP_RETURN_IF_ERROR(CheckApart({"the copy", copy}, {"the log", path_}));
  // Any existing file refuses: a mistyped name may be a model's.
  if (platform::FileInfo there; platform::GetLinkInfo(copy, there) == 0)
    return InvalidArgument(copy, ": is there already and will not be replaced by a copy of a log: name another file");
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

Status EventLog::Restore(const std::string& path, const std::string& copy) {
  WISP_RETURN_IF_ERROR(CheckApart({"the copy", copy}, {"the log", path}));
  WISP_ASSIGN_OR_RETURN(const EventLog from, OpenExisting(copy));
  WISP_ASSIGN_OR_RETURN(EventLog log, Create(path));
  constexpr char kTables[] =
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name";
  const auto there = Names(log.database_, kTables), ours = SessionTables(log.database_);
  const auto in_copy = Names(from.database_, kTables);
  if (!there || !ours) return log.Error("cannot be restored");
  if (!in_copy) return from.Error("cannot be read");
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& table : *there) {
    if (!has(*in_copy, table) && !has(*ours, table))
      return InvalidArgument(
          "event log '", path, "': has a table ", Shown(table), " that the copy '", copy,
          "' lacks, and which would be lost: nothing was restored; name a file that holds a log alone");
  }
  {
    WorkLimit work(from.database_);
    work.AllowForSize();
    const auto faults = Names(from.database_, "PRAGMA quick_check(1)");
    if (!faults) return from.Error("cannot be read");
    if (*faults != std::vector<std::string>{"ok"})
      return InvalidData("event log '", copy, "': is damaged, and nothing was restored: ", OneLine(faults->front()));
  }
  sqlite3_backup* backup = sqlite3_backup_init(log.database_, "main", from.database_, "main");
  if (backup == nullptr) return log.Error("cannot be restored");
  sqlite3_backup_step(backup, -1);
  // Finishing returns the error of a step, and undoes an incomplete copy.
  return sqlite3_backup_finish(backup) == SQLITE_OK ? OkStatus() : log.Error("cannot be restored");
}

Result<LogCount> EventLog::Count(uint32_t per_second) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WorkLimit work(database_);
  work.AllowForSize(2);  // a row of small numbers has fewer bytes than this query needs operations
  const SqliteStatement select =
      Prepare(database_,
              "SELECT count(*), count(DISTINCT user), count(DISTINCT item), "
              "count(*) - count(CASE WHEN user IS NOT NULL AND item IS NOT NULL THEN at END), min(at), max(at), "
              "total(is_date) FROM (SELECT wisp_key(user) AS user, wisp_key(item) AS item, wisp_time(time, ?1) AS at, "
              "typeof(time) = 'text' AND wisp_time(time, 1) <> wisp_time(time, 2) AS is_date FROM events)");
  if (select == nullptr) return Error("cannot read");
  sqlite3_bind_int64(select.get(), 1, per_second);
  if (sqlite3_step(select.get()) != SQLITE_ROW) return Error("cannot read");
  const auto number = [&](int column) { return sqlite3_column_int64(select.get(), column); };
  LogCount count{.events = static_cast<uint64_t>(number(0)),
                 .users = static_cast<uint64_t>(number(1)),
                 .items = static_cast<uint64_t>(number(2)),
                 .unreadable = static_cast<uint64_t>(number(3)),
                 .dates = static_cast<uint64_t>(number(6))};
  if (sqlite3_column_type(select.get(), 4) != SQLITE_NULL) count.oldest = number(4), count.newest = number(5);
  return count;
}

Result<std::vector<Event>> EventLog::Events(const std::string& user, uint32_t per_second) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WorkLimit work(database_);
  work.AllowForSize();
  const SqliteStatement select = PrepareInOrder(
      database_, std::string("SELECT wisp_key(item), wisp_time(time, ?3) FROM events WHERE ") + kUserCondition +
                     " AND wisp_key(item) IS NOT NULL AND wisp_time(time, ?3) IS NOT NULL");
  if (select == nullptr) return Error("cannot read");
  BindUser(select.get(), user);
  sqlite3_bind_int64(select.get(), 3, per_second);
  std::vector<Event> events;
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW)
    events.push_back({user, std::string(GetText(select.get(), 0)), sqlite3_column_int64(select.get(), 1)});
  if (code != SQLITE_DONE) return Error("cannot read");
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  return events;
}

Result<std::vector<LogUser>> EventLog::Users(const std::string& after, size_t limit, uint32_t per_second) const {
  WISP_RETURN_IF_ERROR(CheckProcess());
  WorkLimit work(database_);
  work.AllowForSize();
  const SqliteStatement select =
      Prepare(database_,
              "SELECT wisp_key(user), count(*), max(wisp_time(time, ?3)) FROM events WHERE wisp_key(user) > ?1 "
              "GROUP BY wisp_key(user) ORDER BY wisp_key(user) LIMIT ?2");
  if (select == nullptr) return Error("cannot read");
  BindText(select.get(), 1, after);
  sqlite3_bind_int64(select.get(), 2, static_cast<sqlite3_int64>(limit));
  sqlite3_bind_int64(select.get(), 3, per_second);
  std::vector<LogUser> users;
  int code;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    LogUser user{.user = std::string(GetText(select.get(), 0)),
                 .events = static_cast<uint64_t>(sqlite3_column_int64(select.get(), 1))};
    if (sqlite3_column_type(select.get(), 2) != SQLITE_NULL) user.newest = sqlite3_column_int64(select.get(), 2);
    users.push_back(std::move(user));
  }
  if (code != SQLITE_DONE) return Error("cannot read");
  return users;
}

}  // namespace wisp::data
