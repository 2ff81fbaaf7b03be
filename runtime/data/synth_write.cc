// Writes synthetic data, always through FileReplacement; a database is first made in memory.
#include <sqlite3.h>
#include <algorithm>
#include <memory>
#include <span>

#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/data/synth.h"
#include "runtime/sqlite/open.h"

namespace wisp::data {
namespace {

Status WriteBytes(const std::string& path, std::span<const std::byte> bytes, FileAccess access) {
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path, access));
  WISP_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

Status WriteText(const std::string& path, const std::string& text) {
  return WriteBytes(path, std::as_bytes(std::span(text)), FileAccess::kShared);
}

// A database in memory, made for the file `path`.
class DatabaseInMemory {
 public:
  explicit DatabaseInMemory(const std::string& path) : path_(path) { code_ = sqlite::OpenInMemory(&database_); }
  ~DatabaseInMemory() { sqlite3_close(database_); }
  DatabaseInMemory(const DatabaseInMemory&) = delete;
  DatabaseInMemory& operator=(const DatabaseInMemory&) = delete;

  Status Execute(const char* sql) {
    if (code_ == SQLITE_OK) code_ = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
    return Check();
  }

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

  Status Write() {
    sqlite3_int64 size = 0;
    const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes(sqlite3_serialize(database_, "main", &size, 0),
                                                                        &sqlite3_free);
    if (bytes == nullptr) return IoError(path_, ": there is not enough memory for the database");
    // Only the owner may read the file, because real events are appended to it afterwards.
    return WriteBytes(path_, std::as_bytes(std::span(bytes.get(), static_cast<size_t>(size))), FileAccess::kOwner);
  }

 private:
  Status Check() const {
    return code_ == SQLITE_OK ? OkStatus() : IoError(path_, ": cannot be made: ", sqlite::GetFailureReason(database_));
  }

  const std::string& path_;
  sqlite3* database_ = nullptr;
  int code_;
};

void BindText(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

struct LoggedEvent {
  int64_t time;
  size_t user, event;
};

// Sorts events by time, as a device would have logged them.
std::vector<LoggedEvent> ByTime(const SynthData& data) {
  std::vector<LoggedEvent> log;
  for (size_t u = 0; u < data.sequences.num_users(); ++u) {
    for (size_t e = data.sequences.offsets[u]; e < data.sequences.offsets[u + 1]; ++e)
      log.push_back({data.times[e], u, e});
  }
  std::stable_sort(log.begin(), log.end(), [](const LoggedEvent& a, const LoggedEvent& b) { return a.time < b.time; });
  return log;
}

Status Fill(DatabaseInMemory& database, const SynthData& data) {
  WISP_RETURN_IF_ERROR(
      database.Execute("CREATE TABLE items(key TEXT PRIMARY KEY, name TEXT NOT NULL);"
                       "CREATE TABLE events(user TEXT NOT NULL, item TEXT NOT NULL, time INTEGER NOT NULL);"
                       "CREATE INDEX events_by_user ON events(user, time); BEGIN"));
  const Sequences& s = data.sequences;
  WISP_RETURN_IF_ERROR(
      database.Insert("INSERT INTO items VALUES(?, ?)", s.item_keys.size(), [&](sqlite3_stmt* row, size_t i) {
        BindText(row, 1, s.item_keys[i]);
        BindText(row, 2, data.item_names[i]);
      }));
  const std::vector<LoggedEvent> log = ByTime(data);
  WISP_RETURN_IF_ERROR(
      database.Insert("INSERT INTO events VALUES(?, ?, ?)", log.size(), [&](sqlite3_stmt* row, size_t i) {
        BindText(row, 1, s.user_keys[log[i].user]);
        BindText(row, 2, s.item_keys[static_cast<size_t>(s.items[log[i].event])]);
        sqlite3_bind_int64(row, 3, log[i].time);
      }));
  return database.Execute("COMMIT");
}

}  // namespace

Status WriteSqliteLog(const std::string& path, const SynthData& data) {
  WISP_RETURN_IF_ERROR(CheckWritable(path));
  // SQLite would play the old database's journal into the new one.
  for (const char* journal : {"-wal", "-journal"}) {
    if (!platform::IsThere(path + journal)) continue;
    return IoError(path, ": will not be replaced while ", path, journal,
                   " is there, which a database left behind: name another file");
  }
  DatabaseInMemory database(path);
  WISP_RETURN_IF_ERROR(Fill(database, data));
  return database.Write();
}

Status WriteUserItemText(const std::string& path, const SynthData& data) {
  const Sequences& s = data.sequences;
  std::string text;
  for (size_t u = 0; u < s.num_users(); ++u) {
    for (int32_t item : s.User(u))
      text.append(s.user_keys[u]).append(" ").append(s.item_keys[static_cast<size_t>(item)]).append("\n");
  }
  return WriteText(path, text);
}

Status WriteTable(const std::string& path, const SynthData& data, Format format) {
  if (format != Format::kCsv && format != Format::kTsv && format != Format::kInter) {
    return InvalidArgument(path, ": the format is ", FormatName(format), ", allowed are csv, tsv and inter");
  }
  const Sequences& s = data.sequences;
  const char separator = format == Format::kCsv ? ',' : '\t';
  std::string text = format == Format::kCsv   ? "user,item,time\n"
                     : format == Format::kTsv ? "user\titem\ttime\n"
                                              : "user_id:token\titem_id:token\ttimestamp:float\n";
  // Keys are letters, digits and hyphens, so they need no quotes.
  for (const LoggedEvent& e : ByTime(data)) {
    text.append(s.user_keys[e.user])
        .append(1, separator)
        .append(s.item_keys[static_cast<size_t>(s.items[e.event])])
        .append(1, separator);
    text.append(std::to_string(e.time)).append("\n");
  }
  return WriteText(path, text);
}

Status WriteItemNames(const std::string& path, const SynthData& data) {
  std::string text = "item\tname\n";
  for (size_t i = 0; i < data.item_names.size(); ++i)
    text.append(data.sequences.item_keys[i]).append("\t").append(data.item_names[i]).append("\n");
  return WriteText(path, text);
}

}  // namespace wisp::data
