// The library's needs of an operating system: files, locks, random bytes, the process. One interface for POSIX
// (platform_posix.cc) and 64-bit Windows (platform_windows.cc, process_windows.cc); no other file of the library, its C
// interface or the program includes a header of a system (tests/structure.sh).
//
//   const int file = platform::Open(path, platform::kRead | platform::kNoWait);
//   if (file < 0) return IoError(path, ": cannot be opened: ", Reason(errno));
//
// Functions that return int return 0, a file or a size, and -1 with errno on failure, also on Windows. None is
// interrupted by a signal. Paths are UTF-8 on Windows, and the system's bytes elsewhere.
#ifndef WISP_RUNTIME_CORE_PLATFORM_H_
#define WISP_RUNTIME_CORE_PLATFORM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace wisp::platform {

// How a file is opened. Programs that this process executes do not inherit it.
enum OpenFlag : unsigned {
  kRead = 1,
  kWrite = 2,
  kCreate = 4,     // makes an empty file if there is none; needs kWrite
  kNew = 8,        // beside kCreate: fails with EEXIST if something is there
  kNoFollow = 16,  // fails if the path is a symbolic link
  kNoWait = 32,    // does not wait for the other end of a pipe
  kFolder = 64,    // the path must be a folder
};

// Who may use a new file: only its owner, or whom the umask allows. On Windows a file of its owner admits this user,
// the system and administrators; a shared one inherits from its folder.
enum class NewFile { kOwner, kShared };

// A file is a descriptor on POSIX. On Windows it is the low half of a HANDLE: the system uses no more bits of one.
int Open(const std::string& path, unsigned flags, NewFile access = NewFile::kOwner);
int Close(int file);  // releases the locks of this file too

// Bytes moved, 0 at the end of the file, or -1.
int64_t Read(int file, void* to, size_t size);
int64_t ReadAt(int file, void* to, size_t size, uint64_t at);
int64_t Write(int file, const void* from, size_t size);
int Truncate(int file, uint64_t size);

// Reserves disk space for a file of `size` bytes. Returns an error number, or 0. Apple's systems and Windows reserve
// space behind the file's end; elsewhere the file grows.
int Reserve(int file, uint64_t size);

// When it returns 0, the bytes of the file, or the names in the folder, are on the disk and not only in its cache. Code
// that must record a charge before it is spent syncs through this function. On Windows Rename writes the name
// too, and this does nothing for a folder.
int Sync(int file);
#if defined(_WIN32)
inline constexpr bool kSyncsFolders = false;
#else
inline constexpr bool kSyncsFolders = true;
#endif

enum class FileType { kRegular, kFolder, kLink, kOther };
struct FileInfo {
  FileType type = FileType::kOther;
  uint64_t device = 0, number = 0;  // together they identify a file
  uint64_t size = 0, num_names = 0;
  uint64_t owner = 0;             // always 0 on Windows, where the folder's permissions decide who can plant files
  bool others_can_write = false;  // by the bits of group and others; false on Windows
  bool others_can_open = false;
  int64_t changed_ns = 0;  // when the content changed
  bool IsSame(const FileInfo& other) const { return device == other.device && number == other.number; }
};
int GetInfo(const std::string& path, FileInfo& info);      // follows links
int GetLinkInfo(const std::string& path, FileInfo& info);  // does not
int GetInfo(int file, FileInfo& info);

// Locks whole files between processes, and between files of one process. Closing the file or ending the process
// releases the lock. kTry fails with EWOULDBLOCK if another has it.
enum class Lock { kTryShared, kTryExclusive, kExclusive };
int LockFile(int file, Lock lock);

// Replaces `to` in one step: readers see the old file or the new one. Who has the old one open keeps it. On Windows the
// new name is on the disk when it returns.
int Rename(const std::string& from, const std::string& to);
int Remove(const std::string& path);  // a file; not a folder

bool IsThere(const std::string& path);  // false also for a link to nothing
bool CanRead(const std::string& path);
bool CanWrite(const std::string& path);
bool CanWriteIn(const std::string& folder);  // and look names up in it

// Only the owner can then read and write. Windows has this from Open, and these do nothing there.
int MakePrivate(const std::string& path);
int MakePrivate(int file);

std::string ReadLink(const std::string& path);      // empty if it is no link
std::string FindRealPath(const std::string& path);  // without links, from the root; empty if nothing is there
bool IsAbsolute(const std::string& path);  // names one file, whatever the folder and the drive of the process are
// The path of the same file from the root on, links kept; empty if the process's folder is gone.
std::string MakeAbsolute(const std::string& path);

// Where the name begins in a path: behind its last separator. Windows has two separators, '/' and '\'.
size_t FindName(std::string_view path);
std::string GetFolder(const std::string& path);  // "." if the path names none

// Makes a folder that only its owner can use, and returns its path: `begin` and kNewFolderEnd characters that no other
// has. Empty on failure.
inline constexpr size_t kNewFolderEnd = 6;
std::string MakeNewFolder(const std::string& begin);
int RemoveFolder(const std::string& path);  // an empty one

// Calls `use` with each name in a folder. False if it cannot be listed.
bool ForEachName(const std::string& folder, const std::function<void(const std::string& name)>& use);

// Maps bytes of a file for reading. `offset` is a multiple of GetMapUnit(). Null with errno on failure. Windows refuses
// to replace a file that is mapped, so there the bytes are read into memory of this process instead.
const std::byte* Map(int file, uint64_t offset, size_t size);
void Unmap(const std::byte* bytes, size_t size);
uint64_t GetMapUnit();

// Fills `size` bytes, at most 256, with random bytes for keys and identities; 0 on success, like getentropy(3).
int GetEntropy(void* bytes, size_t size);

int GetProcess();    // the id of this process
uint64_t GetUser();  // the owner that FileInfo has for this user's files
void Sleep(int microseconds);

// Calls `in_child` in each child of a fork from then on. Returns an error number, or 0. Windows and web pages have no
// forks.
int WatchForks(void (*in_child)());

#if defined(_WIN32)
// An object for each thread, made when the thread first asks and deleted when it ends: in place of thread_local for
// types with destructors, which mingw-w64 runs after it has freed the memory of the object.
unsigned MakeThreadSlot(void (*release)(void* object));
void FreeThreadSlot(unsigned slot);
void* GetInSlot(unsigned slot);
void SetInSlot(unsigned slot, void* object);
template <class T>
T& PerThread() {
  struct Slot {
    const unsigned number = MakeThreadSlot([](void* object) { delete static_cast<T*>(object); });
    ~Slot() { FreeThreadSlot(number); }
  };
  static const Slot slot;
  if (void* object = GetInSlot(slot.number)) return *static_cast<T*>(object);
  T* const object = new T();
  SetInSlot(slot.number, object);
  return *object;
}
#endif

}  // namespace wisp::platform

#endif  // WISP_RUNTIME_CORE_PLATFORM_H_
