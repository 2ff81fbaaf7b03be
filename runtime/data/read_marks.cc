#include "runtime/data/read_marks.h"

#include <memory>
#include <optional>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/data/lines.h"
#include "runtime/data/sqlite_file.h"
#include "runtime/sqlite/open.h"

namespace wisp::data {
namespace {

constexpr char kTable[] = "CREATE TABLE wisp_reads(log TEXT, last INTEGER, PRIMARY KEY(log, last)) WITHOUT ROWID";
constexpr char kSelect[] = "SELECT last FROM wisp_reads WHERE log = ? ORDER BY last";

std::string Quoted(std::string_view identifier) {
  std::string quoted = "\"";
  for (const char c : identifier) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// A log that nobody marked has no such table.
std::optional<bool> HasMarks(sqlite3* database) {
  const auto type = TypeOf(database, "wisp_reads");
  if (!type) return std::nullopt;
  return !type->empty();
}

// With its parameter, if it has one, set to the log's table.
bool Run(sqlite3* database, const std::string& sql, const std::string& table) {
  const SqliteStatement statement = Prepare(database, sql.c_str());
  if (statement == nullptr) return false;
  if (sqlite3_bind_parameter_count(statement.get()) > 0) BindText(statement.get(), 1, table);
  return sqlite3_step(statement.get()) == SQLITE_DONE;
}

// To be called before anything else is asked of the database: what failed would be forgotten.
Status Error(const std::string& path, sqlite3* database) {
  const std::string said = database == nullptr                           ? "there is not enough memory"
                           : sqlite3_db_readonly(database, nullptr) == 1 ? "the file is read-only"
                                                                         : sqlite3_errmsg(database);
  WISP_RETURN_IF_ERROR(sqlite::Explain(path, path, database));
  return IoError(OneLine(path +
                         ": it cannot be noted in the log what was read, so what its sessions are would change "
                         "with what comes late: " +
                         said + "; a log with sessions must be one that can be written"));
}

}  // namespace

std::optional<std::vector<int64_t>> ReadMarks(sqlite3* database, const std::string& table) {
  const SqliteStatement select = Prepare(database, kSelect);
  if (select == nullptr) return std::nullopt;
  BindText(select.get(), 1, table);
  std::vector<int64_t> marks;
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(select.get())) == SQLITE_ROW) marks.push_back(sqlite3_column_int64(select.get(), 0));
  return step == SQLITE_DONE ? std::optional(std::move(marks)) : std::nullopt;
}

bool TidyMarks(sqlite3* database, const std::string& table) {
  const auto has_marks = HasMarks(database);
  if (!has_marks || !*has_marks) return has_marks.has_value();
  const std::string events = Quoted(table);
  return Run(database,
             "DELETE FROM wisp_reads WHERE log = ?1 AND NOT EXISTS (SELECT 1 FROM " + events +
                 " e WHERE e.rowid <= wisp_reads.last AND e.rowid > coalesce((SELECT max(p.last) FROM wisp_reads p "
                 "WHERE p.log = ?1 AND p.last < wisp_reads.last), -9223372036854775808))",
             table) &&
         Run(database,
             "UPDATE wisp_reads SET last = (SELECT max(rowid) FROM " + events +
                 ") WHERE log = ?1 AND last > (SELECT max(rowid) FROM " + events + ")",
             table);
}

namespace {

// Whether the newest row has a mark, and nothing else is to be done.
std::optional<bool> IsCovered(sqlite3* database, const std::string& table) {
  const SqliteStatement covered =
      Prepare(database, ("SELECT coalesce((SELECT max(rowid) FROM " + Quoted(table) +
                         ") = (SELECT max(last) FROM wisp_reads WHERE log = ?), (SELECT count(*) FROM " +
                         Quoted(table) + ") = 0)")
                            .c_str());
  if (covered == nullptr) return std::nullopt;
  BindText(covered.get(), 1, table);
  if (sqlite3_step(covered.get()) != SQLITE_ROW) return std::nullopt;
  return sqlite3_column_int64(covered.get(), 0) != 0;
}

// Writes even where nothing came that needs a mark, and takes it back then: whether a log is refused that cannot be
// written must not tell that an event came.
Status Mark(const std::string& path, sqlite3* database, const std::string& table) {
  SqliteTransaction transaction(database);
  const auto has_marks = transaction.is_open() ? HasMarks(database) : std::nullopt;
  if (!has_marks || (!*has_marks && !Run(database, kTable, table))) return Error(path, database);
  const auto covered = *has_marks ? IsCovered(database, table) : std::optional(false);
  if (!covered) return Error(path, database);
  if (*covered)
    return Run(database, "REPLACE INTO wisp_reads VALUES('', 0)", table) ? OkStatus() : Error(path, database);
  // Of an empty table there is none, which the key does not take.
  const std::string insert = "INSERT OR IGNORE INTO wisp_reads SELECT ?1, max(rowid) FROM " + Quoted(table);
  const bool marked = TidyMarks(database, table) && Run(database, insert, table) && transaction.Commit();
  return marked ? OkStatus() : Error(path, database);
}

}  // namespace

Result<std::vector<int64_t>> MarkRead(const std::string& path, const std::string& table) {
  sqlite3* opened = nullptr;
  const int code = sqlite::Open(path, SQLITE_OPEN_READWRITE, &opened);
  const sqlite::Handle database(opened);
  if (code != SQLITE_OK) return Error(path, opened);
  Distrust(opened);
  WISP_RETURN_IF_ERROR(sqlite::CheckJournal(path, opened));
  WorkLimit work(opened);
  work.AllowForSize();
  const auto has_marks = HasMarks(opened);
  if (!has_marks) return Error(path, opened);
  // What others put there would be read as marks, or run.
  if (*has_marks) {
    const auto made = Names(opened, "SELECT coalesce(sql, '') FROM sqlite_master WHERE tbl_name = 'wisp_reads'");
    if (!made) return Error(path, opened);
    if (made->size() != 1 || made->front() != kTable)
      return InvalidData(path, ": its table 'wisp_reads' is not the one in which wisp notes what was read");
  }
  if (Prepare(opened, ("SELECT rowid FROM " + Quoted(table)).c_str()) == nullptr)
    return InvalidData(path, ": the table ", Shown(table),
                       " has no rowid, so it is not known what came late; sessions need a log that has one");
  WISP_RETURN_IF_ERROR(Mark(path, opened, table));
  auto marks = ReadMarks(opened, table);
  if (!marks) return Error(path, opened);
  return *std::move(marks);
}

}  // namespace wisp::data
