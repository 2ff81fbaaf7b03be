#include "runtime/data/session_table.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/data/lines.h"
#include "runtime/data/sqlite_file.h"
#include "runtime/sqlite/open.h"

namespace wisp::data {
namespace {

constexpr char kReadings[] =
    "CREATE TABLE wisp_readings(id INTEGER PRIMARY KEY, log TEXT, user TEXT, time TEXT, gap INTEGER, second INTEGER)";
constexpr char kSessions[] =
    "CREATE TABLE wisp_sessions(reading INTEGER, user TEXT, time INTEGER, session INTEGER, "
    "PRIMARY KEY(reading, user, time)) WITHOUT ROWID";

bool Run(sqlite3* database, const char* sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

// Whether the tables are there. Nothing on errors.
std::optional<bool> HasTables(sqlite3* database) {
  const auto type = TypeOf(database, "wisp_readings");
  if (!type) return std::nullopt;
  return !type->empty();
}

struct Reading {
  int64_t id = 0;
  SessionSource source;
};

std::optional<std::vector<Reading>> Readings(sqlite3* database) {
  const SqliteStatement select = Prepare(database, "SELECT id, log, user, time, gap, second FROM wisp_readings");
  if (select == nullptr) return std::nullopt;
  std::vector<Reading> readings;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    readings.push_back({.id = sqlite3_column_int64(select.get(), 0),
                        .source = {.table = std::string(TextOf(select.get(), 1)),
                                   .user = std::string(TextOf(select.get(), 2)),
                                   .time = std::string(TextOf(select.get(), 3)),
                                   .gap = sqlite3_column_int64(select.get(), 4),
                                   .times_per_second = static_cast<uint32_t>(sqlite3_column_int64(select.get(), 5))}});
  }
  return code == SQLITE_DONE ? std::optional(std::move(readings)) : std::nullopt;
}

// Users and times of the events there are. Of a table that is gone, or has other columns now, there are none: SQLite
// would take the name of a column that it does not know for a text.
std::string EventsOf(sqlite3* database, const SessionSource& source) {
  const auto type = TypeOf(database, source.table);
  const auto columns = Names(database, "SELECT name FROM pragma_table_info(?)", source.table);
  const auto has = [&](const std::string& name) {
    return columns && std::find(columns->begin(), columns->end(), name) != columns->end();
  };
  if (type != "table" || !has(source.user) || !has(source.time)) return "SELECT NULL AS key, NULL AS at";
  return "SELECT wisp_key(" + Quoted(source.user) + ") AS key, wisp_time(" + Quoted(source.time) + ", " +
         std::to_string(source.times_per_second) + ") AS at FROM " + Quoted(source.table);
}

}  // namespace

Status CannotRemember(const std::string& path, sqlite3* database) {
  const std::string said =
      sqlite3_db_readonly(database, nullptr) == 1 ? "the file is read-only" : sqlite::WhyFailed(database);
  if (sqlite3_errcode(database) == SQLITE_INTERRUPT) return InvalidData(path, ": ", kTooMuchWork);
  WISP_RETURN_IF_ERROR(sqlite::Explain(path, path, database));
  return IoError(OneLine(path +
                         ": it cannot be noted in the log what was read, so what its sessions are would change with "
                         "what comes late: " +
                         said + "; a log with sessions must be one that can be written"));
}

int64_t ForgetSessionsWithoutEvents(sqlite3* database) {
  const auto has_tables = HasTables(database);
  if (!has_tables) return -1;
  if (!*has_tables) return 0;
  const auto readings = Readings(database);
  if (!readings) return -1;
  int64_t gone = 0;
  for (const Reading& reading : *readings) {
    // What is not an event's would be NULL, and NULL is neither in a set nor out of it.
    const SqliteStatement forget = Prepare(
        database, ("DELETE FROM wisp_sessions WHERE reading = ? AND (user, time) NOT IN (SELECT key, at FROM (" +
                   EventsOf(database, reading.source) + ") WHERE key IS NOT NULL AND at IS NOT NULL)")
                      .c_str());
    if (forget == nullptr) return -1;
    sqlite3_bind_int64(forget.get(), 1, reading.id);
    if (sqlite3_step(forget.get()) != SQLITE_DONE) return -1;
    gone += sqlite3_changes64(database);
  }
  return gone;
}

int64_t DeleteSessionsBefore(sqlite3* database, int64_t reading, uint32_t times_per_second, int64_t limit) {
  const SqliteStatement remove = Prepare(
      database,
      "DELETE FROM events WHERE (wisp_key(user), wisp_time(time, ?1)) IN (SELECT user, time FROM wisp_sessions WHERE "
      "reading = ?2 AND (user, session) IN (SELECT user, session FROM wisp_sessions WHERE reading = ?2 GROUP BY user, "
      "session HAVING max(time) < ?3)) OR (wisp_time(time, ?1) < ?3 AND (wisp_key(user) IS NULL OR "
      "wisp_time(time, ?1) NOT BETWEEN 0 AND ?4))");
  if (remove == nullptr) return -1;
  sqlite3_bind_int64(remove.get(), 1, times_per_second);
  sqlite3_bind_int64(remove.get(), 2, reading);
  sqlite3_bind_int64(remove.get(), 3, limit);
  sqlite3_bind_int64(remove.get(), 4, LatestTime(times_per_second));
  return sqlite3_step(remove.get()) == SQLITE_DONE ? sqlite3_changes64(database) : -1;
}

SessionTable::SessionTable(std::string path, sqlite3* database, SessionSource source)
    : path_(std::move(path)), database_(database), source_(std::move(source)) {}

Status SessionTable::Error() const { return CannotRemember(path_, database_); }

// What others put there would be taken for sessions, or run.
Status SessionTable::CheckTables() const {
  const auto made = Names(database_,
                          "SELECT coalesce(sql, '') FROM sqlite_master WHERE tbl_name IN ('wisp_readings', "
                          "'wisp_sessions') ORDER BY name");
  if (!made) return Error();
  if (*made == std::vector<std::string>{kReadings, kSessions}) return OkStatus();
  return InvalidData(path_,
                     ": its tables 'wisp_readings' and 'wisp_sessions' are not those in which wisp notes what "
                     "was read");
}

Result<bool> SessionTable::FindReading() {
  const auto bind = [&](sqlite3_stmt* statement) {
    BindText(statement, 1, source_.table);
    BindText(statement, 2, source_.user);
    BindText(statement, 3, source_.time);
    sqlite3_bind_int64(statement, 4, source_.gap);
    sqlite3_bind_int64(statement, 5, source_.times_per_second);
  };
  const SqliteStatement select = Prepare(
      database_, "SELECT id FROM wisp_readings WHERE log = ? AND user = ? AND time = ? AND gap = ? AND second = ?");
  if (select == nullptr) return Error();
  bind(select.get());
  const int code = sqlite3_step(select.get());
  if (code == SQLITE_ROW) {
    reading_ = sqlite3_column_int64(select.get(), 0);
    return true;
  }
  if (code != SQLITE_DONE) return Error();
  const SqliteStatement insert =
      Prepare(database_, "INSERT INTO wisp_readings(log, user, time, gap, second) VALUES(?, ?, ?, ?, ?)");
  if (insert == nullptr) return Error();
  bind(insert.get());
  if (sqlite3_step(insert.get()) != SQLITE_DONE) return Error();
  reading_ = sqlite3_last_insert_rowid(database_);
  has_changed_ = true;
  return false;
}

Result<SessionMemory> SessionTable::Load() {
  const auto has_tables = HasTables(database_);
  if (!has_tables) return Error();
  if (!*has_tables && (!Run(database_, kReadings) || !Run(database_, kSessions))) return Error();
  WISP_RETURN_IF_ERROR(CheckTables());
  // Of no consequence, but it is written.
  if (!Run(database_, "REPLACE INTO wisp_readings(id) VALUES(0)") ||
      !Run(database_, "DELETE FROM wisp_readings WHERE id = 0"))
    return Error();
  WISP_ASSIGN_OR_RETURN(const bool was_read, FindReading());
  const SqliteStatement select =
      Prepare(database_, "SELECT user, time, session FROM wisp_sessions WHERE reading = ? ORDER BY user, time");
  if (select == nullptr) return Error();
  sqlite3_bind_int64(select.get(), 1, reading_);
  SessionMemory memory(was_read);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW)
    memory.Add(TextOf(select.get(), 0),
               {.time = sqlite3_column_int64(select.get(), 1), .session = sqlite3_column_int64(select.get(), 2)});
  if (code != SQLITE_DONE) return Error();
  return memory;
}

Status SessionTable::Save(const SessionMemory& memory) {
  const int64_t gone = ForgetSessionsWithoutEvents(database_);
  if (gone < 0) return Error();
  const SqliteStatement insert = Prepare(database_, "INSERT INTO wisp_sessions VALUES(?, ?, ?, ?)");
  if (insert == nullptr) return Error();
  for (const SessionMemory::News& news : memory.news()) {
    sqlite3_bind_int64(insert.get(), 1, reading_);
    BindText(insert.get(), 2, news.user);
    sqlite3_bind_int64(insert.get(), 3, news.read.time);
    sqlite3_bind_int64(insert.get(), 4, news.read.session);
    if (sqlite3_step(insert.get()) != SQLITE_DONE) return Error();
    sqlite3_reset(insert.get());
  }
  has_changed_ = has_changed_ || gone > 0 || !memory.news().empty();
  return OkStatus();
}

}  // namespace wisp::data
