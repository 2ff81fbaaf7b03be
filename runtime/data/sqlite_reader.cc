// A table of events in a SQLite file, opened for reading only.
#include <sqlite3.h>

#include <memory>

#include "runtime/data/columns.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

constexpr int kBusyTimeoutMs = 5000;     // another process may be appending
constexpr int kMaxValueBytes = 1 << 20;  // as kMaxLineBytes: a longer value is an error, not an allocation

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Status DatabaseError(const std::string& path, sqlite3* database, int code) {
  const std::string sentence = path + ": cannot be read as a SQLite database: " +
                               (database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
    case SQLITE_READONLY:  // a writer died, and recovery would have to write
    case SQLITE_AUTH: return IoError(sentence);
    default: return InvalidData(sentence);
  }
}

std::string Quoted(const std::string& identifier) {
  std::string quoted = "\"";
  for (char c : identifier) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string_view Text(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(row, column)));
}

const char* TypeName(int type) {
  switch (type) {
    case SQLITE_NULL: return "NULL";
    case SQLITE_BLOB: return "a BLOB";
    case SQLITE_FLOAT: return "a REAL";
    case SQLITE_INTEGER: return "an INTEGER";
    default: return "a TEXT";
  }
}

Result<Database> Open(const std::string& path) {
  // An empty name would be a new temporary database, and a missing file says more in the words of the system.
  if (path.empty()) return InvalidArgument("the name of the SQLite file is empty");
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return DatabaseError(path, opened, code);
  // The file may come from anywhere: nothing in its schema is to run, and nothing huge to be made.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_busy_timeout(opened, kBusyTimeoutMs);
  return database;
}

// One column of a query that yields names.
Status Names(const std::string& path, sqlite3* database, const char* sql, const std::string& bound,
             std::vector<std::string>& names) {
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(database, sql, -1, &prepared, nullptr);
  const Statement statement(prepared);
  if (code != SQLITE_OK) return DatabaseError(path, database, code);
  if (sqlite3_bind_parameter_count(prepared) > 0) {
    sqlite3_bind_text64(prepared, 1, bound.data(), bound.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) names.emplace_back(Text(prepared, 0));
  return code == SQLITE_DONE ? OkStatus() : DatabaseError(path, database, code);
}

Status MissingTable(const std::string& path, sqlite3* database, const std::string& table) {
  std::vector<std::string> tables;
  WISP_RETURN_IF_ERROR(
      Names(path, database,
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
            "", tables));
  std::string list;
  for (const std::string& name : tables) list += (list.empty() ? "" : ", ") + Shown(name);
  return InvalidData(path + ": there is no table " + Shown(table) +
                     (list.empty() ? "; there is none at all" : "; the tables are " + list));
}

Status AddRow(sqlite3_stmt* row, uint64_t number, const ReadOptions& options, SequenceBuilder& builder) {
  for (int column = 0; column < 2; ++column) {
    const int type = sqlite3_column_type(row, column);
    if (type == SQLITE_TEXT || type == SQLITE_INTEGER) continue;
    return builder.Error(number, std::string("the ") + (column == 0 ? "user" : "item") + " is " + TypeName(type) +
                                     "; allowed is a TEXT or an INTEGER");
  }
  auto time = static_cast<int64_t>(number);
  if (options.time == TimeSource::kColumn) {
    const int type = sqlite3_column_type(row, 2);
    if (type == SQLITE_INTEGER) {
      time = sqlite3_column_int64(row, 2);
    } else if ((type != SQLITE_FLOAT && type != SQLITE_TEXT) || !ParseTime(Text(row, 2), time)) {
      return type == SQLITE_FLOAT || type == SQLITE_TEXT
                 ? BadTime(builder, number, Text(row, 2))
                 : builder.Error(number, std::string("the time is ") + TypeName(type) + "; allowed is a number");
    }
  }
  return builder.Add(number, Text(row, 0), Text(row, 1), time);
}

}  // namespace

Status ReadSqlite(const std::string& path, const ReadOptions& options, SequenceBuilder& builder) {
  WISP_ASSIGN_OR_RETURN(const Database database, Open(path));
  std::vector<std::string> names;
  WISP_RETURN_IF_ERROR(Names(path, database.get(), "SELECT name FROM pragma_table_info(?)", options.table, names));
  if (names.empty()) return MissingTable(path, database.get(), options.table);
  WISP_ASSIGN_OR_RETURN(const Columns columns, ChooseColumns(path + ", table " + options.table, names, options));
  // Sorting is the builder's, which keeps this order among equal times. A table without rowid or a view has its own
  // order.
  const std::string select = "SELECT " + Quoted(names[columns.user]) + ", " + Quoted(names[columns.item]) + ", " +
                             (columns.time ? Quoted(names[*columns.time]) : "0") + " FROM " + Quoted(options.table);
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(database.get(), (select + " ORDER BY rowid").c_str(), -1, &prepared, nullptr);
  if (code == SQLITE_ERROR) code = sqlite3_prepare_v2(database.get(), select.c_str(), -1, &prepared, nullptr);
  const Statement statement(prepared);
  if (code != SQLITE_OK) return DatabaseError(path, database.get(), code);
  uint64_t row = 0;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) WISP_RETURN_IF_ERROR(AddRow(prepared, ++row, options, builder));
  builder.set_num_lines(row);
  return code == SQLITE_DONE ? OkStatus() : DatabaseError(path, database.get(), code);
}

}  // namespace wisp::data
