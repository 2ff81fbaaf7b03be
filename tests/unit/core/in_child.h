// Runs work in a forked process and returns what it says and how it ends, for tests of what a child may do.
#ifndef WISP_TESTS_UNIT_CORE_IN_CHILD_H_
#define WISP_TESTS_UNIT_CORE_IN_CHILD_H_

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <functional>
#include <string>

namespace wisp::test {

#if defined(_WIN32)  // which has no children of this kind: tests/windows/left_out.txt
inline std::string InChild(const std::function<std::string()>&) { return "Windows has no fork"; }
inline int RunChild(const std::function<int()>&) { return -1; }
#else

// Returns the sentence that `work` gives in a child, or says that the child did not end by itself. A child that waits
// forever is ended.
inline std::string InChild(const std::function<std::string()>& work) {
  constexpr unsigned kSeconds = 60;
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const std::string said = work();
    const bool written = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char bytes[512];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;) said.append(bytes, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? said : "ended with " + std::to_string(WEXITSTATUS(status));
}

// Runs `body` in a child process and returns its exit status in the form of waitpid. For tests of limits, user ids and
// crashes.
inline int RunChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
#endif

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_CORE_IN_CHILD_H_
