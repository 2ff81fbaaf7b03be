// Reads a table of events from a SQLite file. Only reading by session writes to it.
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "runtime/core/platform.h"
#include "runtime/core/reason.h"
#include "runtime/data/columns.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"
#include "runtime/data/session_table.h"
#include "runtime/data/sqlite_file.h"
#include "runtime/sqlite/open.h"

namespace wisp::data {
namespace {

using Database = sqlite::Handle;

Status DatabaseError(const std::string& path, sqlite3* database, int code) {
  WISP_RETURN_IF_ERROR(sqlite::Explain(path, path, database));
  const std::string sentence = path + ": cannot be read as a SQLite database: " +
                               (database != nullptr ? sqlite::GetFailureReason(database) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
    case SQLITE_READONLY:  // a writer died, and recovery would have to write
    case SQLITE_AUTH:
      return IoError(sentence);
    case SQLITE_INTERRUPT:
      return InvalidData(path, ": ", kTooMuchWork);
    default:
      return InvalidData(sentence);
  }
}

const char* TypeName(int type) {
  switch (type) {
    case SQLITE_NULL:
      return "NULL";
    case SQLITE_BLOB:
      return "a BLOB";
    case SQLITE_FLOAT:
      return "a REAL";
    case SQLITE_INTEGER:
      return "an INTEGER";
    default:
      return "a TEXT";
  }
}

Result<Database> Open(const std::string& path, bool to_write) {
  WISP_RETURN_IF_ERROR(CheckDatabaseName(path));
  if (platform::FileInfo info; platform::GetInfo(path, info) != 0)
    return IoError(path, ": the log cannot be opened: ", Reason(errno));
  sqlite3* opened = nullptr;
  const int code = to_write ? sqlite::Open(path, SQLITE_OPEN_READWRITE, &opened) : sqlite::OpenToRead(path, &opened);
  Database database(opened);
  if (code != SQLITE_OK) return DatabaseError(path, opened, code);
  RestrictDatabase(opened);
  WISP_RETURN_IF_ERROR(sqlite::CheckJournal(path, opened));
  return database;
}

Status MissingTable(const std::string& path, sqlite3* database, const std::string& table) {
  auto tables = Names(database,
                      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
                      "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
  if (!tables) return DatabaseError(path, database, sqlite3_errcode(database));
  std::reverse(tables->begin(), tables->end());  // into the order of their creation
  std::string list;
  for (const std::string& name : *tables) list += (list.empty() ? "" : ", ") + Shown(name);
  return InvalidData(
      path, ": there is no table ", Shown(table),
      (list.empty() ? "; there are no tables" : "; the tables are " + list + "; `table` says which it is"));
}

Status CheckIsTable(const std::string& path, sqlite3* database, const std::string& table) {
  const auto type = GetType(database, table);
  if (!type) return DatabaseError(path, database, sqlite3_errcode(database));
  if (type->empty()) return MissingTable(path, database, table);
  if (*type == "table") return OkStatus();
  return InvalidData(path, ": ", Shown(table), " is no table but a ", *type,
                     ", which runs what the file says; allowed are tables, whose columns can be named");
}

Status AddRow(sqlite3_stmt* row, uint64_t number, const ReadOptions& options, SequenceBuilder& builder) {
  const auto fault_of = [&](const char* field, int type) {
    return IsKeyType(type)
               ? std::string()
               : std::string("the ") + field + " is " + TypeName(type) + "; allowed is a TEXT or an INTEGER";
  };
  const int user = sqlite3_column_type(row, 0);
  if (const std::string fault = fault_of("user", user); !fault.empty())
    return user == SQLITE_NULL ? builder.KeyError(number, fault) : builder.Error(number, fault);
  builder.SetRowUser(GetText(row, 0));
  auto time = static_cast<int64_t>(number);
  if (options.time == TimeSource::kColumn) {
    const int type = sqlite3_column_type(row, 2);
    if (type == SQLITE_INTEGER) {
      time = sqlite3_column_int64(row, 2);
    } else if ((type != SQLITE_FLOAT && type != SQLITE_TEXT) ||
               !ParseTime(GetText(row, 2), options.units.times_per_second, time)) {
      return type == SQLITE_FLOAT || type == SQLITE_TEXT
                 ? BadTime(builder, number, GetText(row, 2))
                 : builder.Error(number,
                                 std::string("the time is ") + TypeName(type) + "; allowed is a number, or a date");
    }
  }
  const std::string fault = fault_of("item", sqlite3_column_type(row, 1));
  return fault.empty() ? builder.Add(number, GetText(row, 0), GetText(row, 1), time)
                       : builder.AddWithoutItem(number, GetText(row, 0), time, fault);
}

}  // namespace

Status CheckDatabaseName(const std::string& path) {
  if (!path.empty() && path != ":memory:" && !path.starts_with("file:")) return OkStatus();
  return InvalidArgument(
      "the name of the SQLite file is ", Shown(path),
      "; allowed is a file's name, not an empty one, ':memory:' or what begins with 'file:' ('./file:x' is one)");
}

namespace {

// The table's columns that are read.
struct Table {
  std::vector<std::string> names;
  Columns columns;
};

Result<Table> ChooseTable(const std::string& path, sqlite3* database, const ReadOptions& options) {
  WISP_RETURN_IF_ERROR(CheckIsTable(path, database, options.table));
  auto names = Names(database, "SELECT name FROM pragma_table_info(?)", options.table);
  if (!names) return DatabaseError(path, database, sqlite3_errcode(database));
  WISP_ASSIGN_OR_RETURN(const Columns columns, ChooseColumns(path + ", table " + options.table, *names, options));
  return Table{*std::move(names), columns};
}

// The builder sorts, and keeps this order among equal times.
Status ReadRows(const std::string& path, sqlite3* database, const Table& table, const ReadOptions& options,
                SequenceBuilder& builder) {
  const auto& [names, columns] = table;
  const std::string select = "SELECT " + Quoted(names[columns.user]) + ", " + Quoted(names[columns.item]) + ", " +
                             (columns.time ? Quoted(names[*columns.time]) : "0") + " FROM " + Quoted(options.table);
  const SqliteStatement statement = PrepareInOrder(database, select);
  if (statement == nullptr) return DatabaseError(path, database, sqlite3_errcode(database));
  uint64_t row = 0;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW)
    WISP_RETURN_IF_ERROR(builder.TakeRow(AddRow(statement.get(), ++row, options, builder)));
  builder.set_num_lines(row);
  return code == SQLITE_DONE ? OkStatus() : DatabaseError(path, database, code);
}

}  // namespace

Result<SessionReading> SessionReading::Read(const std::string& path, sqlite3* database, const ReadOptions& options,
                                            SequenceBuilder& builder) {
  WISP_ASSIGN_OR_RETURN(const Table table, ChooseTable(path, database, options));
  SessionReading reading(path, database,
                         {.table = options.table,
                          .user = table.names[table.columns.user],
                          .time = table.columns.time ? table.names[*table.columns.time] : "",
                          .gap = options.units.session_gap,
                          .times_per_second = options.units.times_per_second});
  WISP_RETURN_IF_ERROR(reading.Load());
  WISP_RETURN_IF_ERROR(ReadRows(path, database, table, options, builder));
  WISP_RETURN_IF_ERROR(builder.SplitIntoUnits(options, reading.memory_));
  return reading;
}

Status ReadSqlite(const std::string& path, const ReadOptions& options, SequenceBuilder& builder) {
  const bool remembers = options.private_run && options.units.unit == RecordUnit::kSession;
  WISP_ASSIGN_OR_RETURN(const Database database, Open(path, remembers));
  WorkLimit work(database.get());
  if (!remembers) {
    WISP_ASSIGN_OR_RETURN(const Table table, ChooseTable(path, database.get(), options));
    work.AllowForSize();
    return ReadRows(path, database.get(), table, options, builder);
  }
  WISP_RETURN_IF_ERROR(CheckIsTable(path, database.get(), options.table));
  work.AllowForSize(kSessionPasses);
  AddEventFunctions(database.get());
  sqlite3_exec(database.get(), "PRAGMA secure_delete=ON", nullptr, nullptr, nullptr);
  // Reading holds no write lock, so appenders wait only while the sessions are written.
  WISP_ASSIGN_OR_RETURN(SessionReading reading, SessionReading::Read(path, database.get(), options, builder));
  SqliteTransaction transaction(database.get());
  if (!transaction.is_open()) return LogWriteError(path, database.get());
  WISP_RETURN_IF_ERROR(reading.Save(work));
  if (reading.has_changed() && !transaction.Commit()) return LogWriteError(path, database.get());
  builder.set_sessions(reading.sessions());
  return OkStatus();
}

}  // namespace wisp::data
