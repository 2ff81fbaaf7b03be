#include "runtime/core/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/core/reason.h"

namespace wisp {

Result<FileLock> FileLock::Take(const std::string& path, const std::string& held) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  FileLock lock(fd);
  int failed = fd < 0 ? -1 : 0;
  while (failed == 0 && (failed = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) failed = 0;
  if (failed == 0) return lock;
  if (errno == EWOULDBLOCK) return IoError(held);
  return IoError(path, ": the lock cannot be taken: ", Reason(errno));
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace wisp
