// The SQLite side of the ledger: opening and checking the file, statements, transactions, and error messages.
//
// It knows nothing of the cost of a charge; that is ledger_composition.h. Only the sources of the ledger use this
// header.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_DATABASE_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_DATABASE_H_

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/fork.h"
#include "runtime/core/status.h"

namespace wisp::privacy {

class Statement;

// How long a call waits for other processes, and when the present wait began.
struct BusyWait {
  int timeout_ms = 0;
  std::chrono::steady_clock::time_point since;
};

// The operations that SQLite's virtual machine may still do while a file is opened.
struct WorkLimit {
  int64_t left = 0;
};

// One connection, used by one thread at a time. In a forked process every call refuses, and the destructor leaves the
// connection open, because SQLite would take its parent's locks for its own.
class Database {
 public:
  // The action for a file that is missing or empty: create the ledger, create it only once Attach is told to, or fail.
  enum class Missing { kCreate, kLater, kError };

  // Opens `path` and ensures that it is a ledger this build can write, whose commits are on disk when they return. A
  // file that is something else, or a ledger of another version (kUnsupported), is not changed. Whatever the file
  // contains, opening it ends: more work than a file of its size can need is kInvalidData.
  struct OpenOptions {
    std::string path;
    Missing missing = Missing::kCreate;
    std::function<Status(Database&)> create;  // makes the tables of a new ledger, inside a transaction
    int busy_timeout_ms = 0;
    // A file that cannot be written is only read; then no transaction begins.
    bool for_display = false;
  };
  static Result<Database> Open(const OpenOptions& options);
  // An empty database in memory; messages name `path`. Its work is not bounded.
  static Result<Database> InMemory(const std::string& path);

  // True after kLater while there is no file: everything is in memory and empty.
  bool is_pending() const { return later_ != nullptr; }
  // Switches to the file, if it exists by now or is to be created; returns whether it did. The content of memory is
  // lost, so nothing may have been written to it. Earlier statements become invalid.
  Result<bool> Attach(bool make);

  Result<Statement> Prepare(std::string_view sql);
  Status Execute(const char* sql);
  // For destructors: it makes no message of a failure, because memory may be exhausted.
  void Rollback() noexcept {
    if (!handle_.get_deleter().origin.IsForked()) sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  // Replaces this database by a read-only one with these contents; from then on its work is bounded by their size.
  Status TakeBytes(const std::string& bytes);
  // Checks that it is a ledger with the right tables and undamaged pages.
  Status CheckWhole();
  bool display_only() const { return display_only_; }
  bool is_file() const { return busy_ != nullptr; }
  // The absolute path of the file, wherever the program is now.
  std::string file() const { return sqlite3_db_filename(handle_.get(), "main"); }
  int busy_timeout_ms() const { return busy_->timeout_ms; }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  int changes() const { return sqlite3_changes(handle_.get()); }  // by the last statement
  const std::string& path() const { return path_; }

  // The sentence for an SQLite result code, e.g. "ledger '/a/b' is damaged (database disk image is malformed)".
  Status Error(int code) const;

 private:
  struct Closer {
    void operator()(sqlite3* handle) const {
      if (!origin.IsForked()) sqlite3_close_v2(handle);
    }
    Origin origin;
  };
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}

  Status CheckProcess() const;
  Result<int64_t> ReadNumber(const char* sql);
  // True for a ledger, false for an empty file; an error for anything else.
  Result<bool> Recognise();
  static Result<Database> OpenLater(const OpenOptions& options);
  static Result<Database> OpenBounded(const OpenOptions& options);
  void Harden();
  Status Configure(int busy_timeout_ms);
  void LimitWork();
  Result<int64_t> NumBytes();
  static Result<Database> OpenReadOnly(Database database);
  Status UseRollbackJournal();
  // Creates the tables of a new ledger, under a lock that excludes other writers. No error if they exist.
  Status Make(const OpenOptions& options);
  Status CheckContents();
  Status CheckHeights();

  std::string path_;
  std::unique_ptr<BusyWait> busy_;   // must outlive the handle
  std::unique_ptr<WorkLimit> work_;  // as must this; null once the file is open
  std::unique_ptr<sqlite3, Closer> handle_;
  bool display_only_ = false;
  std::unique_ptr<OpenOptions> later_;
};

// A prepared statement. Parameters and columns count from 0. Returned texts are valid until the next Step.
class Statement {
 public:
  Statement& Bind(int index, std::string_view text);
  Statement& Bind(int index, double number);
  Statement& Bind(int index, int64_t number);
  Statement& BindBlob(int index, std::string_view bytes);
  // True if there is a row, false at the end.
  Result<bool> Step();
  // Steps to the end, for statements without rows.
  Status Run();
  int64_t Number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double Real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  std::string Text(int column) const;
  std::string Blob(int column) const;

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(const Database* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  const Database* database_;  // must outlive the statement
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

// Excludes other writers from here on; writers take turns. Rolled back unless committed.
class Transaction {
 public:
  static Result<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  // On success the transaction is on disk; on an error it is rolled back.
  Status Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

// Everything that is read during its lifetime is of one state of the file, whatever others write. Within a transaction
// it has no effect.
class Snapshot {
 public:
  static Result<Snapshot> Begin(Database& database);
  Snapshot(Snapshot&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot();

 private:
  explicit Snapshot(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_DATABASE_H_
