#include "runtime/privacy/ledger/ledger_database.h"

#include <cstring>
#include <utility>

#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/privacy/ledger/ledger_file.h"
#include "runtime/privacy/ledger/ledger_rows.h"
#include "runtime/privacy/ledger/ledger_tables.h"
#include "runtime/sqlite/open.h"

namespace wisp::privacy {
namespace {

constexpr int kMostTextBytes = 1 << 20;  // a longer value or row is an error, not an allocation
// Our statements, also those that a ledger's schema repeats, have at most 1,000 bytes.
constexpr int kMostSqlBytes = 1 << 14;

// A row takes at least 15 bytes of the file, and at most 30 operations to check and read. A file whose pages point to
// each other in a circle would be read for ever. The size is used once the schema is read: a ledger has some twenty
// tables and triggers, and each row of a schema takes longer.
constexpr int64_t kOperationsPerByte = 8, kOperationsBesides = 1 << 16;
constexpr int kOperationsPerCall = 1 << 12;

int CountWork(void* limit) {
  int64_t& left = static_cast<WorkLimit*>(limit)->left;
  return (left -= kOperationsPerCall) <= 0 ? 1 : 0;
}

int WaitForOthers(void* wait, int times) {
  auto& w = *static_cast<BusyWait*>(wait);
  if (times == 0) w.since = std::chrono::steady_clock::now();
  return WaitABit(w.since, w.timeout_ms) ? 1 : 0;
}

// Checks that these are the bytes of a ledger with a complete chain.
Status CheckWholeLedger(const std::string& path, const std::string& bytes) {
  WISP_ASSIGN_OR_RETURN(Database copy, Database::InMemory(path));
  WISP_RETURN_IF_ERROR(copy.TakeBytes(bytes));
  WISP_RETURN_IF_ERROR(copy.CheckWhole());
  LedgerPosition start;
  WISP_RETURN_IF_ERROR(ReadSubject(copy, &start).status());
  return ReadRowsAfter(copy, start).status();
}

}  // namespace

Status Database::Error(int code) const {
  const std::string file = "ledger '" + path_ + "' ";
  const std::string detail = handle_ != nullptr && sqlite3_errcode(handle_.get()) != SQLITE_OK
                                 ? " (" + OneLine(sqlite3_errmsg(handle_.get())) + ")"
                                 : std::string();
  const int extended = handle_ != nullptr ? sqlite3_extended_errcode(handle_.get()) : SQLITE_NOMEM;
  if (code == SQLITE_NOMEM || extended == SQLITE_IOERR_NOMEM)
    return IoError(file, "cannot be read or written: out of memory; nothing was recorded");
  if (extended == SQLITE_READONLY_DBMOVED)
    return IoError(file,
                   "was moved, replaced or removed while it was open; this charge was not recorded, open it again");
  if (extended == SQLITE_READONLY_ROLLBACK || extended == SQLITE_READONLY_RECOVERY)
    return IoError(file,
                   "has an unfinished charge of a program that was killed in the journal beside it, which can be read "
                   "only where the folder can be written in: copy both files to such a folder");
  WISP_RETURN_IF_ERROR(sqlite::Explain("ledger '" + path_ + "'", path_, handle_.get()));
  switch (code & 0xFF) {
    case SQLITE_INTERRUPT:
      return InvalidData(
          file,
          "takes more work to open than a file of its size can need: it is damaged, or made to keep a reader busy; "
          "what was spent cannot be told, restore it from a copy");
    case SQLITE_TOOBIG:
      return InvalidData(file, "has a text of more than ", kMostTextBytes, " bytes, which no ledger has");
    case SQLITE_NOTADB:
      return InvalidData(file, "is not an SQLite database");
    case SQLITE_CORRUPT:
      return InvalidData(file, "is damaged", detail, "; what was spent cannot be told, restore it from a copy");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return IoError(file, "is read-only", detail, "; a charge must be written before noise is drawn");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return IoError(file, "is held by another process for too long", detail, "; nothing was recorded, try again");
    case SQLITE_FULL:
      return IoError(file, "cannot grow: the disk is full; this charge was not recorded");
    case SQLITE_CANTOPEN:
    default:
      return IoError(file, (code & 0xFF) == SQLITE_CANTOPEN ? "cannot be opened" : "cannot be read or written",
                     detail.empty() ? "" : ": " + OneLine(sqlite::GetFailureReason(handle_.get())));
  }
}

Status Database::CheckProcess() const {
  return handle_.get_deleter().origin.IsForked() ? ForkedError("ledger '" + path_ + "'") : OkStatus();
}

Result<Statement> Database::Prepare(std::string_view sql) {
  WISP_RETURN_IF_ERROR(CheckProcess());
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return Error(code);
  return Statement(this, statement);
}

Status Database::Execute(const char* sql) {
  WISP_RETURN_IF_ERROR(CheckProcess());
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? OkStatus() : Error(code);
}

Result<int64_t> Database::ReadNumber(const char* sql) {
  WISP_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  WISP_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return InvalidData("ledger '", path_, "' is damaged: no answer to ", sql);
  return statement.Number(0);
}

Result<bool> Database::Recognise() {
  // One statement is one snapshot: another process may be creating the ledger.
  WISP_ASSIGN_OR_RETURN(Statement row,
                        Prepare("SELECT (SELECT count(*) FROM sqlite_master), a.application_id, u.user_version "
                                "FROM pragma_application_id a, pragma_user_version u"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return InvalidData("ledger '", path_, "' is damaged: it does not say what it is");
  const int64_t tables = row.Number(0), application = row.Number(1), version = row.Number(2);
  if (application == 0 && tables == 0 && version == 0) return false;
  if (application != kLedgerApplicationId) {
    return InvalidData("'", path_, "' is an SQLite database but not a privacy ledger (application id ", application,
                       ", a ledger has ", kLedgerApplicationId, ")");
  }
  if (version != kLedgerVersion) {
    return Unsupported("ledger '", path_, "' has version ", version, ", this build reads version ", kLedgerVersion,
                       (version > kLedgerVersion ? "; a newer build wrote it" : ""));
  }
  if (work_ != nullptr) {
    WISP_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes());
    work_->left = kOperationsBesides + kOperationsPerByte * bytes;
  }
  return true;
}

// A commit returns after its pages were synced to the file, the journal was deleted, and its folder synced. That is
// EXTRA: with FULL a power loss may bring the journal back, which undoes the commit. fullfsync matters on Apple systems
// only, where fsync alone leaves data in the drive's cache.
Status Database::UseRollbackJournal() {
  WISP_ASSIGN_OR_RETURN(Statement journal, Prepare("PRAGMA journal_mode = DELETE"));
  WISP_ASSIGN_OR_RETURN(const bool row, journal.Step());
  const std::string mode = row ? journal.Text(0) : std::string();
  if (mode != "delete") {
    return IoError("ledger '", path_, "' cannot use a rollback journal here (journal mode '", mode,
                   "'): it belongs on a local file system");
  }
  WISP_RETURN_IF_ERROR(Execute("PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON"));
  WISP_ASSIGN_OR_RETURN(const int64_t synchronous, ReadNumber("PRAGMA synchronous"));
  return synchronous == 3 ? OkStatus() : IoError("ledger '", path_, "' cannot be synced to disk on every commit");
}

Status Database::Make(const OpenOptions& options) {
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*this));
  WISP_ASSIGN_OR_RETURN(const bool made, Recognise());  // another process may have done it meanwhile
  if (made) return OkStatus();
  WISP_RETURN_IF_ERROR(options.create(*this));
  return transaction.Commit();
}

