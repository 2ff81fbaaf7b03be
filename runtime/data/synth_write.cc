// Writing synthetic data: text through FileReplacement, SQLite into a temporary file that is renamed when complete.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "runtime/core/file.h"
#include "runtime/data/synth.h"

namespace wisp::data {
namespace {

Status WriteText(const std::string& path, const std::string& text) {
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path, FileAccess::kShared));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
  return file.Commit();
}

class Database {
 public:
  explicit Database(std::string path) : path_(std::move(path)) { code_ = sqlite3_open(path_.c_str(), &database_); }
  ~Database() { sqlite3_close(database_); }
  Database(const Database&) = delete;

  Status Execute(const char* sql) {
    if (code_ == SQLITE_OK) code_ = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
    return Check();
  }
  Status Check() const { return code_ == SQLITE_OK ? OkStatus() : IoError(path_ + ": " + sqlite3_errmsg(database_)); }

  // Runs `sql` once for every row that `bind(statement, row)` fills.
  template <class Bind>
  Status Insert(const char* sql, size_t rows, Bind&& bind) {
    sqlite3_stmt* prepared = nullptr;
    code_ = sqlite3_prepare_v2(database_, sql, -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, &sqlite3_finalize);
    for (size_t row = 0; row < rows && code_ == SQLITE_OK; ++row) {
      bind(prepared, row);
      code_ = sqlite3_step(prepared) == SQLITE_DONE ? sqlite3_reset(prepared) : sqlite3_errcode(database_);
    }
    return Check();
  }

 private:
  std::string path_;
  sqlite3* database_ = nullptr;
  int code_;
};

void BindText(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text(statement, index, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

Status FillDatabase(const std::string& path, const SynthData& data) {
  Database database(path);
  WISP_RETURN_IF_ERROR(database.Execute("CREATE TABLE items(key TEXT PRIMARY KEY, name TEXT NOT NULL);"
                                        "CREATE TABLE events(user TEXT NOT NULL, item TEXT NOT NULL, time INTEGER NOT NULL);"
                                        "CREATE INDEX events_by_user ON events(user, time); BEGIN"));
  const Sequences& s = data.sequences;
  WISP_RETURN_IF_ERROR(database.Insert("INSERT INTO items VALUES(?, ?)", s.item_keys.size(), [&](sqlite3_stmt* row, size_t i) {
    BindText(row, 1, s.item_keys[i]);
    BindText(row, 2, data.item_names[i]);
  }));
  size_t user = 0;
  WISP_RETURN_IF_ERROR(database.Insert("INSERT INTO events VALUES(?, ?, ?)", s.items.size(), [&](sqlite3_stmt* row, size_t i) {
    while (i >= s.offsets[user + 1]) ++user;
    BindText(row, 1, s.user_keys[user]);
    BindText(row, 2, s.item_keys[static_cast<size_t>(s.items[i])]);
    sqlite3_bind_int64(row, 3, data.times[i]);
  }));
  return database.Execute("COMMIT");
}

}  // namespace

Status WriteSqliteLog(const std::string& path, const SynthData& data) {
  const std::string temporary = path + ".tmp-" + std::to_string(getpid());
  std::remove(temporary.c_str());
  Status status = FillDatabase(temporary, data);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) status = IoError(path + ": cannot be replaced");
  if (!status.ok()) std::remove(temporary.c_str());
  return status;
}

Status WriteUserItemText(const std::string& path, const SynthData& data) {
  const Sequences& s = data.sequences;
  std::string events, items;
  for (size_t u = 0; u < s.num_users(); ++u) {
    for (int32_t item : s.User(u)) events += s.user_keys[u] + " " + s.item_keys[static_cast<size_t>(item)] + "\n";
  }
  for (size_t i = 0; i < s.item_keys.size(); ++i) items += s.item_keys[i] + "\t" + data.item_names[i] + "\n";
  WISP_RETURN_IF_ERROR(WriteText(path + ".items.tsv", items));
  return WriteText(path, events);
}

}  // namespace wisp::data
