// A fixed team of workers for coarse work: one task each, then wait for all.
//
//   Workers workers(2);
//   workers.Run([&](size_t worker) { ... });   // called once for worker = 0 .. size() - 1
//
// The caller is worker 0; a team of 1 creates no thread. Workers sleep between runs (no spinning).
// Run must not be called from two threads at once, nor from inside a task. A process that was forked off has none of
// the threads: there the caller does all tasks, one after the other.
//
// An app that has a pool of its own lends it: then no thread is created here, and the app's threads do all work.
//
//   Workers workers(2, [&](size_t num_tasks, const std::function<void(size_t)>& task) {
//     for (size_t i = 0; i < num_tasks; ++i) pool.Add([&task, i] { task(i); });
//     pool.Wait();
//   });
#ifndef WISP_RUNTIME_CORE_THREADS_H_
#define WISP_RUNTIME_CORE_THREADS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/core/fork.h"
#include "runtime/core/status.h"

namespace wisp {

// Calls task(0) .. task(num_tasks - 1), each once, on any threads, at once or one after the other, and returns when all
// are done. Must not throw. `task` lives as long as whoever was given the executor: a thread that comes late finds
// nothing to do.
using Executor = std::function<void(size_t num_tasks, const std::function<void(size_t)>& task)>;

class Workers {
 public:
  // `size` 0 counts as 1. With an executor no thread is created. Where the system has no more threads, the caller's
  // does their tasks: slower, the same bits.
  explicit Workers(size_t size, Executor executor = {});
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  size_t size() const { return size_; }
  // Every worker's task is done exactly once, whatever an executor does: the noise of a private step depends on it.
  // What the executor asks for twice is not done again, and what it leaves out the caller does.
  void Run(const std::function<void(size_t)>& task);

 private:
  void Loop(size_t worker);
  void RunOnExecutor();
  void DoShare(size_t worker) noexcept;

  size_t size_;
  Executor executor_;
  std::function<void(size_t)> share_;           // DoShare as a function, made once: a run allocates nothing
  std::unique_ptr<std::atomic<bool>[]> taken_;  // executor: whether the worker's task of this run was begun
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(size_t)>* task_ = nullptr;
  uint64_t generation_ = 0;
  size_t running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
  const Origin origin_;
};

// For a team's destructor in a process that was forked off: leaves threads behind that are not there, and what they
// wait for. Joining them, and destroying a condition that they wait for, would never return.
void LeaveBehind(std::vector<std::thread>& threads, std::mutex& mutex, std::condition_variable& start,
                 std::condition_variable& done);

// min(4, processors): more buys little on phones and takes the app's cores away.
size_t DefaultThreads();

// What any options' num_threads may be. Buffers are made for each thread: without a limit a wrong number takes all
// memory.
inline constexpr size_t kMaxThreads = 1024;
// kInvalidArgument above kMaxThreads. 0 is allowed: DefaultThreads().
Status CheckThreads(size_t num_threads);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_THREADS_H_
