#include "runtime/privacy/ledger/ledger_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace wisp::privacy {
namespace {

constexpr int kShortestWaitUs = 300, kWaitRangeUs = 2000;
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

// SQLite's own test of a journal that may be played back: it is not empty, and its first byte is not 0.
bool HasContents(const char* journal) {
  const int file = open(journal, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char first = 0;
  const bool has = read(file, &first, 1) == 1 && first != 0;
  close(file);
  return has;
}

bool ReadAll(sqlite3_file* file, std::string& bytes) {
  sqlite3_int64 size = 0;
  if (file->pMethods->xFileSize(file, &size) != SQLITE_OK) return false;
  bytes.resize(static_cast<size_t>(size));
  constexpr sqlite3_int64 kBlock = 1 << 20;
  for (sqlite3_int64 at = 0; at < size; at += kBlock) {
    if (file->pMethods->xRead(file, bytes.data() + at, static_cast<int>(std::min(kBlock, size - at)), at) != SQLITE_OK)
      return false;
  }
  return true;
}

}  // namespace

bool IsMissing(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) != 0 || (S_ISREG(info.st_mode) && info.st_size == 0);
}

int64_t SizeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

int OpenFile(const std::string& path, bool make, int flags, sqlite3** handle) {
  // Closing a file takes away all locks that this process has on it, those of SQLite included: a file that is there is
  // never opened here.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (make) {
    struct stat info;
    const bool there = stat(path.c_str(), &info) == 0;
    if (!there) {  // where another process makes it first, its file is opened once more at most, and is empty
      const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly);
      if (file >= 0) close(file);
    }
    // The umask may have taken bits away; should that fail, SQLite says why it cannot write.
    if (!there || (S_ISREG(info.st_mode) && info.st_size == 0)) (void)chmod(path.c_str(), kOwnerOnly);
  }
  return sqlite3_open_v2(path.c_str(), handle, flags, nullptr);
}

Status CheckOneName(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink <= 1) return OkStatus();
  return InvalidData("ledger '", path, "' has ", info.st_nlink,
                     " names (hard links): what is being written under one is not seen under another, so charges could "
                     "be lost; remove the others, "
                     "a symbolic link may take their place");
}

bool WaitABit(std::chrono::steady_clock::time_point since, int timeout_ms) {
  const auto now = std::chrono::steady_clock::now();
  if (now - since >= std::chrono::milliseconds(timeout_ms)) return false;
  usleep(static_cast<useconds_t>(kShortestWaitUs + (now.time_since_epoch().count() / 64 + getpid()) % kWaitRangeUs));
  return true;
}

Turn::Turn(const std::string& folder, int timeout_ms) : folder_(open(folder.c_str(), O_RDONLY | O_CLOEXEC)) {
  const auto since = std::chrono::steady_clock::now();
  while (folder_ >= 0 && flock(folder_, LOCK_EX | LOCK_NB) != 0 && WaitABit(since, timeout_ms)) {}
}

Turn::~Turn() {
  if (folder_ >= 0) close(folder_);  // with the lock
}

Status SettleJournal(sqlite3* handle, int timeout_ms, const std::function<bool(const std::string& bytes)>& is_whole) {
  const char* journal = sqlite3_filename_journal(sqlite3_db_filename(handle, "main"));
  sqlite3_file* file = nullptr;
  if (journal == nullptr || !HasContents(journal) ||
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK)
    return OkStatus();
  const sqlite3_io_methods& io = *file->pMethods;
  const auto since = std::chrono::steady_clock::now();
  for (;;) {
    // As SQLite before it plays a journal back: alone, and not past somebody who is writing it just now.
    int reserved = 0;
    const bool shared = io.xLock(file, SQLITE_LOCK_SHARED) == SQLITE_OK;
    const bool known = shared && io.xCheckReservedLock(file, &reserved) == SQLITE_OK;
    const bool alone =
        known && reserved == 0 && HasContents(journal) && io.xLock(file, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK;
    Status result;
    if (alone && HasContents(journal)) {
      std::string bytes;
      // What is kept must last before the journal goes.
      if (ReadAll(file, bytes) && is_whole(bytes)) {
        sqlite3_vfs* vfs = nullptr;
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
        if (vfs == nullptr || io.xSync(file, SQLITE_SYNC_FULL) != SQLITE_OK ||
            vfs->xDelete(vfs, journal, /*syncDir=*/1) != SQLITE_OK) {
          result = IoError("the journal '", journal, "', which a program that was killed left, cannot be removed");
        }
      }
    }
    io.xUnlock(file, SQLITE_LOCK_NONE);
    if (alone || reserved != 0 || !HasContents(journal) || !WaitABit(since, timeout_ms)) return result;
  }
}

}  // namespace wisp::privacy
