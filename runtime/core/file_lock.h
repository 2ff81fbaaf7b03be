// A lock on a file of its own, so that one process works at a time. The destructor releases it, and so does the end of
// the process, whatever ends it. The file stays, empty. POSIX.
//
//   WISP_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take("mine.wisp.lock", "another run writes mine.wisp"));
#ifndef WISP_RUNTIME_CORE_FILE_LOCK_H_
#define WISP_RUNTIME_CORE_FILE_LOCK_H_

#include <string>

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
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FILE_LOCK_H_
