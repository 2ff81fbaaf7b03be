// A table of events in a SQLite file.
#include <sqlite3.h>

#include <memory>

#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

std::string Quoted(const std::string& identifier) {
  std::string quoted = "\"";
  for (char c : identifier) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string_view Text(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? std::string_view() : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(row, column)));
}

}  // namespace

Status ReadSqlite(const std::string& path, const ReadOptions& options, SequenceBuilder& builder) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, Close> database(opened);
  if (code != SQLITE_OK) return IoError(path + ": cannot be opened as SQLite: " + sqlite3_errstr(code));
  // Names in double quotes that match no column would be taken as texts: ask for them through the table.
  const std::string table = Quoted(options.table);
  const std::string sql = "SELECT t." + Quoted(options.user_column) + ", t." + Quoted(options.item_column) + ", t." + Quoted(options.time_column) +
                          " FROM " + table + " AS t ORDER BY t." + Quoted(options.time_column) + ", t.rowid";
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(database.get(), sql.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(prepared);
  if (statement == nullptr) return InvalidData(path + ", table " + options.table + ": " + sqlite3_errmsg(database.get()));
  int step;
  for (uint64_t row = 1; (step = sqlite3_step(prepared)) == SQLITE_ROW; ++row) {
    const std::string where = path + ", table " + options.table + ", row " + std::to_string(row) + " by time";
    if (sqlite3_column_type(prepared, 2) != SQLITE_INTEGER && sqlite3_column_type(prepared, 2) != SQLITE_FLOAT) {
      return InvalidData(where + ": the time is " + Shown(Text(prepared, 2)) + "; allowed is a number");
    }
    WISP_RETURN_IF_ERROR(builder.Add(where, Text(prepared, 0), Text(prepared, 1), sqlite3_column_int64(prepared, 2)));
  }
  if (step != SQLITE_DONE) return InvalidData(path + ": cannot be read: " + sqlite3_errmsg(database.get()));
  return OkStatus();
}

}  // namespace wisp::data
