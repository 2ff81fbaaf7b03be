#include "runtime/core/platform.h"
#if !defined(_WIN32)

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(__wasm__)
#include <pthread.h>
#endif
#if defined(__APPLE__)
#include <CommonCrypto/CommonRandom.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace wisp::platform {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR, kByUmask = 0666;

template <class Call>
auto Retrying(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int Keep(const struct stat& from, FileInfo& to) {
  to.type = S_ISREG(from.st_mode)   ? FileType::kRegular
            : S_ISDIR(from.st_mode) ? FileType::kFolder
            : S_ISLNK(from.st_mode) ? FileType::kLink
                                    : FileType::kOther;
  to.device = static_cast<uint64_t>(from.st_dev);
  to.number = static_cast<uint64_t>(from.st_ino);
  to.size = static_cast<uint64_t>(from.st_size);
  to.num_names = static_cast<uint64_t>(from.st_nlink);
  to.owner = from.st_uid;
  to.others_can_write = (from.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  to.others_can_open = (from.st_mode & (S_IRWXG | S_IRWXO)) != 0;
#if defined(__APPLE__)
  const timespec& changed = from.st_mtimespec;
#else
  const timespec& changed = from.st_mtim;
#endif
  to.changed_ns =
      static_cast<int64_t>(static_cast<uint64_t>(changed.tv_sec) * 1000000000 + static_cast<uint64_t>(changed.tv_nsec));
  return 0;
}

}  // namespace

int Open(const std::string& path, unsigned flags, NewFile access) {
  int how = O_CLOEXEC | ((flags & kWrite) == 0 ? O_RDONLY : (flags & kRead) == 0 ? O_WRONLY : O_RDWR);
  for (const auto& [flag, bit] :
       {std::pair(kCreate, O_CREAT), std::pair(kNew, O_EXCL), std::pair(kNoFollow, O_NOFOLLOW),
        std::pair(kNoWait, O_NONBLOCK), std::pair(kFolder, O_DIRECTORY)}) {
    if ((flags & flag) != 0) how |= bit;
  }
  const mode_t mode = access == NewFile::kOwner ? kOwnerOnly : kByUmask;
  return Retrying([&] { return open(path.c_str(), how, mode); });
}

// Not tried again: Linux has closed the file even where it reports an interruption.
int Close(int file) { return close(file); }

int64_t Read(int file, void* to, size_t size) {
  return Retrying([&] { return read(file, to, size); });
}

int64_t ReadAt(int file, void* to, size_t size, uint64_t at) {
  return Retrying([&] { return pread(file, to, size, static_cast<off_t>(at)); });
}

int64_t Write(int file, const void* from, size_t size) {
  return Retrying([&] { return write(file, from, size); });
}

int Truncate(int file, uint64_t size) {
  return Retrying([&] { return ftruncate(file, static_cast<off_t>(size)); });
}

int Reserve(int file, uint64_t size) {
#if defined(__APPLE__)
  fstore_t space = {};
  space.fst_flags = F_ALLOCATEALL;
  space.fst_posmode = F_PEOFPOSMODE;
  space.fst_length = static_cast<off_t>(size);
  if (Retrying([&] { return fcntl(file, F_PREALLOCATE, &space); }) == 0) return 0;
  if (errno == ENOTSUP) errno = EOPNOTSUPP;  // these are two different numbers on Apple's systems
  return errno;
#else
  int error;
  do error = posix_fallocate(file, 0, static_cast<off_t>(size));
  while (error == EINTR);
  return error;
#endif
}

// fsync(2) for files and folders. On Apple's systems fsync leaves data in the drive's cache; F_FULLFSYNC does not. Some
// file systems, such as network ones, refuse F_FULLFSYNC, so fsync is used there. SQLite does the same (PRAGMA
// fullfsync).
int Sync(int file) {
#if defined(__APPLE__)
  if (Retrying([&] { return fcntl(file, F_FULLFSYNC); }) != -1) return 0;
#endif
  return Retrying([&] { return fsync(file); });
}

int GetInfo(const std::string& path, FileInfo& info) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 ? Keep(found, info) : -1;
}

