// The ledger as a file among others: how it is made, that it has one name, who writes next, and a journal that a killed
// program left.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_FILE_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_FILE_H_

#include <sqlite3.h>

#include <chrono>
#include <functional>
#include <string>

#include "runtime/core/status.h"

namespace wisp::privacy {

bool IsMissing(const std::string& path);  // not there, or an empty file
std::string FolderOf(const std::string& path);

// Makes an empty file where there is none, and opens it. A new one is for its owner only, whatever the umask: its
// journal gets the same mode. SQLite's result code; `handle` may be set whatever it is.
int OpenFile(const std::string& path, bool make, int flags, sqlite3** handle);

// kInvalidData for a file with several names (hard links): a journal lies beside the name that was used, and another
// name does not see it.
Status CheckOneName(const std::string& path);

// Calls that wait for each other: a wait of a millisecond or two, never the same, until `timeout_ms` have gone by since
// `since`. False then.
bool WaitABit(std::chrono::steady_clock::time_point since, int timeout_ms);

// Writers take turns: who is next waits for the ledger alone, and the one that has just written queues behind.
// (SQLite's own waiting sleeps up to 0.1 s, so a writer that hardly pauses starved the others.) The queue is a lock on
// a file of its own beside the ledger, which is there for a moment and which nobody but the ledger's owner can open:
// who can only look into the folder holds nobody up. It is a courtesy: who does not get it in time, or at all, goes on
// without, and what is written is safe either way.
class Turn {
 public:
  Turn(const std::string& ledger, int timeout_ms);
  Turn(const Turn&) = delete;
  ~Turn();

 private:
  const std::string path_;
  int file_ = -1;
};

// A program that was killed inside a charge leaves a journal with what the file held before. SQLite goes back to that,
// whatever the file holds by then: where the file was replaced, or renamed, used and renamed back, it would take back
// charges that were made since. So a file that is whole as it stands (`is_whole`, which gets its bytes) is kept, and
// the journal removed: at most it holds one charge that was never acknowledged, which then counts. To be called before
// anything is read.
//
// Every point at which a charge may be killed: (1) before the journal is synced, the file is the old one, and whole;
// (2) while its pages are written, it is not whole, and SQLite goes back to the old one; (3) after the last page and
// before the journal is gone, it is the new one, and whole; (4) afterwards there is no journal. A file of case 2 that
// is renamed or copied without its journal fails its chain or its head: it is refused, not taken for what it is not.
Status SettleJournal(sqlite3* handle, int timeout_ms, const std::function<bool(const std::string& bytes)>& is_whole);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_FILE_H_
