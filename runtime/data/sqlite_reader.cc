// A table of events in a SQLite file, opened for reading only.
#include <sqlite3.h>

#include <algorithm>
#include <memory>

#include "runtime/data/columns.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

constexpr int kBusyTimeoutMs = 5000;     // another process may be appending
constexpr int kMaxValueBytes = 1 << 20;  // as kMaxLineBytes: a longer value is an error, not an allocation

// A row of three values takes at least 8 bytes of the file and 5 operations to read: less than one a byte. One whose pages lead to each
// other again and again would be read for ever.
constexpr int64_t kOperationsPerByte = 4, kOperationsBesides = 1 << 20;
constexpr int kOperationsPerCall = 1 << 16;

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
    case SQLITE_INTERRUPT: return InvalidData(path, ": takes more work to read than a file of its size can need: it is damaged, or made to keep a reader busy");
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
  WISP_RETURN_IF_ERROR(CheckDatabaseName(path));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return DatabaseError(path, opened, code);
  // The file may come from anywhere: nothing in its schema is to run, nothing of it to be loaded as code, and nothing huge to be made.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  for (const auto& [limit, value] : {std::pair(SQLITE_LIMIT_LENGTH, kMaxValueBytes), std::pair(SQLITE_LIMIT_SQL_LENGTH, kMaxValueBytes),
                                     std::pair(SQLITE_LIMIT_ATTACHED, 0), std::pair(SQLITE_LIMIT_WORKER_THREADS, 0),
                                     std::pair(SQLITE_LIMIT_EXPR_DEPTH, 100), std::pair(SQLITE_LIMIT_FUNCTION_ARG, 8)}) {
    sqlite3_limit(opened, limit, value);
  }
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
  names.clear();
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) names.emplace_back(Text(prepared, 0));
  return code == SQLITE_DONE ? OkStatus() : DatabaseError(path, database, code);
}

Status MissingTable(const std::string& path, sqlite3* database, const std::string& table) {
  std::vector<std::string> tables;
  WISP_RETURN_IF_ERROR(
      Names(path, database,
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
            "", tables));
  std::reverse(tables.begin(), tables.end());  // to the order of their making
  std::string list;
  for (const std::string& name : tables) list += (list.empty() ? "" : ", ") + Shown(name);
  return InvalidData(path, ": there is no table ", Shown(table),
                     (list.empty() ? "; there is none at all" : "; the tables are " + list));
}

// As SQLite has understood the schema, whatever its rows call what they define.
Status CheckIsTable(const std::string& path, sqlite3* database, const std::string& table) {
  std::vector<std::string> types;
  WISP_RETURN_IF_ERROR(Names(path, database, "SELECT type FROM pragma_table_list(?) WHERE schema = 'main'", table, types));
  if (types.empty()) return MissingTable(path, database, table);
  if (types[0] == "table") return OkStatus();
  return InvalidData(path, ": ", Shown(table), " is no table but a ", types[0], ", which runs what the file says; allowed are tables, whose columns can be named");
}

// How many operations of its machine SQLite may do for this file; ends what would go on. Lives as long as the database is read.
class WorkLimit {
 public:
  explicit WorkLimit(sqlite3* database) : database_(database) { Install(); }
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;
  ~WorkLimit() { sqlite3_progress_handler(database_, 0, nullptr, nullptr); }

  Status SetBytes(const std::string& path) {
    std::vector<std::string> bytes;
    WISP_RETURN_IF_ERROR(Names(path, database_, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", "", bytes));
    if (!bytes.empty()) left_ += kOperationsPerByte * std::atoll(bytes[0].c_str());
    return OkStatus();
  }

 private:
  void Install() {
    sqlite3_progress_handler(database_, kOperationsPerCall, [](void* limit) {
      int64_t& left = static_cast<WorkLimit*>(limit)->left_;
      return (left -= kOperationsPerCall) <= 0 ? 1 : 0;
    }, this);
  }

  sqlite3* database_;
  int64_t left_ = kOperationsBesides;
};

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

Status CheckDatabaseName(const std::string& path) {
  if (!path.empty() && path != ":memory:" && !path.starts_with("file:")) return OkStatus();
  return InvalidArgument("the name of the SQLite file is ", Shown(path), "; allowed is a file's name, not an empty one, ':memory:' or what begins with 'file:' ('./file:x' is one)");
}

Status ReadSqlite(const std::string& path, const ReadOptions& options, SequenceBuilder& builder) {
  WISP_ASSIGN_OR_RETURN(const Database database, Open(path));
  WorkLimit work(database.get());
  WISP_RETURN_IF_ERROR(work.SetBytes(path));
  WISP_RETURN_IF_ERROR(CheckIsTable(path, database.get(), options.table));
  std::vector<std::string> names;
  WISP_RETURN_IF_ERROR(Names(path, database.get(), "SELECT name FROM pragma_table_info(?)", options.table, names));
  WISP_ASSIGN_OR_RETURN(const Columns columns, ChooseColumns(path + ", table " + options.table, names, options));
  // Sorting is the builder's, which keeps this order among equal times. A table without rowid has its own order.
  const std::string select = "SELECT " + Quoted(names[columns.user]) + ", " + Quoted(names[columns.item]) + ", " +
                             (columns.time ? Quoted(names[*columns.time]) : "0") + " FROM " + Quoted(options.table);
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(database.get(), (select + " ORDER BY rowid").c_str(), -1, &prepared, nullptr);
  if (code == SQLITE_ERROR) code = sqlite3_prepare_v2(database.get(), select.c_str(), -1, &prepared, nullptr);
  const Statement statement(prepared);
  if (code != SQLITE_OK) return DatabaseError(path, database.get(), code);
  uint64_t row = 0;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) WISP_RETURN_IF_ERROR(builder.TakeRow(AddRow(prepared, ++row, options, builder)));
  builder.set_num_lines(row);
  return code == SQLITE_DONE ? OkStatus() : DatabaseError(path, database.get(), code);
}

}  // namespace wisp::data