// SQLite's page check recurses for each level of a tree, and a tree may be as high as the file is long. Reading goes at
// most 20 levels deep, as deep as SQLite ever builds.
Status Database::CheckHeights() {
  WISP_ASSIGN_OR_RETURN(Statement table, Prepare("SELECT name FROM sqlite_master WHERE type = 'table'"));
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, table.Step());
    if (!found) return OkStatus();
    // Counting would be one operation, which no limit interrupts.
    WISP_ASSIGN_OR_RETURN(Statement rows, Prepare("SELECT total(1) FROM " + table.Text(0)));
    WISP_RETURN_IF_ERROR(rows.Run());
  }
}

Status Database::CheckContents() {
  // One snapshot, because another process may be charging.
  WISP_ASSIGN_OR_RETURN(const Snapshot snapshot, Snapshot::Begin(*this));
  // This comes first, because checking rows evaluates what their table's definition says.
  WISP_RETURN_IF_ERROR(CheckTables(*this));
  WISP_RETURN_IF_ERROR(CheckHeights());
  WISP_ASSIGN_OR_RETURN(Statement check, Prepare("PRAGMA quick_check(1)"));
  WISP_ASSIGN_OR_RETURN(const bool row, check.Step());
  return row && check.Text(0) == "ok" ? OkStatus()
                                      : Damaged(*this, row ? check.Text(0) : std::string("no answer to a check"));
}

