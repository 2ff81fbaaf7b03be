#include "runtime/data/session_table.h"

#include <algorithm>
#include <iterator>
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
    "CREATE TABLE wisp_readings(id INTEGER PRIMARY KEY, log TEXT, user TEXT, time TEXT, gap INTEGER, second INTEGER, "
    "readings INTEGER)";
constexpr char kSessions[] =
    "CREATE TABLE wisp_sessions(reading INTEGER, user TEXT, time INTEGER, session INTEGER, "
    "PRIMARY KEY(reading, user, time)) WITHOUT ROWID";
constexpr char kLedgers[] =
    "CREATE TABLE wisp_ledgers(reading INTEGER, ledger TEXT, PRIMARY KEY(reading, ledger)) WITHOUT ROWID";
// At this number of readings the allowed work stops growing: no real log has as many.
constexpr size_t kMostReadings = 64;

bool Run(sqlite3* database, const char* sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

// Tells whose tables have our names. Another program's content would be taken for sessions, or executed: an index of an
// expression, a module, a computed column.
enum class Tables { kNone, kOurs, kOthers };
constexpr const char* kTables[] = {"wisp_ledgers", "wisp_readings", "wisp_sessions"};

// nullopt on errors.
std::optional<Tables> ReadTables(sqlite3* database) {
  const auto made = Names(database,
                          "SELECT coalesce(sql, '') FROM sqlite_master WHERE lower(tbl_name) IN ('wisp_ledgers', "
                          "'wisp_readings', 'wisp_sessions') OR lower(name) IN ('wisp_ledgers', 'wisp_readings', "
                          "'wisp_sessions') ORDER BY name");
  if (!made) return std::nullopt;
  if (made->empty()) return Tables::kNone;
  if (*made != std::vector<std::string>{kLedgers, kReadings, kSessions}) return Tables::kOthers;
  for (const char* table : kTables) {
    const auto indexes = Names(database, "SELECT name FROM pragma_index_list(?) WHERE origin <> 'pk'", table);
    if (!indexes) return std::nullopt;
    if (!indexes->empty()) return Tables::kOthers;
  }
  return Tables::kOurs;
}

// Runs `sql` with its parameter, if it has one, set to `id`.
bool RunWith(sqlite3* database, const char* sql, int64_t id) {
  const SqliteStatement statement = Prepare(database, sql);
  if (statement == nullptr) return false;
  sqlite3_bind_int64(statement.get(), 1, id);
  return sqlite3_step(statement.get()) == SQLITE_DONE;
}

bool Forget(sqlite3* database, int64_t reading) {
  return RunWith(database, "DELETE FROM wisp_sessions WHERE reading = ?", reading) &&
         RunWith(database, "DELETE FROM wisp_ledgers WHERE reading = ?", reading);
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
                        .source = {.table = std::string(GetText(select.get(), 1)),
                                   .user = std::string(GetText(select.get(), 2)),
                                   .time = std::string(GetText(select.get(), 3)),
                                   .gap = sqlite3_column_int64(select.get(), 4),
                                   .times_per_second = static_cast<uint32_t>(sqlite3_column_int64(select.get(), 5))}});
  }
  return code == SQLITE_DONE ? std::optional(std::move(readings)) : std::nullopt;
}

// Selects users and times of the existing events. "" if the table is gone or has other columns now: SQLite would take
// an unknown column's name for a text.
std::string SelectEvents(sqlite3* database, const SessionSource& source) {
  const auto type = GetType(database, source.table);
  const auto columns = Names(database, "SELECT name FROM pragma_table_info(?)", source.table);
  const auto has = [&](const std::string& name) {
    return columns && std::find(columns->begin(), columns->end(), name) != columns->end();
  };
  if (type != "table" || !has(source.user) || !has(source.time)) return "";
  return "SELECT wisp_key(" + Quoted(source.user) + "), wisp_time(" + Quoted(source.time) + ", " +
         std::to_string(source.times_per_second) + ") FROM " + Quoted(source.table);
}

