// Workers and lent threads: who does the work, how often, the cost of an idle team, and that the bits do not change.
#include "runtime/core/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>

#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::threads_test {
namespace {

size_t CountProcessThreads() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

double ProcessCpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(Workers, OneWorkerCreatesNoThread) {
  const size_t before = CountProcessThreads();
  Workers one(1);
  EXPECT_EQ(CountProcessThreads(), before);
  const auto caller = std::this_thread::get_id();
  std::thread::id by;
  one.Run([&](size_t worker) {
    EXPECT_EQ(worker, 0u);
    by = std::this_thread::get_id();
  });
  EXPECT_EQ(by, caller);
  EXPECT_EQ(CountProcessThreads(), before);
  Workers three(3);
#ifndef WISP_SANITIZED  // ThreadSanitizer starts one of its own
  EXPECT_EQ(CountProcessThreads(), before + 2);
#endif
}

// In a child whose address space has no space for another stack, the work is done all the same, each task once.
TEST(Workers, WithoutMoreThreadsTheCallerDoesTheWork) {
#ifdef WISP_SANITIZED
  GTEST_SKIP() << "the sanitizer takes more address space than the child may have";
#endif
  const auto child = [] {
    const rlimit none = {64 << 20, 64 << 20};
    if (setrlimit(RLIMIT_AS, &none) != 0) return 1;
    Workers workers(200);
    // The address space had space for another stack after all.
    if (std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}) > 190) return 3;
    std::vector<int> done(workers.size(), 0);
    workers.Run([&](size_t worker) { ++done[worker]; });
    return workers.size() == 200 && std::count(done.begin(), done.end(), 1) == 200 ? 0 : 2;
  };
  EXPECT_EXIT(_exit(child()), ::testing::ExitedWithCode(0), "");
}

TEST(Workers, DefaultIsAtMostFourThreads) {
  EXPECT_GE(DefaultThreads(), 1u);
  EXPECT_LE(DefaultThreads(), 4u);
  EXPECT_LE(DefaultThreads(), std::max(1u, std::thread::hardware_concurrency()));
}

// A thread that spins would use most of the time, or its share of it on a loaded machine.
TEST(Workers, IdleTeamUsesNoProcessor) {
  Workers workers(4);
  workers.Run([](size_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until all threads sleep
  const double before = ProcessCpuSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(ProcessCpuSeconds() - before, 0.005);
}

TEST(Workers, ExecutorGetsAllWorkAndNoThreadIsCreated) {
  const size_t before = CountProcessThreads();
  std::set<std::thread::id> threads;
  std::mutex mutex;
  size_t calls = 0;
  Workers workers(3, [&](size_t num_tasks, const std::function<void(size_t)>& task) {
    ++calls;
    std::vector<std::thread> pool;
    for (size_t i = 0; i < num_tasks; ++i) pool.emplace_back([&task, i] { task(i); });
    for (auto& thread : pool) thread.join();
  });
  EXPECT_EQ(CountProcessThreads(), before);
  EXPECT_EQ(workers.size(), 3u);
  std::vector<int> done(3);
  for (int run = 0; run < 5; ++run) {
    workers.Run([&](size_t worker) {
      std::lock_guard lock(mutex);
      ++done[worker];
      threads.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(calls, 5u);
  EXPECT_EQ(done, std::vector<int>(3, 5));
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
}

// Mistakes of a broken executor are corrected: tasks repeated, left out, out of range, or late.
TEST(Workers, EachTaskIsDoneOnceWhateverTheExecutorDoes) {
  std::vector<int> done(3);
  std::mutex mutex;
  const auto task = [&](size_t worker) {
    std::lock_guard lock(mutex);
    ++done[worker];
  };
  const auto expect_once = [&](const char* what, Executor executor) {
    done.assign(3, 0);
    Workers(3, std::move(executor)).Run(task);
    EXPECT_EQ(done, std::vector<int>(3, 1)) << what;
  };
  using Task = std::function<void(size_t)>;
  expect_once("nothing", [](size_t, const Task&) {});
  expect_once("the last only", [](size_t n, const Task& t) { t(n - 1); });
  expect_once("twice", [](size_t n, const Task& t) {
    for (size_t i = 0; i < 2 * n; ++i) t(i % n);
  });
  expect_once("too many", [](size_t n, const Task& t) {
    for (size_t i = 0; i < n + 5; ++i) t(i);
  });
  // This executor returns before its threads have begun. They outlive the run, but not the workers.
  std::vector<std::thread> late;
  Workers workers(3, [&](size_t n, const Task& t) {
    for (size_t i = 0; i < n; ++i) late.emplace_back([&t, i] { t(i); });
  });
  for (int run = 0; run < 100; ++run) {
    done.assign(3, 0);
    workers.Run(task);
    EXPECT_EQ(done, std::vector<int>(3, 1)) << "returns too early, run " << run;
  }
  for (auto& thread : late) thread.join();
}

class TrainingThreads : public test::RingTraining {
 protected:
  TrainingThreads() : RingTraining(40) {}

  std::vector<float> Train(std::string_view ledger_name, size_t threads, Executor executor = {}) {
    privacy::Ledger ledger = OpenLedger(ledger_name);
    TrainingOptions o{.method = Method::kPhantom,
                      .sampling = Sampling::kPoisson,
                      .num_steps = 20,
                      .expected_batch = 16,
                      .num_records_public = 40,
                      .dropout = {0.1f, 0.1f, 0.1f},
                      .num_threads = threads,
                      .executor = std::move(executor)};
    o.privacy = {.noise_multiplier = 1, .ledger = &ledger, .run = "r", .steps_per_charge = 20, .reproducible_seed = 3};
    auto trainer = *Trainer::Create(kSmall, start_, ring_.records, o);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(trainer->Step().ok());
    return {trainer->weights().begin(), trainer->weights().end()};
  }
};

TEST_F(TrainingThreads, LentThreadsGiveTheSameBits) {
  const std::vector<float> own = Train("own", 3);
  size_t tasks = 0;
  const size_t threads = CountProcessThreads();
  const Executor backwards = [&](size_t n, const std::function<void(size_t)>& task) {
    EXPECT_EQ(CountProcessThreads(), threads);
    tasks += n;
    for (size_t i = n; i-- > 0;) task(i);
  };
  EXPECT_EQ(Train("lent", 3, backwards), own);
  EXPECT_EQ(tasks % 3, 0u);
  EXPECT_GE(tasks, 20u * 3 * 3);
  EXPECT_EQ(Train("absent", 3, [](size_t, const std::function<void(size_t)>&) {}), own);
}

TEST_F(TrainingThreads, TwoTrainersAtOnceDoNotDisturbEachOther) {
  const std::vector<float> alone = Train("alone", 2);
  std::vector<float> first, second;
  std::thread a([&] { first = Train("a", 2); }), b([&] { second = Train("b", 2); });
  a.join();
  b.join();
  EXPECT_EQ(first, alone);
  EXPECT_EQ(second, alone);
}

}  // namespace
}  // namespace wisp::threads_test
