// An SQLite file system that answers each request for a lock like SQLite's own does when the system says ENOLCK.
//
//   NoLocksVfs no_locks;   // the default file system as long as it lives
#ifndef WISP_TESTS_UNIT_SQLITE_NO_LOCKS_VFS_H_
#define WISP_TESTS_UNIT_SQLITE_NO_LOCKS_VFS_H_

#include <sqlite3.h>

#include <cerrno>

namespace wisp::test {

class NoLocksVfs {
 public:
  NoLocksVfs() : base_(sqlite3_vfs_find(nullptr)), vfs_(*base_) {
    current_ = this;
    vfs_.zName = "no-locks";
    vfs_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
      const int code = current_->base_->xOpen(current_->base_, name, file, flags, out);
      if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0) return code;
      current_->methods_ = *file->pMethods;
      current_->methods_.xLock = [](sqlite3_file*, int) {
        errno = ENOLCK;
        return SQLITE_BUSY;
      };
      file->pMethods = &current_->methods_;
      return code;
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~NoLocksVfs() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(base_, 1);
  }
  NoLocksVfs(const NoLocksVfs&) = delete;
  NoLocksVfs& operator=(const NoLocksVfs&) = delete;

 private:
  static inline NoLocksVfs* current_ = nullptr;
  sqlite3_vfs* base_;
  sqlite3_vfs vfs_;
  sqlite3_io_methods methods_{};
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_SQLITE_NO_LOCKS_VFS_H_
