// An SQLite file system whose disk is full while a test says so: it refuses writes, and nothing else.
//
//   FullDiskVfs disk([&] { return full; });   // the default file system as long as it lives
#ifndef WISP_TESTS_UNIT_PRIVACY_LEDGER_FULL_DISK_VFS_H_
#define WISP_TESTS_UNIT_PRIVACY_LEDGER_FULL_DISK_VFS_H_

#include <sqlite3.h>

#include <functional>
#include <utility>

namespace wisp::test {

class FullDiskVfs {
 public:
  explicit FullDiskVfs(std::function<bool()> full)
      : full_(std::move(full)), base_(sqlite3_vfs_find(nullptr)), vfs_(*base_) {
    current_ = this;
    vfs_.zName = "full-disk";
    vfs_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
      const int code = current_->base_->xOpen(current_->base_, name, file, flags, out);
      if (code != SQLITE_OK || file->pMethods == nullptr) return code;
      // All files of one kind share their methods, so each kind gets one copy, whose writes ask first.
      for (auto& [original, copy] : current_->methods_) {
        if (original == nullptr) original = file->pMethods, copy = *original, copy.xWrite = Write;
        if (original != file->pMethods) continue;
        file->pMethods = &copy;
        break;
      }
      return code;
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FullDiskVfs() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(base_, 1);
  }
  FullDiskVfs(const FullDiskVfs&) = delete;
  FullDiskVfs& operator=(const FullDiskVfs&) = delete;

  int refused() const { return refused_; }

 private:
  static int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    if (current_->full_()) return ++current_->refused_, SQLITE_FULL;
    // The system's files of every kind write in the same way. The kind is not known here: the library's door puts its
    // own methods before ours.
    return current_->methods_[0].first->xWrite(file, bytes, size, offset);
  }

  static inline FullDiskVfs* current_ = nullptr;
  std::function<bool()> full_;
  sqlite3_vfs* base_;
  sqlite3_vfs vfs_;
  std::pair<const sqlite3_io_methods*, sqlite3_io_methods> methods_[8] = {};
  int refused_ = 0;
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_PRIVACY_LEDGER_FULL_DISK_VFS_H_
