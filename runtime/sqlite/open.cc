#include "runtime/sqlite/open.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/hex.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"
#include "runtime/core/text.h"

namespace wisp::sqlite {
namespace {

// A journal that names a super-journal ends with the name, its length, its checksum and these bytes
// (sqlite.org/fileformat2.html, and readSuperJournal in SQLite's pager.c).
constexpr std::array<unsigned char, 8> kJournalMagic = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr int64_t kSuperTailBytes = 16;

// `read(bytes, size, offset)` returns true if it read all bytes.
template <class Read>
bool NamesSuperJournal(int64_t size, const Read& read) {
  std::array<unsigned char, kJournalMagic.size()> tail{};
  return size >= kSuperTailBytes && read(tail.data(), tail.size(), size - static_cast<int64_t>(tail.size())) &&
         tail == kJournalMagic;
}

constexpr char kRemoveIt[] = "; no program of ours leaves such a file: remove it";

// The reason why SQLite must not use `path`, a database's name with an ending; "" if it may, or if nothing is there.
std::string FaultBeside(const std::string& path) {
  platform::FileInfo info;
  if (platform::GetLinkInfo(path, info) != 0) return "";
  if (info.type != platform::FileType::kRegular) return "'" + path + "' beside it is not a regular file" + kRemoveIt;
  if (info.num_names > 1)
    return "'" + path + "' beside it is also known by another name (hard links), and SQLite would write to it" +
           kRemoveIt;
  // In a folder where everybody may create files, SQLite would take a planted file for the database's own pages.
  platform::FileInfo database;
  const bool is_known = platform::GetInfo(path.substr(0, path.rfind('-')), database) == 0;
  if (is_known && info.owner != database.owner && info.owner != 0 && !database.others_can_write)
    return "'" + path + "' beside it belongs to another user, who may not write to the database itself" + kRemoveIt;
  return "";
}

int OpenJournal(const std::string& path) {
  return platform::Open(path, platform::kRead | platform::kNoWait | platform::kNoFollow);
}

std::string FindJournalFault(const std::string& path) {
  std::string fault = FaultBeside(path);
  if (!fault.empty()) return fault;
  // Nobody locks a journal, so closing it here drops no lock.
  const int file = OpenJournal(path);
  if (file < 0) return "";
  platform::FileInfo info;
  const bool names = platform::GetInfo(file, info) == 0 &&
                     NamesSuperJournal(static_cast<int64_t>(info.size), [&](void* to, size_t n, int64_t at) {
                       return platform::ReadAt(file, to, n, static_cast<uint64_t>(at)) == static_cast<int64_t>(n);
                     });
  platform::Close(file);
  return names ? "'" + path + "' beside it names another journal (a super-journal), and SQLite would delete that file" +
                     kRemoveIt
               : "";
}

// Checks the name that SQLite uses, which has no links.
std::string FindFault(const std::string& path) {
  platform::FileInfo info;
  if (platform::GetInfo(path, info) == 0 && info.type != platform::FileType::kRegular)
    return "is not a regular file, and a database is one";
  std::string fault = FindJournalFault(path + "-journal");
  if (fault.empty()) fault = FaultBeside(path + "-wal");
  // SQLite opens this file by itself, empties it and writes to it.
  return fault.empty() ? FaultBeside(path + "-shm") : fault;
}

std::string WithoutLinks(const std::string& path) {
  const std::string real = platform::FindRealPath(path);
  return real.empty() ? path : real;
}

// The methods of a kind of file, with our own lock.
struct Methods {
  sqlite3_io_methods ours;
  const sqlite3_io_methods* theirs;
};

// A wrapper around a file system. SQLite keeps registered file systems for as long as the process lives.
struct Door {
  sqlite3_vfs ours;
  sqlite3_vfs* under;
  std::string name;
};

std::mutex g_mutex;  // protects the two lists
std::list<Methods>& AllMethods() {
  static auto* all = new std::list<Methods>;
  return *all;
}
std::list<Door>& AllDoors() {
  static auto* all = new std::list<Door>;
  return *all;
}

// SQLite would take "no locks available" for "locked by another" and retry until its timeout.
int Lock(sqlite3_file* file, int level) {
  const auto* methods = reinterpret_cast<const Methods*>(file->pMethods);  // `ours` is its first member
  errno = 0;
  const int code = methods->theirs->xLock(file, level);
  return code == SQLITE_BUSY && errno == ENOLCK ? SQLITE_IOERR_LOCK : code;
}

// False if memory is exhausted.
bool TakeOver(sqlite3_file* file) {
  const std::lock_guard lock(g_mutex);
  for (const Methods& m : AllMethods()) {
    if (m.theirs != file->pMethods) continue;
    file->pMethods = &m.ours;
    return true;
  }
  try {
    AllMethods().push_back({.ours = *file->pMethods, .theirs = file->pMethods});
  } catch (const std::bad_alloc&) {
    return false;
  }
  Methods& m = AllMethods().back();
  m.ours.iVersion = std::min(m.ours.iVersion, 3);  // this struct goes no further
  m.ours.xLock = Lock;
  file->pMethods = &m.ours;
  return true;
}

bool NamesSuperJournal(sqlite3_file* journal) {
  sqlite3_int64 size = 0;
  return journal->pMethods->xFileSize(journal, &size) != SQLITE_OK ||
         NamesSuperJournal(size, [&](void* to, size_t n, int64_t at) {
           return journal->pMethods->xRead(journal, to, static_cast<int>(n), at) == SQLITE_OK;
         });
}

sqlite3_vfs* Under(sqlite3_vfs* vfs) { return static_cast<Door*>(vfs->pAppData)->under; }

constexpr int kDatabase = SQLITE_OPEN_MAIN_DB, kJournal = SQLITE_OPEN_MAIN_JOURNAL, kWal = SQLITE_OPEN_WAL;

int OpenChecked(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  // Refuses super-journals, and everything that SQLite would put into a temporary folder.
  if (name == nullptr || (flags & (kDatabase | kJournal | kWal)) == 0) return SQLITE_CANTOPEN;
  const std::string path = name;
  if (!((flags & kDatabase) != 0 ? FindFault(path)
        : (flags & kWal) != 0    ? FaultBeside(path)
                                 : FindJournalFault(path))
           .empty())
    return SQLITE_CANTOPEN;
  const int code = Under(vfs)->xOpen(Under(vfs), name, file, flags, out_flags);
  if (code != SQLITE_OK || file->pMethods == nullptr) return code;
  // Checks again, on the very file that SQLite will play back.
  const bool refused = (flags & kJournal) != 0 && NamesSuperJournal(file);
  if (!refused && ((flags & kDatabase) == 0 || TakeOver(file))) return SQLITE_OK;
  file->pMethods->xClose(file);
  file->pMethods = nullptr;
  return refused ? SQLITE_CANTOPEN : SQLITE_NOMEM;
}

int OpenGuarded(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  try {
    return OpenChecked(vfs, name, file, flags, out_flags);
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

// A power cut may bring back a journal whose removal is not on the disk, and SQLite would then undo a commit, such as a
// charge. Where folders cannot be synced, a journal is emptied first, and that is synced: an empty one undoes nothing.
bool EmptyDurably(const char* name) {
  const int file = platform::Open(name, platform::kRead | platform::kWrite | platform::kNoFollow);
  if (file < 0) return errno == ENOENT;
  const bool is_empty = platform::Truncate(file, 0) == 0 && platform::Sync(file) == 0;
  platform::Close(file);
  return is_empty;
}

int Delete(sqlite3_vfs* vfs, const char* name, int syncs_folder) {
  if (!platform::kSyncsFolders && syncs_folder != 0 && !EmptyDurably(name)) return SQLITE_IOERR_DELETE;
  return Under(vfs)->xDelete(Under(vfs), name, syncs_folder);
}

// The name of a file system that checks files before it opens them like the default one. Null: none is available.
const char* DoorOverDefault() {
  if (sqlite3_initialize() != SQLITE_OK) return nullptr;
  const std::lock_guard lock(g_mutex);
  sqlite3_vfs* under = sqlite3_vfs_find(nullptr);
  if (under == nullptr) return nullptr;
  Door* door = nullptr;
  for (Door& d : AllDoors()) {
    if (d.under == under && d.ours.szOsFile == under->szOsFile) door = &d;
  }
  if (door != nullptr) return door->name.c_str();
  door = &AllDoors().emplace_back();
  door->under = under;
  door->name = "wisp-" + std::to_string(AllDoors().size());
  door->ours = *under;
  door->ours.pNext = nullptr;
  door->ours.zName = door->name.c_str();
  door->ours.pAppData = door;
  door->ours.xOpen = OpenGuarded;
  door->ours.xDelete = Delete;
  door->ours.xAccess = [](sqlite3_vfs* v, const char* name, int flags, int* out) {
    return Under(v)->xAccess(Under(v), name, flags, out);
  };
  door->ours.xFullPathname = [](sqlite3_vfs* v, const char* name, int size, char* out) {
    return Under(v)->xFullPathname(Under(v), name, size, out);
  };
  if (sqlite3_vfs_register(&door->ours, 0) == SQLITE_OK) return door->name.c_str();
  AllDoors().pop_back();
  return nullptr;
}

// A file's content is data: nothing of it is executed, and nothing goes to a temporary folder.
int Harden(sqlite3* handle) {
  for (const auto& [option, value] :
       {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1), std::pair(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        std::pair(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0), std::pair(SQLITE_DBCONFIG_ENABLE_VIEW, 0)}) {
    sqlite3_db_config(handle, option, value, nullptr);
  }
  for (const auto& [limit, value] : {std::pair(SQLITE_LIMIT_ATTACHED, 0), std::pair(SQLITE_LIMIT_WORKER_THREADS, 0),
                                     std::pair(SQLITE_LIMIT_EXPR_DEPTH, 100)}) {
    sqlite3_limit(handle, limit, value);
  }
  return sqlite3_exec(handle, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);
}

int OpenThroughDoor(const std::string& name, int flags, sqlite3** handle) {
  *handle = nullptr;
  const char* door = DoorOverDefault();
  if (door == nullptr) return SQLITE_NOMEM;
  const int code = sqlite3_open_v2(name.c_str(), handle, flags, door);
  return code == SQLITE_OK ? Harden(*handle) : code;
}

std::string GetFolder(const std::string& path) {
  const size_t name_at = platform::FindName(path);
  return name_at == 0 ? "." : path.substr(0, name_at);
}

// Offsets in SQLite's files (sqlite.org/fileformat2.html, 1.3 and 3).
constexpr int kWriteVersionAt = 18, kReadVersionAt = 19, kCounterAt = 24, kHeaderBytes = 28;

uint32_t BigEndian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// The database's file as SQLite has it open; closing one of our own would drop this process's locks. Null if there is
// none.
sqlite3_file* GetSqliteFile(sqlite3* handle) {
  sqlite3_file* file = nullptr;
  const bool found = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK;
  return found && file != nullptr && file->pMethods != nullptr ? file : nullptr;
}

using FileHeader = std::array<unsigned char, kHeaderBytes>;
std::optional<FileHeader> ReadFileHeader(sqlite3* handle) {
  sqlite3_file* file = GetSqliteFile(handle);
  FileHeader header;
  if (file == nullptr || file->pMethods->xRead(file, header.data(), kHeaderBytes, 0) != SQLITE_OK) return std::nullopt;
  return header;
}

// The number of commits that the file has seen. With a rollback journal each commit counts one.
std::optional<uint32_t> ReadCounter(sqlite3* handle) {
  const std::optional<FileHeader> header = ReadFileHeader(handle);
  if (!header) return std::nullopt;
  return BigEndian(header->data() + kCounterAt);
}

bool SomebodyWrites(sqlite3* handle) {
  sqlite3_file* file = GetSqliteFile(handle);
  int reserved = 0;
  return file != nullptr && file->pMethods->xCheckReservedLock(file, &reserved) == SQLITE_OK && reserved != 0;
}

// The counter in the page 1 that a journal would restore; nullopt if that page is not among its first pages.
std::optional<uint32_t> CounterIn(const std::string& journal) {
  const int file = OpenJournal(journal);
  if (file < 0) return std::nullopt;
  std::optional<uint32_t> counter;
  std::array<unsigned char, 28> header;
  const auto reads = [&](unsigned char* to, size_t size, int64_t at) {
    return platform::ReadAt(file, to, size, static_cast<uint64_t>(at)) == static_cast<int64_t>(size);
  };
  if (reads(header.data(), header.size(), 0) &&
      std::equal(kJournalMagic.begin(), kJournalMagic.end(), header.begin())) {
    constexpr int64_t kMostRecords = 4096;
    const int64_t records = std::min<int64_t>(BigEndian(header.data() + 8), kMostRecords);
    const int64_t sector = BigEndian(header.data() + 20), page = BigEndian(header.data() + 24);
    std::array<unsigned char, 4 + kHeaderBytes> record;  // a page's number and its beginning
    for (int64_t i = 0; i < records && !counter && reads(record.data(), record.size(), sector + i * (page + 8)); ++i) {
      if (BigEndian(record.data()) == 1) counter = BigEndian(record.data() + 4 + kCounterAt);
    }
  }
  platform::Close(file);
  return counter;
}

std::string AsUri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (IsAsciiLetter(c) || IsAsciiDigit(c) || c == '/')
      uri += c;
    else
      uri += '%' + ToHex(static_cast<unsigned char>(c), 2);
  }
  return uri;
}

// Opens, only for reading, a file in a folder that cannot be written, and which no program writes meanwhile.
int OpenUnchanging(const std::string& path, sqlite3** handle) {
  return OpenThroughDoor(AsUri(path) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                         handle);
}

}  // namespace

int Open(const std::string& path, int flags, sqlite3** handle) { return OpenThroughDoor(path, flags, handle); }

int OpenInMemory(sqlite3** handle) {
  return OpenThroughDoor(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY, handle);
}

int OpenToRead(const std::string& path, sqlite3** handle) {
  const int code = Open(path, SQLITE_OPEN_READWRITE, handle);
  if (code != SQLITE_OK) return code;
  const std::string file = sqlite3_db_filename(*handle, "main");
  if (!platform::CanWrite(GetFolder(file)) && HasWriteAheadLog(*handle) && ReadFileSize(file + "-wal") == 0) {
    sqlite3_close(*handle);
    return OpenUnchanging(path, handle);
  }
  return sqlite3_exec(*handle, "PRAGMA query_only = ON", nullptr, nullptr, nullptr);
}

bool HasWriteAheadLog(sqlite3* handle) {
  const std::optional<FileHeader> header = ReadFileHeader(handle);
  return header && ((*header)[kWriteVersionAt] == 2 || (*header)[kReadVersionAt] == 2);
}

Status Explain(const std::string& subject, const std::string& path, sqlite3* handle) {
  const int code = handle == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(handle);
  if ((code & 0xff) == SQLITE_CANTOPEN) {
    const std::string file = WithoutLinks(path), fault = FindFault(file);
    if (!fault.empty()) return InvalidData(subject, ": ", OneLine(fault));
    if (ReadFileSize(file + "-wal") == 0 || platform::CanWrite(GetFolder(file))) return OkStatus();
    return IoError(subject, ": its latest changes are in '", OneLine(file + "-wal"),
                   "', which can be read only where the folder can be written in: copy both files to such a folder");
  }
  switch (code) {
    case SQLITE_IOERR_LOCK:
    case SQLITE_IOERR_RDLOCK:
    case SQLITE_IOERR_UNLOCK:
    case SQLITE_IOERR_CHECKRESERVEDLOCK:
      return IoError(subject,
                     ": its file system cannot lock files, so two programs could write it at once; put it on a local "
                     "file system that can");
    case SQLITE_IOERR_DIR_FSYNC:
      return IoError(subject,
                     ": its file system cannot sync folders, so a power cut could take back what was written; put it "
                     "on a local file system that can");
    default:
      return OkStatus();
  }
}

std::string GetFailureReason(sqlite3* handle) {
  if (handle == nullptr) return "there is not enough memory";
  const int code = sqlite3_extended_errcode(handle);
  if (const int error = sqlite3_system_errno(handle); (code & 0xff) == SQLITE_CANTOPEN && error != 0)
    return Reason(error);
  switch (code) {
    case SQLITE_FULL:
      return "the disk is full; free space and try again";
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
      return "the disk refuses to write, as one that is full does; free space and try again";
    default:
      return sqlite3_errmsg(handle);
  }
}

int64_t ReadFileSize(const std::string& path) {
  platform::FileInfo info;
  return platform::GetInfo(path, info) == 0 ? static_cast<int64_t>(info.size) : 0;
}

Status CheckJournal(const std::string& subject, sqlite3* handle) {
  const char* name = sqlite3_db_filename(handle, "main");
  const std::string journal = std::string(name == nullptr ? "" : name) + "-journal";
  constexpr int kMomentUs = 2000;
  // Another program may be writing at this moment: then both counters change.
  for (int look = 0; look < 5; ++look) {
    if (look > 0) platform::Sleep(kMomentUs);
    const std::optional<uint32_t> before = CounterIn(journal), now = ReadCounter(handle);
    if (!before || !now || *now == *before || *now == *before + 1 || SomebodyWrites(handle)) return OkStatus();
  }
  return InvalidData(subject, ": '", OneLine(journal),
                     "', which a program that was killed left, is of another state of the file, as where an old copy "
                     "was put back beside it; remove it to use the file as it is");
}

bool IsHotJournal(const char* journal) {
  const int file = OpenJournal(journal);
  if (file < 0) return false;
  char first = 0;
  const bool is_hot = platform::Read(file, &first, 1) == 1 && first != 0;
  platform::Close(file);
  return is_hot;
}

}  // namespace wisp::sqlite
