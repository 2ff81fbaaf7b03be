#include "runtime/core/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/core/reason.h"

namespace wisp {
namespace {

bool IsEmpty(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && info.st_size == 0;
}

// Returns 0 or the error number.
int Lock(int fd) {
  int failed = 0;
  while ((failed = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {}
  return failed == 0 ? 0 : errno;
}

}  // namespace

// The owner removes the file before it releases the lock. So whoever opened the file earlier may lock a removed file,
// and must try again.
Result<FileLock> FileLock::Take(const std::string& path, const std::string& held) {
  constexpr int kMostTimes = 100;
  for (int i = 0; i < kMostTimes; ++i) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int failed = fd < 0 ? errno : Lock(fd);
    if (failed != 0) {
      if (fd >= 0) close(fd);
      return failed == EWOULDBLOCK ? IoError(held) : IoError(path, ": the lock cannot be taken: ", Reason(failed));
    }
    FileLock lock(fd, path);
    if (lock.IsThere()) return lock;
  }
  return IoError(held);
}

bool FileLock::IsThere() const {
  struct stat ours, there;
  return fstat(fd_, &ours) == 0 && lstat(path_.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), origin_(other.origin_) {}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // A forked child has the file too, but its parent's lock must stay. A file with contents is not ours.
  if (!origin_.IsForked() && IsThere() && IsEmpty(fd_)) unlink(path_.c_str());
  close(fd_);
}

}  // namespace wisp
