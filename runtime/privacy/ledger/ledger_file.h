// The ledger as a file: creating it, ensuring that it has one name, the order of writers, and a journal that a killed
// program left.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_FILE_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_FILE_H_

#include <sqlite3.h>

#include <chrono>
#include <functional>
#include <string>

#include "runtime/core/status.h"

namespace wisp::privacy {

bool IsMissing(const std::string& path);  // the file does not exist, or is empty
std::string GetFolder(const std::string& path);

// Opens the file, and creates an empty one if it is missing. A new file is readable by its owner only, whatever the
// umask; its journal gets the same mode. Returns SQLite's result code; `handle` may be set whatever the code is.
int OpenFile(const std::string& path, bool make, int flags, sqlite3** handle);

// kInvalidData for a file with several names (hard links): a journal lies beside the name that was used, and is
// invisible from another name.
Status CheckOneName(const std::string& path);

// Sleeps a random millisecond or two, so that waiting calls do not collide. False once `timeout_ms` have passed since
// `since`.
bool WaitABit(std::chrono::steady_clock::time_point since, int timeout_ms);

// Writers take turns: only the next one waits for the ledger, and one that has just written queues behind. (SQLite's
// own waiting sleeps up to 0.1 s, so a writer that hardly pauses starved the others.) The queue is a lock on a separate
// file beside the ledger, which exists only for a moment and which only the ledger's owner can open: a user who can
// only list the folder holds nobody up. The turn is a courtesy: a writer that does not get it in time, or at all,
// continues without it, and writing is safe either way.
class Turn {
 public:
  Turn(const std::string& ledger, int timeout_ms);
  Turn(const Turn&) = delete;
  ~Turn();

 private:
  const std::string path_;
  int file_ = -1;
};

// A program that was killed during a charge leaves a journal with the previous content of the file. SQLite restores
// that content, whatever the file holds by then. If the file was replaced, or renamed, used and renamed back, it would
// undo charges that were made since. So a file that is complete as it is (`is_whole`, which gets its bytes) is kept,
// and the journal removed: at most it contains one charge that was never acknowledged, which then counts. Call this
// before anything is read.
//
// The points at which a charge may be killed: (1) before the journal is synced, the file is the old one, and complete;
// (2) while its pages are written, it is incomplete, and SQLite restores the old one; (3) after the last page and
// before the journal is deleted, it is the new one, and complete; (4) afterwards there is no journal. A file of case 2
// that is renamed or copied without its journal fails its chain or its head, and is refused.
Status SettleJournal(sqlite3* handle, int timeout_ms, const std::function<bool(const std::string& bytes)>& is_whole);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_FILE_H_
