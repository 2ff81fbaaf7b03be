// Simulates a machine of which one snapshot was restored twice: a copy of this process that notices no fork().
#ifndef WISP_TESTS_UNIT_CORE_UNSEEN_COPY_H_
#define WISP_TESTS_UNIT_CORE_UNSEEN_COPY_H_

#ifdef __linux__

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace wisp::test {

inline pid_t SplitUnseen() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// Returns the numbers that `act` returns in such a copy; empty if no copy can be made. This process does not change.
template <class Act>
auto InAnUnseenCopy(const Act& act) -> decltype(act()) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = SplitUnseen();
  if (child == 0) {
    for (const auto& number : act()) {
      if (write(ends[1], &number, sizeof number) != sizeof number) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  decltype(act()) numbers;
  for (typename decltype(numbers)::value_type number; read(ends[0], &number, sizeof number) == sizeof number;)
    numbers.push_back(number);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return numbers;
}

}  // namespace wisp::test

#endif
#endif  // WISP_TESTS_UNIT_CORE_UNSEEN_COPY_H_
