// Detects that an object is used in a forked process and not in the one that made it. A child has its parent's memory,
// but not its threads and not its file locks.
//
//   const Origin origin_;                                   // a member: this process makes the object
//   if (origin_.IsForked()) return ForkedError("the log");  // a child came here
#ifndef WISP_RUNTIME_CORE_FORK_H_
#define WISP_RUNTIME_CORE_FORK_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp {

// The number of forks between the first call of WatchForks and this process. Hot paths read it: 0.3 ns.
extern std::atomic<uint32_t> num_forks;

// After the first call, num_forks increases in each child. Returns 0, or the system's error number.
int WatchForks();

// Remembers the process that made an object, as a member of it. Copies and moved objects keep the original's process.
class Origin {
 public:
  Origin();
  bool IsForked() const;

 private:
  uint32_t forks_;
  int process_;  // the process id, where the system cannot watch forks; 0 where it can
};

// kInvalidArgument: `what` must not be used across a fork.
Status ForkedError(std::string_view what);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FORK_H_