// Computes the set of existing events once. NOT IN would compare each row with all events.
std::optional<int64_t> ForgetWithoutEvents(sqlite3* database, const Reading& reading) {
  const std::string events = SelectEvents(database, reading.source);
  if (events.empty()) {  // what was read is unknown now, and no ledger accepts it any more
    const bool gone =
        Forget(database, reading.id) && RunWith(database, "DELETE FROM wisp_readings WHERE id = ?", reading.id);
    return gone ? std::optional<int64_t>(1) : std::nullopt;
  }
  const SqliteStatement forget =
      Prepare(database, ("DELETE FROM wisp_sessions WHERE reading = ?1 AND (user, time) IN (SELECT user, time FROM "
                         "wisp_sessions WHERE reading = ?1 EXCEPT " +
                         events + ")")
                            .c_str());
  if (forget == nullptr) return std::nullopt;
  sqlite3_bind_int64(forget.get(), 1, reading.id);
  if (sqlite3_step(forget.get()) != SQLITE_DONE) return std::nullopt;
  return sqlite3_changes64(database);
}

}  // namespace

std::optional<std::vector<std::string>> SessionTables(sqlite3* database) {
  const auto tables = ReadTables(database);
  if (!tables) return std::nullopt;
  return *tables == Tables::kOurs ? std::vector<std::string>(std::begin(kTables), std::end(kTables))
                                  : std::vector<std::string>();
}

Status LogWriteError(const std::string& path, sqlite3* database) {
  const std::string said =
      sqlite3_db_readonly(database, nullptr) == 1 ? "the file is read-only" : sqlite::GetFailureReason(database);
  if (sqlite3_errcode(database) == SQLITE_INTERRUPT) return InvalidData(path, ": ", kTooMuchWork);
  WISP_RETURN_IF_ERROR(sqlite::Explain(path, path, database));
  return IoError(OneLine(path +
                         ": it cannot be noted in the log what was read, so what its sessions are would change with "
                         "what comes late: " +
                         said + "; a log with sessions must be one that can be written"));
}

