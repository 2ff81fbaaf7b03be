// A fixed team of workers for coarse work: one task each, then wait for all.
//
//   Workers workers(2);
//   workers.Run([&](size_t worker) { ... });   // called once for worker = 0 .. size() - 1
//
// The caller is worker 0; a team of 1 creates no thread. Workers sleep between runs (no spinning).
// Run must not be called from two threads at once, nor from inside a task.
#ifndef WISP_RUNTIME_CORE_THREADS_H_
#define WISP_RUNTIME_CORE_THREADS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace wisp {

class Workers {
 public:
  explicit Workers(size_t size);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  size_t size() const { return threads_.size() + 1; }
  void Run(const std::function<void(size_t)>& task);

 private:
  void Loop(size_t worker);

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(size_t)>* task_ = nullptr;
  uint64_t generation_ = 0;
  size_t running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// min(4, processors): more buys little on phones and takes the app's cores away.
size_t DefaultThreads();

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_THREADS_H_
