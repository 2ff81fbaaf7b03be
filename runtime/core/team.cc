#include "runtime/core/team.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

namespace wisp {
namespace {

// Tells the processor that the thread is waiting: it uses less power and leaves more to a thread on the same core.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

constexpr int kPausesBetweenLooksAtTheClock = 16;

}  // namespace

// With more threads than processors, a thread that spins for work would keep another from working.
Team::Team(size_t size, Executor executor)
    : size_(std::clamp<size_t>(size, 1, kMaxTasks)),
      spins_(size_ <= std::max(1u, std::thread::hardware_concurrency())),
      executor_(std::move(executor)) {
  if (executor_) {
    share_ = [this](size_t index) { DoOne(index); };
    return;
  }
  threads_.reserve(size_ - 1);  // after this, only starting a thread can fail
  try {
    for (size_t thread = 1; thread < size_; ++thread) threads_.emplace_back([this, thread] { Help(thread); });
  } catch (const std::exception&) {
    // The system has no more threads. The existing ones do all tasks.
  }
}

Team::~Team() {
  if (origin_.IsForked()) {
    AbandonThreads(threads_, mutex_, start_, done_);
    return;
  }
  stop_ = true;
  { std::lock_guard lock(mutex_); }  // a helper that missed `stop` is asleep by now and will be woken
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// One side opens tasks and then looks for sleepers. The other counts itself as a sleeper and then looks for tasks. Both
// orders are sequentially consistent, so at least one side sees the other. The last task and the sleeping caller meet
// likewise.
void Team::RunAll(size_t num_tasks, const Call& call) {
  if (num_tasks == 0) return;
  if (num_tasks == 1 || origin_.IsForked()) {
    for (size_t task = 0; task < num_tasks; ++task) call.function(call.task, task);
    return;
  }
  call_ = call;
  left_.store(num_tasks, std::memory_order_relaxed);
  open_.store(static_cast<uint32_t>((uint64_t{1} << num_tasks) - 1));
  if (executor_) {
    executor_(num_tasks, share_);
  } else if (asleep_.load() > 0) {
    WakeOthers(num_tasks - 1);
  }
  while (DoOne(0)) {}
  WaitForOthers();
}

// Whoever clears a task's bit does the task, whichever run it belongs to. `call_` is read after the bit is cleared, and
// it stays valid until all tasks of that run are done.
bool Team::DoOne(size_t preferred) noexcept {
  uint32_t open = open_.load();
  while (open != 0) {
    const bool free = preferred < kMaxTasks && (open >> preferred & 1) != 0;
    const size_t task = free ? preferred : static_cast<size_t>(std::countr_zero(open));
    if (!open_.compare_exchange_weak(open, open & ~(uint32_t{1} << task))) continue;
    call_.function(call_.task, task);
    if (left_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
      { std::lock_guard lock(mutex_); }
      done_.notify_one();
    }
    return true;
  }
  return false;
}

void Team::WaitForOthers() {
  const auto done = [this] { return left_.load() == 0; };
  if (Spin(done)) return;
  caller_sleeps_ = true;
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, done);
  }
  caller_sleeps_ = false;
}

void Team::Help(size_t thread) {
  while (true) {
    if (!Spin([this] { return open_.load() != 0 || stop_.load(); })) Sleep();
    if (stop_.load()) return;
    DoOne(thread);
  }
}

void Team::WakeOthers(size_t how_many) {
  {
    std::lock_guard lock(mutex_);
    ++wakes_;
  }
  for (size_t i = 0; i < how_many; ++i) start_.notify_one();
}

// A helper that wakes after others took all tasks stays awake, because the next run of the same call follows soon.
void Team::Sleep() {
  std::unique_lock lock(mutex_);
  ++asleep_;
  start_.wait(lock, [this, seen = wakes_] { return stop_.load() || open_.load() != 0 || wakes_ != seen; });
  --asleep_;
}

template <class Ready>
bool Team::Spin(const Ready& ready) const {
  if (ready()) return true;
  if (!spins_) return false;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesBetweenLooksAtTheClock; ++i) {
      Pause();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace wisp