Status Database::CheckWhole() {
  WISP_ASSIGN_OR_RETURN(const bool is_ledger, Recognise());
  return is_ledger ? CheckContents() : Damaged(*this, "it is empty");
}

Status Database::TakeBytes(const std::string& bytes) {
  // SQLite frees this memory, even if it fails.
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  if (copy == nullptr) return Error(SQLITE_NOMEM);
  std::memcpy(copy, bytes.data(), bytes.size());  // NOLINT(bugprone-not-null-terminated-result): these are no text
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  LimitWork();
  const int code = sqlite3_deserialize(handle_.get(), "main", copy, size, size,
                                       SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  return code == SQLITE_OK ? OkStatus() : Error(code);
}

Result<Database> Database::InMemory(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite::OpenInMemory(&handle);
  Database database(path, handle);
  if (code != SQLITE_OK) return database.Error(code);
  database.Harden();
  return database;
}

Result<Database> Database::OpenLater(const OpenOptions& options) {
  // Faults that would prevent the file from being created must be known now, not during a run.
  if (options.path == ":memory:") return IoError("':memory:' is no file: a ledger must outlive the program");
  if (options.path.empty() || !platform::CanWriteIn(GetFolder(options.path))) {
    return IoError("ledger '", options.path, "' cannot be made: the folder '", GetFolder(options.path),
                   "' is not there, or cannot be written in");
  }
  if (platform::IsThere(options.path) && !(platform::CanRead(options.path) && platform::CanWrite(options.path))) {
    return IoError("ledger '", options.path, "' is read-only; a charge must be written before noise is drawn");
  }
  WISP_ASSIGN_OR_RETURN(Database database, InMemory(options.path));
  WISP_RETURN_IF_ERROR(database.Make(options));
  database.later_ = std::make_unique<OpenOptions>(options);
  database.later_->missing = Missing::kCreate;
  // The absolute path, because a program may change its folder before the first charge.
  database.later_->path = platform::MakeAbsolute(options.path);
  if (database.later_->path.empty())
    return IoError("ledger '", options.path, "' cannot be made: the folder of the program is gone");
  return database;
}

Result<bool> Database::Attach(bool make) {
  if (!is_pending() || (!make && IsMissing(later_->path))) return false;
  const OpenOptions options = *later_;
  WISP_ASSIGN_OR_RETURN(Database opened, Open(options));
  opened.path_ = path_;
  *this = std::move(opened);
  return true;
}

// The file may come from anywhere, so nothing huge may be allocated for it. Triggers stay on: a ledger's triggers guard
// it against our own mistakes too, and they are compared with the expected ones before anything is written.
void Database::Harden() {
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_LENGTH, kMostTextBytes);
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_SQL_LENGTH, kMostSqlBytes);
}

void Database::LimitWork() {
  work_ = std::make_unique<WorkLimit>(WorkLimit{.left = kOperationsBesides});
  sqlite3_progress_handler(handle_.get(), kOperationsPerCall, CountWork, work_.get());
}

