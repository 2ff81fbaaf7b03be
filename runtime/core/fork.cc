#include "runtime/core/fork.h"

#include <unistd.h>

#if !defined(__wasm__)
#include <pthread.h>
#endif

namespace wisp {

std::atomic<uint32_t> num_forks = 0;

int WatchForks() {
#if defined(__wasm__)
  return 0;  // a web page cannot fork
#else
  static const int refused =
      pthread_atfork(nullptr, nullptr, [] { num_forks.fetch_add(1, std::memory_order_relaxed); });
  return refused;
#endif
}

Origin::Origin()
    : forks_(num_forks.load(std::memory_order_relaxed)), process_(WatchForks() == 0 ? 0 : static_cast<int>(getpid())) {}

bool Origin::IsForked() const {
  return forks_ != num_forks.load(std::memory_order_relaxed) || (process_ != 0 && process_ != getpid());
}

Status ForkedError(std::string_view what) {
  return InvalidArgument(what, " was opened before this process was forked off; open it here again");
}

}  // namespace wisp
