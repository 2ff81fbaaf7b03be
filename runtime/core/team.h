// A team of threads for fine-grained work: tasks of tens of microseconds inside one call, one fork and join after
// another.
//
//   Team team(2);
//   team.Run(2, [&](size_t task) { ... });   // called once for task = 0 and 1
//
// For coarse work, whose threads sleep between runs, use threads.h.
//
// An idle helper spins for kSpinTime, then sleeps. So a fork and join inside a call costs about a microsecond, and an
// idle team costs nothing. Whoever finishes a task takes another that nobody has begun; the caller does too. So a
// helper that sleeps or gets no processor delays others only by the task that it has begun.
//
// Run must not be called from two threads at once or from inside a task. A task must not throw. A run allocates
// nothing. In a forked process the caller does all tasks, one after another.
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
  static constexpr size_t kMaxTasks = 32;  // tasks of one run: one bit each in a word
  // About twice the time that waking a thread takes. If it were shorter, helpers would sleep between two layers;
  // longer, and they would waste power.
  static constexpr std::chrono::microseconds kSpinTime{100};

  // Uses the caller's thread and `size` - 1 more. 0 counts as 1; sizes above kMaxTasks count as kMaxTasks. With an
  // executor no thread is created. If the system has no more threads, the existing ones do the work.
  explicit Team(size_t size, Executor executor = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t size() const { return size_; }

  // Calls task(0) .. task(num_tasks - 1), each exactly once, and returns when all are done. At most kMaxTasks. The
  // caller does one of the tasks.
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
  // Does a task that nobody has begun, preferably `preferred`. False if all tasks are begun.
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
  Call call_ = {};                     // the call of the current run; written only while no task is open
  // Each has its own cache line: helpers poll the first all the time, and every thread decrements the second.
  alignas(64) std::atomic<uint32_t> open_ = 0;  // tasks that nobody has begun, one bit each
  std::atomic<bool> stop_ = false;
  std::atomic<size_t> asleep_ = 0;            // number of sleeping helpers
  alignas(64) std::atomic<size_t> left_ = 0;  // tasks that are not done
  std::atomic<bool> caller_sleeps_ = false;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  uint64_t wakes_ = 0;  // number of times that sleepers were woken
  std::vector<std::thread> threads_;
  const Origin origin_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_TEAM_H_
