/* The parts of Apple's <fcntl.h> and <sys/stat.h> that our branches for Apple use, for tests/apple.sh elsewhere. */
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#define F_FULLFSYNC 51
#define F_PREALLOCATE 42
#define F_ALLOCATEALL 0x4
#define F_PEOFPOSMODE 3
typedef struct fstore {
  unsigned int fst_flags;
  int fst_posmode;
  off_t fst_offset;
  off_t fst_length;
  off_t fst_bytesalloc;
} fstore_t;
#define st_mtimespec st_mtim
