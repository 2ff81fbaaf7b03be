// A fixed team of workers for coarse work: one task for each, then the caller waits for all.
//
//   Workers workers(2);
//   workers.Run([&](size_t worker) { ... });   // called once for worker = 0 .. size() - 1
//
// The caller is worker 0; a team of 1 creates no thread. Workers sleep between runs (no spinning). Run must not be
// called from two threads at once or from inside a task. A forked process has none of the threads: there the caller
// does all tasks, one after another.
//
// An app can lend its own thread pool. Then no thread is created here, and the app's threads do all work.
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

// Calls task(0) .. task(num_tasks - 1), each once, on any threads, in parallel or in sequence, and returns when all are
// done. Must not throw. `task` lives as long as the owner of the executor, so a thread that comes late can still call
// it, and does nothing.
using Executor = std::function<void(size_t num_tasks, const std::function<void(size_t)>& task)>;

class Workers {
 public:
  // 0 counts as 1. With an executor no thread is created. If the system has no more threads, the caller's thread does
  // their tasks: more slowly, with the same bits.
  explicit Workers(size_t size, Executor executor = {});
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  size_t size() const { return size_; }
  // Does every worker's task exactly once, whatever an executor does: the noise of a private step depends on it.
  // Repeated calls by the executor are ignored, and the caller does the tasks that the executor leaves out.
  void Run(const std::function<void(size_t)>& task);

 private:
  void Loop(size_t worker);
  void RunOnExecutor();
  void DoShare(size_t worker) noexcept;

  size_t size_;
  Executor executor_;
  std::function<void(size_t)> share_;  // DoShare as a function object, made once so that a run allocates nothing
  std::unique_ptr<std::atomic<bool>[]> taken_;  // with an executor: true if the worker's task of this run was begun
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(size_t)>* task_ = nullptr;
  uint64_t generation_ = 0;
  size_t running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
  const Origin origin_;
};

// For a team's destructor in a forked process. It abandons the threads, which do not exist there, and the objects that
// they wait for. Joining them, or destroying a condition variable that they wait for, would never return.
void AbandonThreads(std::vector<std::thread>& threads, std::mutex& mutex, std::condition_variable& start,
                    std::condition_variable& done);

// min(4, processors). More threads gain little on phones and take cores from the app.
size_t DefaultThreads();

// The limit on num_threads in all options. Each thread has buffers, so without a limit a wrong number could take all
// memory.
inline constexpr size_t kMaxThreads = 1024;
// kInvalidArgument: above kMaxThreads. 0 is allowed and means DefaultThreads().
Status CheckThreads(size_t num_threads);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_THREADS_H_
