#include "runtime/privacy/ledger/ledger_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "runtime/core/platform.h"
#include "runtime/sqlite/open.h"

namespace wisp::privacy {
namespace {

constexpr int kShortestWaitUs = 300, kWaitRangeUs = 2000;

// The size of a ledger with 1,000,000 charges. A larger one is not checked for completeness, because reading it would
// take minutes.
constexpr sqlite3_int64 kMostBytesRead = sqlite3_int64{256} << 20;

uint32_t BigEndian(const unsigned char* bytes, int size) {
  uint32_t number = 0;
  for (int i = 0; i < size; ++i) number = number << 8 | bytes[i];
  return number;
}

// True if the header has the file's size, as SQLite writes it once a commit has written all pages
// (sqlite.org/fileformat2.html, 1.3). Otherwise the file is incomplete, and need not be read.
bool HeaderMatchesSize(sqlite3_file* file, sqlite3_int64 size) {
  unsigned char header[100];
  if (size < static_cast<sqlite3_int64>(sizeof header) ||
      file->pMethods->xRead(file, header, sizeof header, 0) != SQLITE_OK)
    return false;
  const uint32_t page = BigEndian(header + 16, 2);
  return static_cast<sqlite3_int64>(page == 1 ? 65536 : page) * BigEndian(header + 28, 4) == size;
}

bool ReadAll(sqlite3_file* file, sqlite3_int64 size, std::string& bytes) {
  if (!HeaderMatchesSize(file, size)) return false;
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
  platform::FileInfo info;
  return platform::GetInfo(path, info) != 0 || (info.type == platform::FileType::kRegular && info.size == 0);
}

std::string GetFolder(const std::string& path) {
  const size_t name_at = platform::FindName(path);
  return name_at == 0 ? "." : path.substr(0, name_at);
}

int OpenFile(const std::string& path, bool make, int flags, sqlite3** handle) {
  // Closing a file drops all locks that this process has on it, including SQLite's: so an existing file is never opened
  // here.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (make) {
    platform::FileInfo info;
    const bool there = platform::GetInfo(path, info) == 0;
    if (!there) {  // if another process creates it first, its empty file is opened at most once more
      const int file = platform::Open(path, platform::kRead | platform::kWrite | platform::kCreate);
      if (file >= 0) platform::Close(file);
    }
    // The umask may have removed bits. If this fails, SQLite says why it cannot write.
    if (!there || (info.type == platform::FileType::kRegular && info.size == 0)) (void)platform::MakePrivate(path);
  }
  return sqlite::Open(path, flags, handle);
}

Status CheckOneName(const std::string& path) {
  platform::FileInfo info;
  if (platform::GetInfo(path, info) != 0 || info.type != platform::FileType::kRegular || info.num_names <= 1)
    return OkStatus();
  return InvalidData("ledger '", path, "' has ", info.num_names,
                     " names (hard links): what is being written under one is not seen under another, so charges could "
                     "be lost; remove the others, "
                     "a symbolic link may take their place");
}

bool WaitABit(std::chrono::steady_clock::time_point since, int timeout_ms) {
  const auto now = std::chrono::steady_clock::now();
  if (now - since >= std::chrono::milliseconds(timeout_ms)) return false;
  const auto spread = static_cast<int>((now.time_since_epoch().count() / 64 + platform::GetProcess()) % kWaitRangeUs);
  platform::Sleep(kShortestWaitUs + spread);
  return true;
}

Turn::Turn(const std::string& ledger, int timeout_ms) : path_(ledger + "-turn") {
  const auto since = std::chrono::steady_clock::now();
  bool waits = true;
  while (waits) {
    if (file_ < 0)
      file_ = platform::Open(path_, platform::kRead | platform::kWrite | platform::kCreate | platform::kNoFollow |
                                        platform::kNoWait);
    platform::FileInfo opened, named;
    // A lock file that others may open could be held by them.
    if (file_ < 0 || platform::GetInfo(file_, opened) != 0 || opened.type != platform::FileType::kRegular ||
        opened.owner != platform::GetUser() || opened.others_can_open)
      break;
    if (platform::LockFile(file_, platform::Lock::kTryExclusive) == 0) {
      if (platform::GetLinkInfo(path_, named) == 0 && named.IsSame(opened)) return;
      platform::Close(std::exchange(file_, -1));  // its previous owner has removed it
      continue;
    }
    waits = errno == EWOULDBLOCK && WaitABit(since, timeout_ms);
  }
  if (file_ >= 0) platform::Close(std::exchange(file_, -1));
}

Turn::~Turn() {
  if (file_ < 0) return;
  platform::Remove(path_);
  platform::Close(file_);  // releases the lock too
}

Status SettleJournal(sqlite3* handle, int timeout_ms, const std::function<bool(const std::string& bytes)>& is_whole) {
  const char* journal = sqlite3_filename_journal(sqlite3_db_filename(handle, "main"));
  sqlite3_file* file = nullptr;
  if (journal == nullptr || !sqlite::IsHotJournal(journal) ||
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK)
    return OkStatus();
  const sqlite3_io_methods& io = *file->pMethods;
  const auto since = std::chrono::steady_clock::now();
  for (;;) {
    // Takes the exclusive lock, as SQLite does before it plays a journal back, and not while somebody is writing.
    int reserved = 0;
    const int locked = io.xLock(file, SQLITE_LOCK_SHARED);
    if (locked != SQLITE_OK && (locked & 0xff) != SQLITE_BUSY)
      return OkStatus();  // SQLite will find and report the same
    const bool shared = locked == SQLITE_OK;
    const bool known = shared && io.xCheckReservedLock(file, &reserved) == SQLITE_OK;
    const bool alone =
        known && reserved == 0 && sqlite::IsHotJournal(journal) && io.xLock(file, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK;
    Status result;
    if (alone && sqlite::IsHotJournal(journal)) {
      std::string bytes;
      sqlite3_int64 size = 0;
      if (io.xFileSize(file, &size) != SQLITE_OK) size = 0;
      if (size > kMostBytesRead) {
        result = InvalidData("the ledger beside the journal '", journal, "' has ", size,
                             " bytes, and is read to its end where a program was killed: allowed are ", kMostBytesRead,
                             "; restore it from a copy");
        // the kept file must be durable before the journal is deleted
      } else if (ReadAll(file, size, bytes) && is_whole(bytes)) {
        sqlite3_vfs* vfs = nullptr;
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
        if (vfs == nullptr || io.xSync(file, SQLITE_SYNC_FULL) != SQLITE_OK ||
            vfs->xDelete(vfs, journal, /*syncDir=*/1) != SQLITE_OK) {
          result = IoError("the journal '", journal, "', which a program that was killed left, cannot be removed");
        }
      }
    }
    io.xUnlock(file, SQLITE_LOCK_NONE);
    if (alone || reserved != 0 || !sqlite::IsHotJournal(journal) || !WaitABit(since, timeout_ms)) return result;
  }
}

}  // namespace wisp::privacy
