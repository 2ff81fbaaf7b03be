// A lock on a file of its own, so that one process works at a time. The destructor releases it, and so does the end of
// the process, whatever ends it. The destructor removes the file, which is empty; a file with contents stays. If a
// killed process left its file, the next lock uses it.
//
//   WISP_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take("mine.wisp.lock", "another run writes mine.wisp"));
#ifndef WISP_RUNTIME_CORE_FILE_LOCK_H_
#define WISP_RUNTIME_CORE_FILE_LOCK_H_

#include <string>
#include <utility>

#include "runtime/core/fork.h"
#include "runtime/core/status.h"

namespace wisp {

class FileLock {
 public:
  // Does not wait. kIo: the lock is taken, by another process or another handle of this one (the message is `held`), or
  // it cannot be taken (the message says why).
  static Result<FileLock> Take(const std::string& path, const std::string& held);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  FileLock(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  // True if the locked file is still the one at the path.
  bool IsThere() const;

  int fd_ = -1;
  std::string path_;
  Origin origin_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FILE_LOCK_H_
