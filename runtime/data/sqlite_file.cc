#include "runtime/data/sqlite_file.h"

#include <charconv>
#include <utility>

#include "runtime/data/date_time.h"
#include "runtime/data/sequences.h"
#include "runtime/sqlite/open.h"

namespace wisp::data {
namespace {

constexpr int kBusyTimeoutMs = 5000;     // another process may be appending
constexpr int kMaxValueBytes = 1 << 20;  // equals kMaxLineBytes: a longer value is an error instead of an allocation
constexpr int kMaxSqlBytes = 1 << 17;    // a statement that defines a table, for example

// A row of three values takes at least 8 bytes of the file and 5 operations to read: less than one a byte. A file whose
// pages point to each other in a circle would be read for ever. Rows of a schema take longer, but there are at most a
// few thousand.
constexpr int64_t kOperationsPerByte = 4, kOperationsBesides = 1 << 16;
constexpr int kOperationsPerCall = 1 << 12;

void TimeFromValue(sqlite3_context* context, int, sqlite3_value** values) {
  const int type = sqlite3_value_type(values[0]);
  if (type == SQLITE_INTEGER) return sqlite3_result_int64(context, sqlite3_value_int64(values[0]));
  if (type != SQLITE_FLOAT && type != SQLITE_TEXT) return sqlite3_result_null(context);
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (text == nullptr) return sqlite3_result_error_nomem(context);
  const std::string_view value(text, static_cast<size_t>(sqlite3_value_bytes(values[0])));
  int64_t time = 0;
  if (ParseTime(value, static_cast<uint32_t>(sqlite3_value_int64(values[1])), time))
    return sqlite3_result_int64(context, time);
  sqlite3_result_null(context);
}

void KeyFromValue(sqlite3_context* context, int, sqlite3_value** values) {
  if (!IsKeyType(sqlite3_value_type(values[0]))) return sqlite3_result_null(context);
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (text == nullptr) return sqlite3_result_error_nomem(context);
  const std::string_view key(text, static_cast<size_t>(sqlite3_value_bytes(values[0])));
  if (!KeyFault(key).empty()) return sqlite3_result_null(context);
  sqlite3_result_text64(context, key.data(), key.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

void RestrictDatabase(sqlite3* database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  for (const auto& [limit, value] :
       {std::pair(SQLITE_LIMIT_LENGTH, kMaxValueBytes), std::pair(SQLITE_LIMIT_SQL_LENGTH, kMaxSqlBytes),
        std::pair(SQLITE_LIMIT_FUNCTION_ARG, 8)}) {
    sqlite3_limit(database, limit, value);
  }
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
}

std::string Quoted(std::string_view identifier) {
  std::string quoted = "\"";
  for (const char c : identifier) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

SqliteStatement Prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return SqliteStatement(statement);
}

SqliteStatement PrepareInOrder(sqlite3* database, const std::string& select) {
  SqliteStatement in_order = Prepare(database, (select + " ORDER BY rowid").c_str());
  return in_order != nullptr || sqlite3_errcode(database) != SQLITE_ERROR ? std::move(in_order)
                                                                          : Prepare(database, select.c_str());
}

void BindText(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

std::string_view GetText(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(row, column)));
}

std::optional<std::vector<std::string>> Names(sqlite3* database, const char* sql, std::string_view bound) {
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(database, sql, -1, &prepared, nullptr);
  const SqliteStatement statement(prepared);
  if (code != SQLITE_OK) return std::nullopt;
  if (sqlite3_bind_parameter_count(prepared) > 0)
    sqlite3_bind_text64(prepared, 1, bound.data(), bound.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  std::vector<std::string> names;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) names.emplace_back(GetText(prepared, 0));
  return code == SQLITE_DONE ? std::optional(std::move(names)) : std::nullopt;
}

void AddEventFunctions(sqlite3* database) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  sqlite3_create_function_v2(database, "wisp_time", 2, kFlags, nullptr, TimeFromValue, nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(database, "wisp_key", 1, kFlags, nullptr, KeyFromValue, nullptr, nullptr, nullptr);
}

void BindUser(sqlite3_stmt* statement, std::string_view user) {
  BindText(statement, 1, user);
  int64_t number = 0;
  const auto read = std::from_chars(user.data(), user.data() + user.size(), number);
  if (read.ec == std::errc() && read.ptr == user.data() + user.size()) sqlite3_bind_int64(statement, 2, number);
}

std::optional<std::string> GetType(sqlite3* database, std::string_view table) {
  const auto types = Names(database, "SELECT type FROM pragma_table_list(?) WHERE schema = 'main'", table);
  if (!types) return std::nullopt;
  return types->empty() ? std::string() : types->front();
}

WorkLimit::WorkLimit(sqlite3* database) : database_(database), left_(kOperationsBesides) {
  sqlite3_progress_handler(
      database_, kOperationsPerCall,
      [](void* left) { return (*static_cast<int64_t*>(left) -= kOperationsPerCall) <= 0 ? 1 : 0; }, &left_);
}

// Uses the file's actual size, whatever its header claims.
void WorkLimit::AllowForSize(int times) {
  const char* file = sqlite3_db_filename(database_, "main");
  if (file != nullptr)
    left_ +=
        times * kOperationsPerByte * (sqlite::ReadFileSize(file) + sqlite::ReadFileSize(std::string(file) + "-wal"));
}

}  // namespace wisp::data
