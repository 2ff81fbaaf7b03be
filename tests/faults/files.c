/* Preloaded before the C library, it spoils the n-th change of a file, for tests/faults/run.
 *
 *   FAULT_FOLDER  only files below it count, not the output
 *   FAULT_TRACE   file; a line for each change, with its number, is appended to it
 *   FAULT_CLOCK   seconds since 1970 that the clock shows when the process begins; unset: the real time
 *   FAULT_AT      the number of the change to spoil, from 1; unset: nothing is spoiled
 *   FAULT_KIND    kill: the process ends before it    tear: half is written, then the process ends (others: after it)
 *                 enospc, eio: it fails, once          full: it and every later one that needs space fails with ENOSPC
 *                 short: half is written and reported
 *
 * Changes are write, pwrite, writev, rename, unlink, ftruncate, fallocate, fsync, fdatasync, and the making of a file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum Fate { kPass, kKill, kTear, kFail, kShort };
enum Need { kNeedsNothing, kNeedsRoom };

static atomic_long changes;
static atomic_int is_full;

static time_t clock_offset;

__attribute__((constructor)) static void SetClock(void) {
  const char* wanted = getenv("FAULT_CLOCK");
  struct timespec now;
  if (wanted == NULL || syscall(SYS_clock_gettime, CLOCK_REALTIME, &now) != 0) return;
  clock_offset = (time_t)strtoll(wanted, NULL, 10) - now.tv_sec;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += clock_offset;
  return result;
}

time_t time(time_t* seconds) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != NULL) *seconds = now.tv_sec;
  return now.tv_sec;
}

static int Counts(const char* path) {
  const char* folder = getenv("FAULT_FOLDER");
  return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int GetPath(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, PATH_MAX - 1);
  if (n < 0) return 0;
  path[n] = '\0';
  return 1;
}

static void Trace(long number, const char* call, const char* path) {
  const char* trace = getenv("FAULT_TRACE");
  if (trace == NULL) return;
  char line[PATH_MAX + 64];
  const int n = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  (void)!syscall(SYS_write, fd, line, (size_t)n);
  syscall(SYS_close, fd);
}

/* Decides what happens to a change of `path`; sets errno if it must fail. */
static enum Fate ChooseFate(const char* call, const char* path, enum Need need) {
  if (!Counts(path)) return kPass;
  const int before = errno;
  const long number = atomic_fetch_add(&changes, 1) + 1;
  Trace(number, call, path);
  errno = before;
  if (atomic_load(&is_full) && need == kNeedsRoom) {
    errno = ENOSPC;
    return kFail;
  }
  const char* at = getenv("FAULT_AT");
  const char* kind = getenv("FAULT_KIND");
  if (at == NULL || kind == NULL || atol(at) != number) return kPass;
  if (strcmp(kind, "kill") == 0) return kKill;
  if (strcmp(kind, "tear") == 0) return kTear;
  if (strcmp(kind, "short") == 0) return kShort;
  if (strcmp(kind, "full") == 0) {
    atomic_store(&is_full, 1);
    if (need != kNeedsRoom) return kPass;
  }
  errno = strcmp(kind, "eio") == 0 ? EIO : ENOSPC;
  return kFail;
}

static enum Fate ChooseFdFate(const char* call, int fd, enum Need need) {
  char path[PATH_MAX];
  return GetPath(fd, path) ? ChooseFate(call, path, need) : kPass;
}

