// A team of threads for fine work: the parts of one call, tens of microseconds each, one fork and join after the other.
//
//   Team team(2);
//   team.Run(2, [&](size_t task) { ... });   // called once for task = 0 and 1
//
// What it leaves to others: coarse work, whose threads sleep between two runs (threads.h).
//
// A helper that has nothing to do looks for work for kSpinTime, then it sleeps: a fork and join inside a call costs
// about a microsecond, and an idle team nothing. Who has done a task takes another that nobody has begun, the caller
// too. So a helper that sleeps, or that the system has no processor for, delays no one by more than what it has begun.
//
// Run must not be called from two threads at once, nor from inside a task. A task must not throw. A run allocates
// nothing. In a process that was forked off the caller does all tasks, one after the other.
#ifndef WISP_RUNTIME_CORE_TEAM_H_
#define WISP_RUNTIME_CORE_TEAM_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/core/threads.h"

namespace wisp {

class Team {
 public:
  static constexpr size_t kMaxTasks = 32;  // of one run: bits of a word
  // About twice what waking a thread takes: shorter, and helpers sleep between two layers; longer, and they take power
  // for nothing.
  static constexpr std::chrono::microseconds kSpinTime{100};

  // The caller's thread and size - 1 more; `size` 0 counts as 1, more than kMaxTasks as kMaxTasks. With an executor no
  // thread is created. Where the system has no more threads, those that there are do the work.
  explicit Team(size_t size, Executor executor = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t size() const { return size_; }

  // Calls task(0) .. task(num_tasks - 1), each exactly once, and returns when all are done; up to kMaxTasks. One task
  // is the caller's.
  template <class Task>
  void Run(size_t num_tasks, const Task& task) {
    RunAll(num_tasks, {[](const void* t, size_t index) { (*static_cast<const Task*>(t))(index); }, &task});
  }

 private:
  struct Call {
    void (*function)(const void* task, size_t index);
    const void* task;
  };
  void RunAll(size_t num_tasks, const Call& call);
  // Does a task that nobody has begun, the preferred one if it is such; false where there is none.
  bool DoOne(size_t preferred) noexcept;
  void WaitForOthers();
  void Help(size_t thread);
  void WakeOthers(size_t how_many);
  void Sleep();
  template <class Ready>
  bool Spin(const Ready& ready) const;

  size_t size_;
  bool spins_;
  Executor executor_;
  std::function<void(size_t)> share_;  // DoOne as a function, made once
  Call call_ = {};                     // of the run; written while nothing is open
  // On lines of their own: helpers look at the first without pause, and everybody counts down the second.
  alignas(64) std::atomic<uint32_t> open_ = 0;  // tasks that nobody has begun, a bit each
  std::atomic<bool> stop_ = false;
  std::atomic<size_t> asleep_ = 0;            // helpers
  alignas(64) std::atomic<size_t> left_ = 0;  // tasks that are not done
  std::atomic<bool> caller_sleeps_ = false;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  uint64_t wakes_ = 0;  // how often sleepers were woken
  std::vector<std::thread> threads_;
  const Origin origin_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_TEAM_H_
