// The device's log of what its users did: one SQLite file, appended to as events happen, read when the model is
// fine-tuned.
//
//   WISP_ASSIGN_OR_RETURN(EventLog log, EventLog::Open("events.db"));
//   WISP_RETURN_IF_ERROR(log.Append({.user = "anna", .item = "espresso", .time = 1700000000}));
//
// Table events(user TEXT, item TEXT, time INTEGER), the same that the SQLite reader reads. One that is there already
// may have more columns, with constants for defaults. Nothing that the file says is run: no trigger fires, no CHECK is
// asked. Used by one thread at a time.
#ifndef WISP_RUNTIME_DATA_EVENT_LOG_H_
#define WISP_RUNTIME_DATA_EVENT_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace wisp::data {

struct Event {
  std::string user;
  std::string item;
  int64_t time = 0;  // any unit that grows
};

class EventLog {
 public:
  // Opens the file, or makes it with an empty table, readable by the owner alone. kInvalidArgument for what is no
  // file's name (CheckDatabaseName), kInvalidData where `events` is no plain table with the three columns, or has
  // others that are computed.
  static Result<EventLog> Open(const std::string& path);
  EventLog(EventLog&&) noexcept;
  EventLog& operator=(EventLog&&) noexcept;
  ~EventLog();

  // On disk when it returns. Users and items with a KeyFault (sequences.h) are refused.
  Status Append(const Event& event);

  // The item keys of the user's newest `limit` events, oldest first; ties in time in the order of appending.
  Result<std::vector<std::string>> History(const std::string& user, size_t limit) const;

 private:
  EventLog(std::string path, sqlite3* database);
  Status CheckTable() const;
  Status Error(const char* doing) const;

  std::string path_;
  sqlite3* database_ = nullptr;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_EVENT_LOG_H_
