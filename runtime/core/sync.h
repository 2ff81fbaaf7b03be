// Syncs files that must last: when the call returns, the bytes are on the disk and not only in its cache. POSIX.
//
//   if (SyncToDisk(fd) != 0) return IoError(...);   // errno has the reason
//
// Code that must record a charge before it is spent syncs through this function only; tests/structure.sh rejects other
// calls.
#ifndef WISP_RUNTIME_CORE_SYNC_H_
#define WISP_RUNTIME_CORE_SYNC_H_

#include <unistd.h>
#if defined(__APPLE__)
#include <fcntl.h>
#endif

namespace wisp {

// fsync(2) for files and folders. On Apple's systems fsync leaves data in the drive's cache; F_FULLFSYNC does not. Some
// file systems, such as network ones, refuse F_FULLFSYNC, so fsync is used there. SQLite does the same (PRAGMA
// fullfsync).
inline int SyncToDisk(int fd) {
#if defined(__APPLE__)
  if (fcntl(fd, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(fd);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_SYNC_H_
