#include "runtime/data/event_log.h"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"
#include "runtime/data/sequences.h"
#include "runtime/data/sqlite_file.h"
#include "runtime/sqlite/open.h"

namespace wisp::data {
namespace {

constexpr char kWriting[] = "PRAGMA ignore_check_constraints=ON; PRAGMA synchronous=EXTRA; PRAGMA fullfsync=ON";
constexpr char kToWrite[] = "cannot be opened to write";
constexpr char kSchema[] =
    "PRAGMA auto_vacuum=INCREMENTAL;"
    "CREATE TABLE IF NOT EXISTS events(user TEXT NOT NULL, item TEXT NOT NULL, time INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS events_by_user ON events(user, time);";

// Finds schema parts that appending would evaluate: computed columns, and indexes of an expression or of selected rows.
// A default that calls a function has a bracket in it.
constexpr char kComputed[] =
    "SELECT 'column ' || name FROM pragma_table_xinfo('events') WHERE hidden <> 0 OR dflt_value LIKE '%(%' UNION ALL "
    "SELECT 'index ' || name FROM pragma_index_list('events') l WHERE partial OR EXISTS (SELECT 1 FROM "
    "pragma_index_xinfo(l.name) WHERE cid = -2)";

}  // namespace

EventLog::EventLog(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
EventLog::EventLog(EventLog&& other) noexcept
    : path_(std::move(other.path_)), database_(std::exchange(other.database_, nullptr)), origin_(other.origin_) {}
EventLog& EventLog::operator=(EventLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(database_, other.database_);
  std::swap(origin_, other.origin_);
  return *this;
}
EventLog::~EventLog() {
  if (!origin_.IsForked()) sqlite3_close(database_);
}

Status EventLog::CheckProcess() const {
  return origin_.IsForked() ? ForkedError("event log '" + path_ + "'") : OkStatus();
}

Status EventLog::Error(const char* doing) const {
  WISP_RETURN_IF_ERROR(sqlite::Explain("event log '" + path_ + "'", path_, database_));
  const int code = sqlite3_errcode(database_);
  if (code == SQLITE_INTERRUPT) return InvalidData("event log '", path_, "': ", kTooMuchWork);
  const std::string sentence =
      OneLine("event log '" + path_ + "': " + doing + ": " + sqlite::GetFailureReason(database_));
  return code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR ? InvalidData(sentence)
                                                                                 : IoError(sentence);
}

Result<EventLog> EventLog::Create(const std::string& path) {
  WISP_RETURN_IF_ERROR(CheckDatabaseName(path));
  // SQLite would create the file, and those beside it, with the access rights that the umask allows.
  WISP_RETURN_IF_ERROR(MakePrivate(path));
  WISP_ASSIGN_OR_RETURN(EventLog log, Connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  WISP_RETURN_IF_ERROR(log.Execute(kWriting, kToWrite));
  return log;
}

Result<EventLog> EventLog::Open(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(EventLog log, Create(path));
  WorkLimit work(log.database_);
  work.AllowForSize();
  WISP_RETURN_IF_ERROR(log.Execute(kSchema, kToWrite));
  // Overwrites what was erased while somebody was reading. It does not wait, because no caller was told that this is
  // done.
  if (sqlite::ReadFileSize(path + "-wal") > 0) {
    sqlite3_busy_timeout(log.database_, 0);
    WISP_RETURN_IF_ERROR(log.EmptyWriteAheadLog().status());
    RestrictDatabase(log.database_);
  }
  return log;
}

Result<EventLog> EventLog::OpenExisting(const std::string& path) {
  WISP_RETURN_IF_ERROR(CheckDatabaseName(path));
  WISP_ASSIGN_OR_RETURN(EventLog log, Connect(path, SQLITE_OPEN_READONLY));
  WorkLimit work(log.database_);
  const auto type = GetType(log.database_, "events");
  if (!type) return log.Error("cannot read");
  if (type->empty())
    return InvalidData("event log '", path,
                       "': there is no table 'events' in it. Events of another table can be imported into a log of its "
                       "own");
  return log;
}

// Opens the file and checks its contents; adds nothing.
Result<EventLog> EventLog::Connect(const std::string& path, int flags) {
  sqlite3* database = nullptr;
  const int code =
      (flags & SQLITE_OPEN_READONLY) != 0 ? sqlite::OpenToRead(path, &database) : sqlite::Open(path, flags, &database);
  EventLog log(path, database);
  if (code != SQLITE_OK) return log.Error("cannot open");
  RestrictDatabase(database);
  WISP_RETURN_IF_ERROR(sqlite::CheckJournal("event log '" + path + "'", database));
  AddEventFunctions(database);
  WorkLimit work(database);
  // SQLite would silently add a table to another program's database, such as a ledger.
  const SqliteStatement id = Prepare(database, "PRAGMA application_id");
  if (id != nullptr && sqlite3_step(id.get()) == SQLITE_ROW && sqlite3_column_int64(id.get(), 0) != 0) {
    return InvalidData("event log '", path, "': is a database of another kind (application id ",
                       sqlite3_column_int64(id.get(), 0), "), such as a ledger");
  }
  sqlite3_reset(id.get());
  WISP_RETURN_IF_ERROR(log.CheckTable());
  return log;
}

Status EventLog::CheckTable() const {
  const std::string log = "event log '" + path_ + "': ";
  const auto type = GetType(database_, "events");
  if (!type) return Error("cannot read");
  if (type->empty()) return OkStatus();
  if (*type != "table") {
    return InvalidData(log, "'events' is no table but a ", *type,
                       ", which runs what the file says; allowed is a table with the columns user, item and time");
  }
  const auto computed = Names(database_, kComputed),
             columns = Names(database_, "SELECT name FROM pragma_table_info('events')"),
             missing = Names(database_,
                             "SELECT column1 FROM (VALUES ('user'), ('item'), ('time')) WHERE column1 NOT IN "
                             "(SELECT name COLLATE NOCASE FROM pragma_table_info('events'))");
  if (!computed || !columns || !missing) return Error("cannot read");
  if (!computed->empty()) {
    const std::string& what = computed->front();
    const size_t blank = what.find(' ');
    return InvalidData(log, "the table events computes its ", what.substr(0, blank), " ", Shown(what.substr(blank + 1)),
                       "; allowed are constants, and indexes of columns");
  }
  if (missing->empty()) return OkStatus();
  std::string list;
  for (const std::string& name : *columns) list += (list.empty() ? "" : ", ") + Shown(name);
  return InvalidData(log, "the table events has no column '", missing->front(), "'; the columns are ", list,
                     ". Events of a table with other names can be imported into a log of its own");
}

Status EventLog::Execute(const char* sql, const char* doing) {
  WISP_RETURN_IF_ERROR(CheckProcess());
  return sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? OkStatus() : Error(doing);
}

Status EventLog::Append(const Event& event) {
  WISP_RETURN_IF_ERROR(CheckProcess());
  return Insert({&event, 1});
}

Status EventLog::AppendAll(std::span<const Event> events) {
  WISP_RETURN_IF_ERROR(CheckProcess());
  SqliteTransaction transaction(database_);
  if (!transaction.is_open()) return Error("cannot append");
  WISP_RETURN_IF_ERROR(Insert(events));
  return transaction.Commit() ? OkStatus() : Error("cannot append");
}

Status EventLog::Insert(std::span<const Event> events) {
  // An event that the readers would refuse must not get into the log, because it would make all of it unreadable.
  for (const Event& event : events) {
    for (const auto& [field, key] : {std::pair("user", &event.user), std::pair("item", &event.item)}) {
      const std::string fault = KeyFault(*key);
      if (!fault.empty()) return InvalidArgument("event log '", path_, "': the ", field, " ", fault);
    }
  }
  WorkLimit work(database_);  // SQLite may search other tables, such as the one that keeps the last number given
  const SqliteStatement insert = Prepare(database_, "INSERT INTO events(user, item, time) VALUES(?, ?, ?)");
  if (insert == nullptr) return Error("cannot append");
  for (const Event& event : events) {
    work.AllowForSize();
    BindText(insert.get(), 1, event.user);
    BindText(insert.get(), 2, event.item);
    sqlite3_bind_int64(insert.get(), 3, event.time);
    if (sqlite3_step(insert.get()) != SQLITE_DONE) return Error("cannot append");
    sqlite3_reset(insert.get());
  }
  return OkStatus();
}

Result<std::vector<std::string>> EventLog::History(const std::string& user, size_t limit) const {
  WISP_ASSIGN_OR_RETURN(std::vector<Event> events, Events(user));
  std::vector<std::string> items;
  for (size_t i = events.size() - std::min(limit, events.size()); i < events.size(); ++i)
    items.push_back(std::move(events[i].item));
  return items;
}

}  // namespace wisp::data
