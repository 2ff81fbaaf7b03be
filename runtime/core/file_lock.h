// One process at a time: a lock on a file of its own, given up by the destructor and by the end of the process,
// whatever ends it. The file stays, empty. POSIX.
//
//   WISP_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take("mine.wisp.lock", "another run writes mine.wisp"));
#ifndef WISP_RUNTIME_CORE_FILE_LOCK_H_
#define WISP_RUNTIME_CORE_FILE_LOCK_H_

#include <string>

#include "runtime/core/status.h"

namespace wisp {

class FileLock {
 public:
  // Does not wait. kIo: `held`, where somebody has it, another handle of this process among them; or why it cannot be
  // taken.
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