int64_t ForgetSessionsWithoutEvents(sqlite3* database, WorkLimit& work) {
  const auto tables = ReadTables(database);
  if (!tables) return -1;
  if (*tables != Tables::kOurs) return 0;
  const auto readings = Readings(database);
  if (!readings) return -1;
  work.AllowForSize(2 * static_cast<int>(std::min(readings->size(), kMostReadings)));
  int64_t gone = 0;
  for (const Reading& reading : *readings) {
    const auto of_one = ForgetWithoutEvents(database, reading);
    if (!of_one) return -1;
    gone += *of_one;
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

Status SessionReading::Error() const { return LogWriteError(path_, database_); }

Result<bool> SessionReading::HasTables() const {
  const auto tables = ReadTables(database_);
  if (!tables) return Error();
  if (*tables != Tables::kOthers) return *tables == Tables::kOurs;
  return InvalidData(path_,
                     ": its tables 'wisp_readings', 'wisp_sessions' and 'wisp_ledgers' are not those in which wisp "
                     "notes what was read");
}

namespace {

void BindSource(sqlite3_stmt* statement, const SessionSource& source) {
  BindText(statement, 1, source.table);
  BindText(statement, 2, source.user);
  BindText(statement, 3, source.time);
  sqlite3_bind_int64(statement, 4, source.gap);
  sqlite3_bind_int64(statement, 5, source.times_per_second);
}

}  // namespace

Status SessionReading::Find() {
  const SqliteStatement select = Prepare(database_,
                                         "SELECT id, readings FROM wisp_readings WHERE log = ? AND user = ? AND "
                                         "time = ? AND gap = ? AND second = ?");
  if (select == nullptr) return Error();
  BindSource(select.get(), source_);
  const int code = sqlite3_step(select.get());
  if (code == SQLITE_ROW)
    id_ = sqlite3_column_int64(select.get(), 0), times_read_ = sqlite3_column_int64(select.get(), 1);
  return code == SQLITE_ROW || code == SQLITE_DONE ? OkStatus() : Error();
}

Status SessionReading::Load() {
  WISP_ASSIGN_OR_RETURN(const bool has_tables, HasTables());
  if (!has_tables) return OkStatus();
  WISP_RETURN_IF_ERROR(Find());
  if (id_ < 0) return OkStatus();
  auto ledgers = Names(database_, "SELECT ledger FROM wisp_ledgers WHERE reading = ?", std::to_string(id_));
  if (!ledgers) return Error();
  ledgers_ = *std::move(ledgers);
  const SqliteStatement select =
      Prepare(database_, "SELECT user, time, session FROM wisp_sessions WHERE reading = ? ORDER BY user, time");
  if (select == nullptr) return Error();
  sqlite3_bind_int64(select.get(), 1, id_);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW)
    memory_.Add(GetText(select.get(), 0),
                {.time = sqlite3_column_int64(select.get(), 1), .session = sqlite3_column_int64(select.get(), 2)});
  return code == SQLITE_DONE ? OkStatus() : Error();
}

// Finds the row of this way to cut the log, or creates it.
Status SessionReading::Begin() {
  WISP_ASSIGN_OR_RETURN(const bool has_tables, HasTables());
  if (!has_tables && !(Run(database_, kLedgers) && Run(database_, kReadings) && Run(database_, kSessions)))
    return Error();
  // Writes without changing anything, so that a log that cannot be written fails whether or not an event came.
  if (!Run(database_, "REPLACE INTO wisp_readings(id) VALUES(0)") ||
      !Run(database_, "DELETE FROM wisp_readings WHERE id = 0"))
    return Error();
  const int64_t was_id = std::exchange(id_, -1), was_read = std::exchange(times_read_, -1);
  WISP_RETURN_IF_ERROR(Find());
  if (id_ != was_id || times_read_ != was_read)
    return IoError(path_, ": another run read the log at the same time; begin again");
  if (id_ >= 0) return OkStatus();
  const SqliteStatement insert =
      Prepare(database_, "INSERT INTO wisp_readings(log, user, time, gap, second, readings) VALUES(?, ?, ?, ?, ?, 0)");
  if (insert == nullptr) return Error();
  BindSource(insert.get(), source_);
  if (sqlite3_step(insert.get()) != SQLITE_DONE) return Error();
  id_ = sqlite3_last_insert_rowid(database_);
  has_changed_ = true;
  return Forget(database_, id_) ? OkStatus() : Error();  // another program may have used this number
}

Status SessionReading::Save(WorkLimit& work) {
  WISP_RETURN_IF_ERROR(Begin());
  const SqliteStatement insert = Prepare(database_, "INSERT INTO wisp_sessions VALUES(?, ?, ?, ?)");
  if (insert == nullptr) return Error();
  for (const SessionMemory::News& news : memory_.news()) {
    sqlite3_bind_int64(insert.get(), 1, id_);
    BindText(insert.get(), 2, news.user);
    sqlite3_bind_int64(insert.get(), 3, news.read.time);
    sqlite3_bind_int64(insert.get(), 4, news.read.session);
    if (sqlite3_step(insert.get()) != SQLITE_DONE) return Error();
    sqlite3_reset(insert.get());
  }
  const int64_t gone = ForgetSessionsWithoutEvents(database_, work);
  if (gone < 0) return Error();
  has_changed_ = has_changed_ || gone > 0 || !memory_.news().empty();
  if (!has_changed_) return OkStatus();
  return RunWith(database_, "UPDATE wisp_readings SET readings = readings + 1 WHERE id = ?", id_) ? OkStatus()
                                                                                                  : Error();
}

std::shared_ptr<const SessionsRead> SessionReading::sessions() const {
  return std::make_shared<SessionsRead>(SessionsRead{.path = path_, .reading = id_, .ledgers = ledgers_});
}

Status AddLedger(const SessionsRead& sessions, const std::string& ledger) {
  sqlite3* opened = nullptr;
  const int code = sqlite::Open(sessions.path, SQLITE_OPEN_READWRITE, &opened);
  const sqlite::Handle database(opened);
  if (code != SQLITE_OK) return LogWriteError(sessions.path, opened);
  RestrictDatabase(opened);
  WISP_RETURN_IF_ERROR(sqlite::CheckJournal(sessions.path, opened));
  WorkLimit work(opened);
  work.AllowForSize();
  SqliteTransaction transaction(opened);
  if (!transaction.is_open() || ReadTables(opened) != Tables::kOurs) return LogWriteError(sessions.path, opened);
  const SqliteStatement insert = Prepare(opened, "INSERT OR IGNORE INTO wisp_ledgers VALUES(?, ?)");
  if (insert == nullptr) return LogWriteError(sessions.path, opened);
  sqlite3_bind_int64(insert.get(), 1, sessions.reading);
  BindText(insert.get(), 2, ledger);
  if (sqlite3_step(insert.get()) != SQLITE_DONE || !transaction.Commit()) return LogWriteError(sessions.path, opened);
  return OkStatus();
}

}  // namespace wisp::data
