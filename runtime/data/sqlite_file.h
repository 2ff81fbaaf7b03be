// Care for SQLite files of other programs, for code that reads them (sqlite_reader.cc) and code that appends to them
// (event_log.cc). Nothing in such a file is executed, nothing huge is allocated for it, and reading it ends.
//
//   RestrictDatabase(database);
//   WorkLimit work(database);
//   // "table", "view", "virtual", or "" if it does not exist
//   WISP_ASSIGN_OR_RETURN(const std::string type, GetType(database, "events"));
//   work.AllowForSize();
//
// A ledger's file needs other care, because every table of it is known (runtime/privacy/ledger/ledger_database.h).
#ifndef WISP_RUNTIME_DATA_SQLITE_FILE_H_
#define WISP_RUNTIME_DATA_SQLITE_FILE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::data {

struct FinalizeSqlite {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeSqlite>;

// The end of a message for SQLITE_INTERRUPT.
inline constexpr std::string_view kTooMuchWork =
    "takes more work to read than a file of its size can need: it is damaged, or made to keep a reader busy";

// Call this first on a database from sqlite::Open. Triggers do not run, and a value of more than a megabyte is an
// error. It waits for other processes.
void RestrictDatabase(sqlite3* database);

// Quotes the name of a table or a column for SQL.
std::string Quoted(std::string_view identifier);

// Null on errors: see sqlite3_errcode.
SqliteStatement Prepare(sqlite3* database, const char* sql);
// Prepares a SELECT of one table, with rows in the order of rowid, or of the primary key in a table without rowid.
SqliteStatement PrepareInOrder(sqlite3* database, const std::string& select);
// Parameters count from 1.
void BindText(sqlite3_stmt* statement, int index, std::string_view text);
std::string_view GetText(sqlite3_stmt* row, int column);

// The first column of a query's rows, with its parameter, if it has one, set to `bound`. nullopt on errors: see
// sqlite3_errcode.
std::optional<std::vector<std::string>> Names(sqlite3* database, const char* sql, std::string_view bound = {});

// The type as SQLite has understood the schema, whatever the schema's rows claim; "" if the name does not exist.
// nullopt on errors.
std::optional<std::string> GetType(sqlite3* database, std::string_view table);

// The types of SQLite that a user or an item may have. An integer is read as its decimal text.
inline bool IsKeyType(int type) { return type == SQLITE_TEXT || type == SQLITE_INTEGER; }

// Registers functions that our statements may then call, which read a value as training does:
//   wisp_time(time, per_second)  a whole number, from a number or a date (date_time.h); NULL for anything else
//   wisp_key(value)              the text of a user or an item; NULL for another type and for a text with a KeyFault
void AddEventFunctions(sqlite3* database);

// A condition for the events of the user whom BindUser sets, in parameters 1 and 2. It lets SQLite use an index of the
// column, whether that has texts or integers. The column's collation, which may treat two users as one, is ignored.
inline constexpr char kUserCondition[] = "user IN (?1, ?2) AND wisp_key(user) = ?1 COLLATE BINARY";
void BindUser(sqlite3_stmt* statement, std::string_view user);

// A transaction that is rolled back unless committed. False: see sqlite3_errcode.
class SqliteTransaction {
 public:
  explicit SqliteTransaction(sqlite3* database) : database_(database), is_open_(Run("BEGIN IMMEDIATE")) {}
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;
  ~SqliteTransaction() {
    if (is_open_) (void)Run("ROLLBACK");
  }

  bool is_open() const { return is_open_; }
  bool Commit() {
    is_open_ = !Run("COMMIT");
    return !is_open_;
  }

 private:
  bool Run(const char* sql) { return sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

  sqlite3* database_;
  bool is_open_;
};

// Limits the operations of SQLite's virtual machine for this file; SQLITE_INTERRUPT ends what exceeds it. Until
// AllowForSize the limit is small, enough to read a schema. Use one at a time, within the database's lifetime.
class WorkLimit {
 public:
  explicit WorkLimit(sqlite3* database);
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;
  ~WorkLimit() { sqlite3_progress_handler(database_, 0, nullptr, nullptr); }

  // Allows as many operations as so many passes over the file take.
  void AllowForSize(int times = 1);

 private:
  sqlite3* database_;
  int64_t left_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SQLITE_FILE_H_
