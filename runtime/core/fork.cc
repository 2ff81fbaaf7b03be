#include "runtime/core/fork.h"

#include "runtime/core/platform.h"

namespace wisp {

std::atomic<uint32_t> num_forks = 0;

int WatchForks() {
  static const int refused = platform::WatchForks([] { num_forks.fetch_add(1, std::memory_order_relaxed); });
  return refused;
}

Origin::Origin()
    : forks_(num_forks.load(std::memory_order_relaxed)), process_(WatchForks() == 0 ? 0 : platform::GetProcess()) {}

bool Origin::IsForked() const {
  return forks_ != num_forks.load(std::memory_order_relaxed) || (process_ != 0 && process_ != platform::GetProcess());
}

Status ForkedError(std::string_view what) {
  return InvalidArgument(what, " was opened before this process was forked off; open it here again");
}

}  // namespace wisp