int GetLinkInfo(const std::string& path, FileInfo& info) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0 ? Keep(found, info) : -1;
}

int GetInfo(int file, FileInfo& info) {
  struct stat found;
  return fstat(file, &found) == 0 ? Keep(found, info) : -1;
}

int LockFile(int file, Lock lock) {
  const int how = lock == Lock::kTryShared      ? LOCK_SH | LOCK_NB
                  : lock == Lock::kTryExclusive ? LOCK_EX | LOCK_NB
                                                : LOCK_EX;
  return Retrying([&] { return flock(file, how); });
}

int Rename(const std::string& from, const std::string& to) { return rename(from.c_str(), to.c_str()); }

int Remove(const std::string& path) { return unlink(path.c_str()); }

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool CanRead(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

bool CanWrite(const std::string& path) { return access(path.c_str(), W_OK) == 0; }

bool CanWriteIn(const std::string& folder) { return access(folder.c_str(), W_OK | X_OK) == 0; }

int MakePrivate(const std::string& path) { return chmod(path.c_str(), kOwnerOnly); }

int MakePrivate(int file) { return fchmod(file, kOwnerOnly); }

std::string ReadLink(const std::string& path) {
  char target[4096];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length <= 0 ? std::string() : std::string(target, static_cast<size_t>(length));
}

std::string FindRealPath(const std::string& path) {
  char* const real = realpath(path.c_str(), nullptr);
  std::string found = real == nullptr ? "" : real;
  std::free(real);
  return found;
}

bool IsAbsolute(const std::string& path) { return path.starts_with('/'); }

std::string MakeAbsolute(const std::string& path) {
  if (IsAbsolute(path)) return path;
  const std::string folder = FindRealPath(".");
  return folder.empty() ? "" : folder + "/" + path;
}

size_t FindName(std::string_view path) { return path.rfind('/') + 1; }  // 0 if there is no separator

std::string MakeNewFolder(const std::string& begin) {
  std::string path = begin + "XXXXXX";
  static_assert(kNewFolderEnd == sizeof "XXXXXX" - 1);
  return mkdtemp(path.data()) == nullptr ? std::string() : path;
}

int RemoveFolder(const std::string& path) { return rmdir(path.c_str()); }

std::string GetFolder(const std::string& path) {
  const size_t name_at = FindName(path);
  return name_at == 0 ? "." : path.substr(0, name_at == 1 ? 1 : name_at - 1);
}

bool ForEachName(const std::string& folder, const std::function<void(const std::string& name)>& use) {
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return false;
  while (const dirent* entry = readdir(listing)) use(entry->d_name);
  closedir(listing);
  return true;
}

const std::byte* Map(int file, uint64_t offset, size_t size) {
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(offset));
  return bytes == MAP_FAILED ? nullptr : static_cast<const std::byte*>(bytes);
}

void Unmap(const std::byte* bytes, size_t size) { munmap(const_cast<std::byte*>(bytes), size); }

uint64_t GetMapUnit() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// Apple's systems use CommonCrypto: getentropy is only in the headers of macOS, and the App Store refuses apps for iOS
// that call it.
int GetEntropy(void* bytes, size_t size) {
#if defined(__APPLE__)
  return CCRandomGenerateBytes(bytes, size) == kCCSuccess ? 0 : -1;
#else
  return getentropy(bytes, size);
#endif
}

int GetProcess() { return static_cast<int>(getpid()); }

uint64_t GetUser() { return geteuid(); }

void Sleep(int microseconds) { usleep(static_cast<useconds_t>(microseconds)); }

int WatchForks(void (*in_child)()) {
#if defined(__wasm__)
  (void)in_child;
  return 0;
#else
  return pthread_atfork(nullptr, nullptr, in_child);
#endif
}

}  // namespace wisp::platform

#endif  // !defined(_WIN32)
