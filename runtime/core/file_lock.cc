#include "runtime/core/file_lock.h"

#include <cerrno>
#include <utility>

#include "runtime/core/platform.h"
#include "runtime/core/reason.h"

namespace wisp {
namespace {

bool IsEmpty(int fd) {
  platform::FileInfo info;
  return platform::GetInfo(fd, info) == 0 && info.size == 0;
}

}  // namespace

// The owner removes the file before it releases the lock. So whoever opened the file earlier may lock a removed file,
// and must try again.
Result<FileLock> FileLock::Take(const std::string& path, const std::string& held) {
  constexpr int kMostTimes = 100;
  for (int i = 0; i < kMostTimes; ++i) {
    const int fd = platform::Open(path, platform::kRead | platform::kWrite | platform::kCreate | platform::kNoFollow);
    const int failed = fd >= 0 && platform::LockFile(fd, platform::Lock::kTryExclusive) == 0 ? 0 : errno;
    if (failed != 0) {
      if (fd >= 0) platform::Close(fd);
      return failed == EWOULDBLOCK ? IoError(held) : IoError(path, ": the lock cannot be taken: ", Reason(failed));
    }
    FileLock lock(fd, path);
    if (lock.IsThere()) return lock;
  }
  return IoError(held);
}

bool FileLock::IsThere() const {
  platform::FileInfo ours, there;
  return platform::GetInfo(fd_, ours) == 0 && platform::GetLinkInfo(path_, there) == 0 && ours.IsSame(there);
}

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), origin_(other.origin_) {}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // A forked child has the file too, but its parent's lock must stay. A file with contents is not ours.
  if (!origin_.IsForked() && IsThere() && IsEmpty(fd_)) platform::Remove(path_);
  platform::Close(fd_);
}

}  // namespace wisp