// The actual size, whatever the file's header claims.
Result<int64_t> Database::NumBytes() {
  if (is_file()) return sqlite::ReadFileSize(file());
  return ReadNumber("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
}

Status Database::Configure(int busy_timeout_ms) {
  busy_ = std::make_unique<BusyWait>(BusyWait{.timeout_ms = busy_timeout_ms});
  sqlite3_busy_handler(handle_.get(), WaitForOthers, busy_.get());
  Harden();
  LimitWork();
  return Execute("PRAGMA cell_size_check = ON");
}

Result<Database> Database::Open(const OpenOptions& options) {
  WISP_ASSIGN_OR_RETURN(Database database, OpenBounded(options));
  sqlite3_progress_handler(database.handle_.get(), 0, nullptr, nullptr);
  database.work_.reset();
  return database;
}

namespace {

// SQLite plays a write-ahead log back as soon as it reads the file, or begins one if the file says that it has one. It
// takes any log that lies beside the file, also one that another program left with an older copy: that would take
// charges back.
Status CheckNoWriteAheadLog(const std::string& path, sqlite3* handle) {
  if (sqlite::HasWriteAheadLog(handle)) {
    return InvalidData("'", path,
                       "' has a write-ahead log, which no privacy ledger has: a copy of the file alone would lack the "
                       "latest charges; if it is a ledger, say PRAGMA journal_mode = DELETE in the sqlite3 program");
  }
  const std::string log = std::string(sqlite3_db_filename(handle, "main")) + "-wal";
  if (sqlite::ReadFileSize(log) == 0) return OkStatus();
  return InvalidData("'", OneLine(log),
                     "' lies beside the ledger, which has no write-ahead log: it is of another program or of an older "
                     "copy, and reading it could take charges back; remove that file, and the ledger is read as it is");
}

}  // namespace

Result<Database> Database::OpenBounded(const OpenOptions& options) {
  const std::string& path = options.path;
  if (path.starts_with("file:"))
    return IoError("ledger '", path, "': names of files are taken as they are, not as URIs");
  if (options.missing == Missing::kLater && IsMissing(path)) return OpenLater(options);
  if (options.missing == Missing::kError && !platform::IsThere(path))
    return IoError("ledger '", path, "' is not there");
  WISP_RETURN_IF_ERROR(CheckOneName(path));
  const bool display_only =
      options.for_display && (!platform::CanWrite(path) || !platform::CanWriteIn(GetFolder(path)));
  sqlite3* handle = nullptr;
  const int flags = (display_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX;
  const int code = OpenFile(path, options.missing == Missing::kCreate, flags, &handle);
  Database database(path, handle);
  if (code != SQLITE_OK) return database.Error(code);
  WISP_RETURN_IF_ERROR(database.Configure(options.busy_timeout_ms));
  WISP_RETURN_IF_ERROR(CheckNoWriteAheadLog(path, handle));  // before anything is read
  if (display_only) return OpenReadOnly(std::move(database));
  WISP_RETURN_IF_ERROR(SettleJournal(handle, options.busy_timeout_ms,
                                     [&](const std::string& bytes) { return CheckWholeLedger(path, bytes).ok(); }));
  WISP_ASSIGN_OR_RETURN(const bool is_ledger, database.Recognise());
  if (sqlite3_db_readonly(handle, "main") == 1) return database.Error(SQLITE_READONLY);
  if (!is_ledger && options.missing == Missing::kError)
    return InvalidData("'", path, "' is empty, not a privacy ledger");
  WISP_RETURN_IF_ERROR(database.UseRollbackJournal());
  if (!is_ledger) WISP_RETURN_IF_ERROR(database.Make(options));
  WISP_RETURN_IF_ERROR(database.CheckContents());  // also for a new one: another process may have created it
  return database;
}

Result<Database> Database::OpenReadOnly(Database database) {
  WISP_ASSIGN_OR_RETURN(const bool is_ledger, database.Recognise());
  if (!is_ledger) return InvalidData("'", database.path_, "' is empty, not a privacy ledger");
  database.display_only_ = true;
  WISP_RETURN_IF_ERROR(database.CheckContents());
  return database;
}

// A failed binding leaves the parameter NULL, which every column of the schema refuses, so Step reports it.
Statement& Statement::Bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index + 1, text.data() != nullptr ? text.data() : "", text.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::Bind(int index, double number) {
  sqlite3_bind_double(statement_.get(), index + 1, number);
  return *this;
}

Statement& Statement::Bind(int index, int64_t number) {
  sqlite3_bind_int64(statement_.get(), index + 1, number);
  return *this;
}

Statement& Statement::BindBlob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index + 1, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->Error(code);
}

Status Statement::Run() {
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return OkStatus();
  }
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? std::string()
                         : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

std::string Statement::Blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  return bytes == nullptr ? std::string()
                          : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

Result<Snapshot> Snapshot::Begin(Database& database) {
  if (database.in_transaction()) return Snapshot(nullptr);
  WISP_RETURN_IF_ERROR(database.Execute("BEGIN"));
  return Snapshot(&database);
}

Snapshot::~Snapshot() {
  if (database_ != nullptr) database_->Rollback();  // nothing was written
}

Result<Transaction> Transaction::Begin(Database& database) {
  if (database.display_only()) return database.Error(SQLITE_READONLY);
  if (!database.is_file()) {
    WISP_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
    return Transaction(database);
  }
  const std::string file = database.file();
  WISP_RETURN_IF_ERROR(CheckOneName(file));
  const Turn turn(file, database.busy_timeout_ms() / 2);
  WISP_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // A failed rollback needs no handling: what was not committed is not in the file either way.
  if (database_ != nullptr) database_->Rollback();
}

Status Transaction::Commit() {
  WISP_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return OkStatus();
}

}  // namespace wisp::privacy
