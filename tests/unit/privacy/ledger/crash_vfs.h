// An SQLite file system that ends the process at its k-th write, truncation, sync or deletion.
//
// It is a layer over the default file system, made the default in a child process of a test. There are two kinds of
// end:
//   kKill        the process dies before the k-th operation (or inside it, see `torn`); written data stays
//   kPowerLoss   writes live in memory until they are synced; at the end each unsynced one reaches the disk or not,
//                by its own coin. The same holds for a file that was made or deleted, until its folder is synced: its
//                name stands for the previous file, or for the current one
// It is not safe in the process of the test itself, and it is not thread-safe.
#ifndef WISP_TESTS_UNIT_PRIVACY_LEDGER_CRASH_VFS_H_
#define WISP_TESTS_UNIT_PRIVACY_LEDGER_CRASH_VFS_H_

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wisp::privacy {

enum class CrashKind { kKill, kPowerLoss };

struct CrashPlan {
  CrashKind kind = CrashKind::kKill;
  int64_t at_operation = 0;  // 1, 2, ...; 0 never
  bool torn = false;         // kKill: the first half of the operation's bytes are written
  uint64_t seed = 0;         // kPowerLoss: seed of the coins
};

constexpr int kCrashExitCode = 42;

namespace crash_vfs {

struct Write {
  sqlite3_int64 offset;
  std::vector<uint8_t> bytes;  // empty: truncation to `offset`
};

struct State {
  CrashPlan plan;
  int64_t operations = 0;
  sqlite3_vfs* base = nullptr;
  std::map<std::string, std::vector<Write>> pending;  // kPowerLoss, by path
  // kPowerLoss: the files on the disk for names that changed since their folder was synced; no value: no such file. All
  // are in one folder.
  std::map<std::string, std::optional<std::string>> names;
};
inline State g_state;

struct File {
  sqlite3_file base;  // must be first: SQLite sees this one
  const char* path;
  bool syncs_folder;  // with its first sync, as SQLite does for files that are made as journals
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
inline File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
inline bool Holds(const File* file) { return g_state.plan.kind == CrashKind::kPowerLoss && file->path != nullptr; }

inline int Apply(sqlite3_file* real, const Write& w) {
  if (w.bytes.empty()) return real->pMethods->xTruncate(real, w.offset);
  return real->pMethods->xWrite(real, w.bytes.data(), static_cast<int>(w.bytes.size()), w.offset);
}

inline std::map<std::string, sqlite3_file*>& OpenFiles() {
  static std::map<std::string, sqlite3_file*> files;
  return files;
}

// Call it before a file is made or deleted.
inline void NameChanges(const char* path) {
  if (g_state.plan.kind != CrashKind::kPowerLoss || g_state.names.contains(path)) return;
  std::ifstream file(path, std::ios::binary);
  if (file)
    g_state.names[path] = std::string(std::istreambuf_iterator<char>(file), {});
  else
    g_state.names[path] = std::nullopt;
}

[[noreturn]] inline void Crash() {
  uint64_t random = g_state.plan.seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(g_state.operations);
  const auto coin = [&random] {
    random ^= random >> 27;
    random *= 0x94d049bb133111ebull;
    random ^= random >> 31;
    return (random & 1) != 0;
  };
  for (auto& [path, writes] : g_state.pending) {
    for (const Write& w : writes) {
      if (coin()) Apply(OpenFiles()[path], w);
    }
  }
  for (const auto& [path, before] : g_state.names) {
    if (coin()) continue;
    std::filesystem::remove(path);
    if (before) std::ofstream(path, std::ios::binary) << *before;
  }
  _exit(kCrashExitCode);
}

// Call it before every operation that changes a file.
inline bool CrashesNow() { return ++g_state.operations == g_state.plan.at_operation; }

inline int Close(sqlite3_file* file) {
  File* f = Of(file);
  if (f->path != nullptr) {
    for (const Write& w : g_state.pending[f->path]) Apply(f->real(), w);  // the system keeps what it was given
    g_state.pending.erase(f->path);
    OpenFiles().erase(f->path);
  }
  return f->real()->pMethods->xClose(f->real());
}

inline int Size(sqlite3_file* file, sqlite3_int64* size) {
  File* f = Of(file);
  const int code = f->real()->pMethods->xFileSize(f->real(), size);
  if (code != SQLITE_OK || !Holds(f)) return code;
  for (const Write& w : g_state.pending[f->path]) {
    const sqlite3_int64 end = w.offset + static_cast<sqlite3_int64>(w.bytes.size());
    *size = w.bytes.empty() ? std::min(*size, end) : std::max(*size, end);
  }
  return SQLITE_OK;
}

inline int Read(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  File* f = Of(file);
  int code = f->real()->pMethods->xRead(f->real(), out, amount, offset);
  if (!Holds(f) || (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)) return code;
  auto* bytes = static_cast<uint8_t*>(out);
  for (const Write& w : g_state.pending[f->path]) {
    const sqlite3_int64 end = w.bytes.empty() ? offset + amount : w.offset + static_cast<sqlite3_int64>(w.bytes.size());
    for (sqlite3_int64 i = std::max(offset, w.offset); i < std::min(offset + amount, end); ++i) {
      bytes[i - offset] = w.bytes.empty() ? 0 : w.bytes[static_cast<size_t>(i - w.offset)];
    }
  }
  sqlite3_int64 size = 0;
  Size(file, &size);
  return size >= offset + amount ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

inline int WriteBytes(sqlite3_file* file, const void* data, int amount, sqlite3_int64 offset) {
  File* f = Of(file);
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (CrashesNow()) {
    if (g_state.plan.torn) f->real()->pMethods->xWrite(f->real(), data, amount / 2, offset);
    Crash();
  }
  if (!Holds(f)) return f->real()->pMethods->xWrite(f->real(), data, amount, offset);
  g_state.pending[f->path].push_back({offset, {bytes, bytes + amount}});
  return SQLITE_OK;
}

inline int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  File* f = Of(file);
  if (CrashesNow()) Crash();
  if (!Holds(f)) return f->real()->pMethods->xTruncate(f->real(), size);
  g_state.pending[f->path].push_back({size, {}});
  return SQLITE_OK;
}

inline int Sync(sqlite3_file* file, int flags) {
  File* f = Of(file);
  if (CrashesNow()) Crash();
  if (!Holds(f)) return SQLITE_OK;  // a killed process loses none of its writes: no need to wait for the disk
  for (const Write& w : g_state.pending[f->path]) {
    if (const int code = Apply(f->real(), w); code != SQLITE_OK) return code;
  }
  g_state.pending[f->path].clear();
  if (std::exchange(f->syncs_folder, false)) g_state.names.clear();
  (void)flags;
  return SQLITE_OK;
}

#define WISP_FORWARD(name, parameters, ...)                                                  \
  inline int name parameters {                                                               \
    return Of(file)->real()->pMethods->x##name(Of(file)->real() __VA_OPT__(, ) __VA_ARGS__); \
  }
WISP_FORWARD(Lock, (sqlite3_file * file, int level), level)
WISP_FORWARD(Unlock, (sqlite3_file * file, int level), level)
WISP_FORWARD(CheckReservedLock, (sqlite3_file * file, int* out), out)
WISP_FORWARD(FileControl, (sqlite3_file * file, int op, void* arg), op, arg)
WISP_FORWARD(SectorSize, (sqlite3_file * file))
WISP_FORWARD(ShmMap, (sqlite3_file * file, int page, int size, int extend, void volatile** out), page, size, extend,
             out)
WISP_FORWARD(ShmLock, (sqlite3_file * file, int offset, int n, int flags), offset, n, flags)
WISP_FORWARD(ShmUnmap, (sqlite3_file * file, int remove), remove)
#undef WISP_FORWARD
inline void ShmBarrier(sqlite3_file* file) { Of(file)->real()->pMethods->xShmBarrier(Of(file)->real()); }
// The disk promises nothing: no atomic writes, no safe appends, no order.
inline int DeviceCharacteristics(sqlite3_file*) { return 0; }

inline int Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  static const sqlite3_io_methods methods = {.iVersion = 2,
                                             .xClose = Close,
                                             .xRead = Read,
                                             .xWrite = WriteBytes,
                                             .xTruncate = Truncate,
                                             .xSync = Sync,
                                             .xFileSize = Size,
                                             .xLock = Lock,
                                             .xUnlock = Unlock,
                                             .xCheckReservedLock = CheckReservedLock,
                                             .xFileControl = FileControl,
                                             .xSectorSize = SectorSize,
                                             .xDeviceCharacteristics = DeviceCharacteristics,
                                             .xShmMap = ShmMap,
                                             .xShmLock = ShmLock,
                                             .xShmBarrier = ShmBarrier,
                                             .xShmUnmap = ShmUnmap,
                                             .xFetch = nullptr,
                                             .xUnfetch = nullptr};
  File* f = Of(file);
  f->path = path;
  f->syncs_folder = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
  // A ledger's own file is made empty just before it is opened.
  std::error_code missing;
  const bool is_new = path != nullptr && (std::filesystem::file_size(path, missing) == 0 || missing);
  if (is_new && g_state.plan.kind == CrashKind::kPowerLoss) g_state.names.try_emplace(path, std::nullopt);
  const int code = g_state.base->xOpen(g_state.base, path, f->real(), flags, out_flags);
  f->base.pMethods = f->real()->pMethods != nullptr ? &methods : nullptr;
  if (code == SQLITE_OK && path != nullptr) OpenFiles()[path] = f->real();
  return code;
}

inline int Delete(sqlite3_vfs*, const char* path, int sync_directory) {
  if (CrashesNow()) Crash();
  NameChanges(path);
  const int code = g_state.base->xDelete(g_state.base, path, /*syncDir=*/0);
  if (sync_directory == 0) return code;
  if (CrashesNow()) Crash();
  g_state.names.clear();
  return code;
}

}  // namespace crash_vfs

// From this call on, every database of this process is opened through the layer. Call it once per process.
inline bool InstallCrashVfs(const CrashPlan& plan) {
  using namespace crash_vfs;
  g_state.plan = plan;
  g_state.base = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs vfs = *g_state.base;
  vfs.zName = "crash";
  vfs.pNext = nullptr;
  vfs.szOsFile = static_cast<int>(sizeof(File)) + g_state.base->szOsFile;
  vfs.xOpen = Open;
  vfs.xDelete = Delete;
  return sqlite3_vfs_register(&vfs, 1) == SQLITE_OK;
}

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_PRIVACY_LEDGER_CRASH_VFS_H_
