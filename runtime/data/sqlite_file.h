// SQLite files of others. Who reads them (sqlite_reader.cc) and who appends to them (event_log.cc) take the same care:
// nothing in such a file runs, nothing huge is made of it, and reading it ends.
//
//   Distrust(database);
//   WorkLimit work(database);
//   // "table", "view", "virtual", "" where there is none
//   WISP_ASSIGN_OR_RETURN(const std::string type, TypeOf(database, "events"));
//   work.AllowForSize();
//
// What it is not: a ledger's file, of which every table is known (runtime/privacy/ledger/ledger_database.h).
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

// The end of a sentence, for SQLITE_INTERRUPT.
inline constexpr std::string_view kTooMuchWork =
    "takes more work to read than a file of its size can need: it is damaged, or made to keep a reader busy";

// To be called first, on what sqlite::Open has opened. No trigger runs, and a value of more than a megabyte is an
// error. Other processes are waited for.
void Distrust(sqlite3* database);

// The name of a table or a column, as SQL takes it.
std::string Quoted(std::string_view identifier);

// Null on errors: see sqlite3_errcode.
SqliteStatement Prepare(sqlite3* database, const char* sql);
// A SELECT of one table, whose rows come in the order of rowid; of a table without rowid in its own order.
SqliteStatement PrepareInOrder(sqlite3* database, const std::string& select);
// Parameters count from 1.
void BindText(sqlite3_stmt* statement, int index, std::string_view text);
std::string_view TextOf(sqlite3_stmt* row, int column);

// The first column of what a query yields, with its parameter, if it has one, set to `bound`. Nothing on errors: see
// sqlite3_errcode.
std::optional<std::vector<std::string>> Names(sqlite3* database, const char* sql, std::string_view bound = {});

// As SQLite has understood the schema, whatever its rows call what they define; "" where there is nothing of that name.
// Nothing on errors.
std::optional<std::string> TypeOf(sqlite3* database, std::string_view table);

// The types of SQLite that a user or an item may have. An integer is read as its decimal text.
inline bool IsKeyType(int type) { return type == SQLITE_TEXT || type == SQLITE_INTEGER; }

// Statements of ours may then call these functions, which read a value as training does:
//   wisp_time(time, per_second)  a whole number, from a number or a date (date_time.h); NULL for anything else
//   wisp_key(value)              the text of a user or an item; NULL for another type and for a text with a KeyFault
void AddEventFunctions(sqlite3* database);

// A condition for the events of the user whom BindUser sets, which takes parameters 1 and 2. Written so that an index
// of the column serves, whether it has texts or integers. The column's collation, which may take two users for one,
// does not count.
inline constexpr char kOfUser[] = "user IN (?1, ?2) AND wisp_key(user) = ?1 COLLATE BINARY";
void BindUser(sqlite3_stmt* statement, std::string_view user);

// Takes back what was not committed, whatever ends it. False: see sqlite3_errcode.
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

// How many operations of its machine SQLite may do for this file; ends what would go on, with SQLITE_INTERRUPT. Few,
// enough to read a schema, until AllowForSize. One at a time, within the life of the database.
class WorkLimit {
 public:
  explicit WorkLimit(sqlite3* database);
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;
  ~WorkLimit() { sqlite3_progress_handler(database_, 0, nullptr, nullptr); }

  // As many as it takes to go over the file so many times.
  void AllowForSize(int times = 1);

 private:
  sqlite3* database_;
  int64_t left_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SQLITE_FILE_H_