static void End(void) { syscall(SYS_exit_group, 137); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Returns how many of `n` bytes to write, or -1 if the write fails or the process ends. */
#define SPOIL_WRITE(fate, n, half, whole) \
  switch (fate) {                         \
    case kPass:                           \
      return whole;                       \
    case kFail:                           \
      return -1;                          \
    case kShort:                          \
      return (n) > 1 ? (half) : (whole);  \
    case kTear:                           \
      (void)!(half);                      \
      End();                              \
      return -1;                          \
    case kKill:                           \
      End();                              \
      return -1;                          \
  }                                       \
  return -1

#define SPOIL_OTHER(fate, whole) \
  switch (fate) {                \
    case kPass:                  \
    case kShort:                 \
      return whole;              \
    case kFail:                  \
      return -1;                 \
    case kTear:                  \
      (void)!(whole);            \
      End();                     \
      return -1;                 \
    case kKill:                  \
      End();                     \
      return -1;                 \
  }                              \
  return -1

ssize_t write(int fd, const void* data, size_t n) {
  const enum Fate fate = ChooseFdFate("write", fd, kNeedsRoom);
  SPOIL_WRITE(fate, n, REAL(write)(fd, data, n / 2), REAL(write)(fd, data, n));
}
ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
  const enum Fate fate = ChooseFdFate("pwrite", fd, kNeedsRoom);
  SPOIL_WRITE(fate, n, REAL(pwrite)(fd, data, n / 2, at), REAL(pwrite)(fd, data, n, at));
}
ssize_t pwrite64(int fd, const void* data, size_t n, off64_t at) {
  const enum Fate fate = ChooseFdFate("pwrite", fd, kNeedsRoom);
  SPOIL_WRITE(fate, n, REAL(pwrite64)(fd, data, n / 2, at), REAL(pwrite64)(fd, data, n, at));
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  const enum Fate fate = ChooseFdFate("writev", fd, kNeedsRoom);
  SPOIL_WRITE(fate, count, REAL(writev)(fd, parts, count / 2), REAL(writev)(fd, parts, count));
}
int rename(const char* from, const char* to) {
  char full[PATH_MAX];
  const enum Fate fate = ChooseFate("rename", realpath(from, full), kNeedsNothing);
  SPOIL_OTHER(fate, REAL(rename)(from, to));
}
int unlink(const char* path) {
  char full[PATH_MAX];
  const enum Fate fate = ChooseFate("unlink", realpath(path, full), kNeedsNothing);
  SPOIL_OTHER(fate, REAL(unlink)(path));
}
int ftruncate(int fd, off_t size) {
  const enum Fate fate = ChooseFdFate("ftruncate", fd, kNeedsRoom);
  SPOIL_OTHER(fate, REAL(ftruncate)(fd, size));
}
int ftruncate64(int fd, off64_t size) {
  const enum Fate fate = ChooseFdFate("ftruncate", fd, kNeedsRoom);
  SPOIL_OTHER(fate, REAL(ftruncate64)(fd, size));
}
/* The error is returned, not set. */
static int SpoilAllocate(int fd, off64_t at, off64_t size, int (*real)(int, off64_t, off64_t)) {
  switch (ChooseFdFate("fallocate", fd, kNeedsRoom)) {
    case kPass:
    case kShort:
      return real(fd, at, size);
    case kFail:
      return errno;
    case kTear:
      (void)!real(fd, at, size / 2);
      End();
      return EIO;
    case kKill:
      End();
      return EIO;
  }
  return EIO;
}
int posix_fallocate(int fd, off_t at, off_t size) { return SpoilAllocate(fd, at, size, REAL(posix_fallocate64)); }
int posix_fallocate64(int fd, off64_t at, off64_t size) { return SpoilAllocate(fd, at, size, REAL(posix_fallocate64)); }
int fsync(int fd) {
  const enum Fate fate = ChooseFdFate("fsync", fd, kNeedsNothing);
  SPOIL_OTHER(fate, REAL(fsync)(fd));
}
int fdatasync(int fd) {
  const enum Fate fate = ChooseFdFate("fdatasync", fd, kNeedsNothing);
  SPOIL_OTHER(fate, REAL(fdatasync)(fd));
}

static int SpoilOpen(const char* call, const char* path, int flags, mode_t mode) {
  struct stat known;
  if ((flags & O_CREAT) && stat(path, &known) != 0) {
    char full[PATH_MAX], copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    char* slash = strrchr(copy, '/');
    if (slash != NULL) *slash = '\0';
    if (realpath(slash == NULL ? "." : copy, full) != NULL) {
      switch (ChooseFate(call, strncat(full, "/", PATH_MAX - strlen(full) - 1), kNeedsRoom)) {
        case kPass:
        case kShort:
          break;
        case kFail:
          return -1;
        case kTear:
          (void)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
          End();
          return -1;
        case kKill:
          End();
          return -1;
      }
    }
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                               \
  int name(const char* path, int flags, ...) {                   \
    mode_t mode = 0;                                             \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list rest;                                              \
      va_start(rest, flags);                                     \
      mode = (mode_t)va_arg(rest, int);                          \
      va_end(rest);                                              \
    }                                                            \
    return SpoilOpen("create", path, flags, mode);               \
  }
OPEN(open)
OPEN(open64)
