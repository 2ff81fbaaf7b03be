// Bytes of a file that have to last: on the disk, not in its cache, when the call returns. POSIX.
//
//   if (SyncToDisk(fd) != 0) return IoError(...);   // errno has the reason
//
// Whoever promises that something is charged before it is spent asks here, and nowhere else: tests/structure.sh looks
// for other calls.
#ifndef WISP_RUNTIME_CORE_SYNC_H_
#define WISP_RUNTIME_CORE_SYNC_H_

#include <unistd.h>
#if defined(__APPLE__)
#include <fcntl.h>
#endif

namespace wisp {

// As fsync(2), of files and folders. On Apple's systems fsync leaves data in the drive's cache and F_FULLFSYNC does
// not; file systems that do not know it, of a network say, refuse it, and fsync is then all that they have. SQLite does
// the same (PRAGMA fullfsync).
inline int SyncToDisk(int fd) {
#if defined(__APPLE__)
  if (fcntl(fd, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(fd);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_SYNC_H_
