// The one door to SQLite's files: nothing else in the library or the program calls sqlite3_open. Who opens a log, a
// ledger or somebody's table takes what a folder holds for what it may be: planted.
//
//   sqlite3* database = nullptr;
//   const int code = sqlite::Open(path, SQLITE_OPEN_READWRITE, &database);   // close it in either case
//   if (code != SQLITE_OK) {
//     const Status known = sqlite::Explain("event log '" + path + "'", path, database);
//     ...
//   }
//
// What every open promises:
//   - The file, its journal, its write-ahead log and the index of that are regular files. SQLite would wait at a pipe.
//   - A journal that names a super-journal is refused, before any byte of the database changes. SQLite deletes the file
//     of that name, whatever it is. Only programs that attach databases write such names, and we attach none.
//   - A journal, a write-ahead log or its index (-shm) that is a link, or has several names, is refused: SQLite would
//     write through it. So is one of another user, where only its owner may write the database.
//   - No temporary file is made: sorting and undoing happen in memory. The system's temporary folder is not ours.
//   - Nothing in the file is run: no extension, no view, no function that could do harm.
//   - A file system that cannot lock is an error at once, not a wait for others.
//
// What it is not: a judge of what is in the file; that is data/sqlite_file.h and privacy/ledger/ledger_database.h.
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

// SQLite's result code. `handle` is to be closed whatever it is. Flags as for sqlite3_open_v2; names are never URIs.
// Other threads may open files at the same time.
int Open(const std::string& path, int flags, sqlite3** handle);

// An empty database in memory.
int OpenInMemory(sqlite3** handle);

// To read a file that others may write. What a killed program left is taken up, where that can be written. A file of
// the kind that has a write-ahead log is read without one where nothing can be written and none is there.
int OpenToRead(const std::string& path, sqlite3** handle);

// True if the file says that its latest changes are in a write-ahead log beside it. Reads the file's header alone.
bool HasWriteAheadLog(sqlite3* handle);

// That a journal which a killed program left belongs to the file as it is: kInvalidData where it is of another state,
// as an old copy that was put back without removing the journal beside it. SQLite would write pages of one into the
// other. To be called before anything is read. As far as the journal's first pages tell.
Status CheckJournal(const std::string& subject, sqlite3* handle);

int64_t SizeOf(const std::string& path);  // 0 where there is no file

// Why the last call on `handle` failed, where this door or the file system is the reason: kInvalidData for files that
// are refused, kIo for a file system that cannot lock or cannot sync folders. OK for every other failure, of which
// SQLite's own message tells. Sentences begin with `subject`.
Status Explain(const std::string& subject, const std::string& path, sqlite3* handle);

// Why the last call on `handle` failed, to end a sentence: SQLite's own words, or plainer ones where nothing could be
// written.
std::string WhyFailed(sqlite3* handle);

// Whether SQLite may play this journal back: it is there, not empty, and its first byte is not 0. Never waits.
bool IsHotJournal(const char* journal);

}  // namespace wisp::sqlite

#endif  // WISP_RUNTIME_SQLITE_OPEN_H_
