// Simulates a full disk for code that writes a large file.
#ifndef WISP_TESTS_UNIT_CORE_FILE_SIZE_LIMIT_H_
#define WISP_TESTS_UNIT_CORE_FILE_SIZE_LIMIT_H_

#if !defined(_WIN32)
#include <sys/resource.h>

#include <csignal>
#endif
#include <cstdint>

namespace wisp::test {

#if defined(_WIN32)  // which has no such limit: tests/windows/left_out.txt
struct FileSizeLimit {
  explicit FileSizeLimit(uint64_t) {}
};
#else
// While this object lives, no file of this process may grow beyond this many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};
#endif

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_CORE_FILE_SIZE_LIMIT_H_
