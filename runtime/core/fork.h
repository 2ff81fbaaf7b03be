// Tells a process that was forked off from the one that made something. A child has its parent's memory, but none of
// its threads, and none of its locks on files.
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

// How often a fork led to this process since WatchForks was first called. Read on hot paths: 0.3 ns.
extern std::atomic<uint32_t> num_forks;

// From the first call on num_forks grows in each child. 0, or the error number for which the system refused.
int WatchForks();

// The process that made what holds this. Copies and moved ones keep it.
class Origin {
 public:
  Origin();
  bool IsForked() const;

 private:
  uint32_t forks_;
  int process_;  // where the system refused to watch forks; 0: it watches
};

// kInvalidArgument: `what`, which must not be used across a fork.
Status ForkedError(std::string_view what);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FORK_H_
