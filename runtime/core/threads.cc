#include "runtime/core/threads.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace wisp {

Workers::Workers(size_t size, Executor executor) : size_(std::max<size_t>(1, size)), executor_(std::move(executor)) {
  if (executor_) {
    share_ = [this](size_t worker) { DoShare(worker); };
    taken_ = std::make_unique<std::atomic<bool>[]>(size_);
    for (size_t worker = 0; worker < size_; ++worker) taken_[worker] = true;
    return;
  }
  threads_.reserve(size_ - 1);  // after this, only starting a thread can fail
  try {
    for (size_t worker = 1; worker < size_; ++worker) threads_.emplace_back([this, worker] { Loop(worker); });
  } catch (const std::exception&) {
    // The system has no more threads. The caller's thread does the tasks of the missing ones (Run).
  }
}

Workers::~Workers() {
  if (origin_.IsForked()) {
    AbandonThreads(threads_, mutex_, start_, done_);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Run(const std::function<void(size_t)>& task) {
  if (origin_.IsForked()) {
    for (size_t worker = 0; worker < size_; ++worker) task(worker);
    return;
  }
  if (executor_) {
    task_ = &task;
    return RunOnExecutor();
  }
  if (!threads_.empty()) {
    std::lock_guard lock(mutex_);
    task_ = &task;
    running_ = threads_.size();
    ++generation_;
  }
  start_.notify_all();
  task(0);
  for (size_t worker = threads_.size() + 1; worker < size_; ++worker) task(worker);
  if (threads_.empty()) return;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

void Workers::RunOnExecutor() {
  running_ = size_;
  for (size_t worker = 0; worker < size_; ++worker) taken_[worker].store(false, std::memory_order_release);
  executor_(size_, share_);
  for (size_t worker = 0; worker < size_; ++worker) DoShare(worker);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

void Workers::DoShare(size_t worker) noexcept {
  if (worker >= size_ || taken_[worker].exchange(true, std::memory_order_acq_rel)) return;
  (*task_)(worker);
  std::lock_guard lock(mutex_);
  if (--running_ == 0) done_.notify_one();
}

void Workers::Loop(size_t worker) {
  uint64_t seen = 0;
  while (true) {
    const std::function<void(size_t)>* task;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      task = task_;
    }
    (*task)(worker);
    std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

// Constructs each object again in place, without running its destructor.
void AbandonThreads(std::vector<std::thread>& threads, std::mutex& mutex, std::condition_variable& start,
                    std::condition_variable& done) {
  for (std::thread& thread : threads) std::construct_at(&thread);
  std::construct_at(&mutex);
  std::construct_at(&start);
  std::construct_at(&done);
}

size_t DefaultThreads() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4); }

Status CheckThreads(size_t num_threads) {
  static_assert(kMaxThreads == 1024, "the sentence names it");
  if (num_threads <= kMaxThreads) return OkStatus();
  return InvalidArgument("num_threads is ", num_threads, ", allowed are 0 to 1024");
}

}  // namespace wisp
