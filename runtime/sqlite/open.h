// All SQLite files are opened here: nothing else in the library or the program calls sqlite3_open. A folder with a log,
// a ledger or another program's table may contain planted files.
//
//   sqlite3* database = nullptr;
//   const int code = sqlite::Open(path, SQLITE_OPEN_READWRITE, &database);   // close it in either case
//   if (code != SQLITE_OK) {
//     const Status known = sqlite::Explain("event log '" + path + "'", path, database);
//     ...
//   }
//
// Every open promises:
//   - The file, its journal, its write-ahead log and the index of that are regular files. SQLite would block on a pipe.
//   - A journal that names a super-journal is refused, before any byte of the database changes. SQLite deletes the file
//     of that name, whatever it is. Only programs that attach databases write such names, and we attach none.
//   - A journal, a write-ahead log or its index (-shm) that is a link, or has several names, is refused: SQLite would
//     write through it. So is one of another user, where only its owner may write the database.
//   - No temporary file is made: sorting and undoing happen in memory. The system's temporary folder is not ours.
//   - Nothing in the file is run: no extension, no view, no function that could do harm.
//   - A file system that cannot lock is an error at once instead of a wait.
//
// It does not check the content of the file: that is data/sqlite_file.h and privacy/ledger/ledger_database.h.
#ifndef WISP_RUNTIME_SQLITE_OPEN_H_
#define WISP_RUNTIME_SQLITE_OPEN_H_

#include <sqlite3.h>

#include <memory>
#include <string>

#include "runtime/core/status.h"

namespace wisp::sqlite {

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
using Handle = std::unique_ptr<sqlite3, Close>;

// Returns SQLite's result code. Close `handle` whatever the code is. Flags as for sqlite3_open_v2; names are never
// URIs. Other threads may open files at the same time.
int Open(const std::string& path, int flags, sqlite3** handle);

// An empty database in memory.
int OpenInMemory(sqlite3** handle);

// Opens for reading a file that other programs may write. Changes that a killed program left in a journal are recovered
// if the file can be written. A file with write-ahead logging is read without a log if nothing can be written and no
// log is there.
int OpenToRead(const std::string& path, sqlite3** handle);

// True if the file's header says that its latest changes may be in a write-ahead log beside it. Reads only the header.
bool HasWriteAheadLog(sqlite3* handle);

// Checks that a journal which a killed program left belongs to the file's present state. kInvalidData if it is of
// another state, as when an old copy was put back without removing the journal beside it: SQLite would write pages of
// one into the other. Call it before anything is read. It sees only the journal's first pages.
Status CheckJournal(const std::string& subject, sqlite3* handle);

int64_t ReadFileSize(const std::string& path);  // 0 if there is no file

// Explains why the last call on `handle` failed, if this code or the file system is the reason: kInvalidData for files
// that are refused, kIo for a file system that cannot lock or cannot sync folders. OK for every other failure, which
// SQLite's own message explains. Messages begin with `subject`.
Status Explain(const std::string& subject, const std::string& path, sqlite3* handle);

// The reason why the last call on `handle` failed, as the end of a sentence: the operating system's for a file that
// cannot be opened, plain words if nothing could be written, else SQLite's own.
std::string GetFailureReason(sqlite3* handle);

// True if SQLite may play this journal back: it exists, is not empty, and its first byte is not 0. Never blocks.
bool IsHotJournal(const char* journal);

}  // namespace wisp::sqlite

#endif  // WISP_RUNTIME_SQLITE_OPEN_H_
