// A team runs each task once, although a thread is late, asleep or lent. An idle team uses no processor, and a busy one
// allocates nothing.
#include "runtime/core/team.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

namespace wisp::team_test {
namespace {

double ProcessCpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Writes of tasks without a lock are visible after the run, and the caller's earlier writes are visible to the tasks.
TEST(Team, EachTaskIsDoneOnceAndSeen) {
  for (const size_t size : {1, 2, 3, 5, 32}) {
    Team team(size);
    EXPECT_EQ(team.size(), size);
    std::mt19937 random(7);
    std::vector<int> done(Team::kMaxTasks), expected(Team::kMaxTasks);
    for (int run = 0; run < 2000; ++run) {
      const size_t num_tasks = random() % (size + 1);
      team.Run(num_tasks, [&](size_t task) { ++done[task]; });
      for (size_t task = 0; task < num_tasks; ++task) ++expected[task];
      ASSERT_EQ(done, expected) << "run " << run << ", size " << size;
      // The pauses make helpers fall asleep at all moments.
      if (run % 97 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    }
  }
}

TEST(Team, SizesAreHeldToWhatARunMayHave) {
  EXPECT_EQ(Team(0).size(), 1u);
  EXPECT_EQ(Team(1000).size(), Team::kMaxTasks);
}

// A task waits until the other has begun, so the run only ends if two threads work at the same time.
TEST(Team, TasksRunAtTheSameTime) {
  Team team(2);
  for (int run = 0; run < 50; ++run) {
    std::atomic<int> begun = 0;
    team.Run(2, [&](size_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
    if (run % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough to fall asleep
  }
}

// Two long tasks make the caller wait beyond the time in which it spins.
TEST(Team, CallerThatWaitsLongIsWoken) {
  Team team(2);
  for (int run = 0; run < 20; ++run) {
    std::atomic<int> begun = 0;
    bool slow_done = false;
    const auto caller = std::this_thread::get_id();
    team.Run(2, [&](size_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      if (std::this_thread::get_id() == caller) return;
      std::this_thread::sleep_for(3 * Team::kSpinTime);
      slow_done = true;
    });
    EXPECT_TRUE(slow_done);
  }
}

TEST(Team, IdleOneUsesNoProcessor) {
  Team team(4);
  team.Run(4, [](size_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until all threads sleep
  const double before = ProcessCpuSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Threads that wait without sleeping use 0.2 s each; a sanitizer's own thread uses a few thousandths.
  EXPECT_LT(ProcessCpuSeconds() - before, 0.05);
}

TEST(Team, EndsWhateverItsThreadsDo) {
  for (int i = 0; i < 200; ++i) {
    Team team(3);
    if (i % 2 == 0) team.Run(3, [](size_t) {});
    if (i % 20 == 0) std::this_thread::sleep_for(2 * Team::kSpinTime);
  }
}

TEST(Team, TwoAtOnceDoNotDisturbEachOther) {
  const auto work = [](std::vector<int>& done) {
    Team team(2);
    for (int run = 0; run < 1000; ++run) team.Run(2, [&](size_t task) { ++done[task]; });
  };
  std::vector<int> first(2), second(2);
  std::thread a([&] { work(first); }), b([&] { work(second); });
  a.join();
  b.join();
  EXPECT_EQ(first, std::vector<int>(2, 1000));
  EXPECT_EQ(second, std::vector<int>(2, 1000));
}

// Mistakes of a broken executor are corrected: tasks repeated, left out, out of range, or late.
TEST(Team, EachTaskIsDoneOnceWhateverTheExecutorDoes) {
  using Task = std::function<void(size_t)>;
  const auto expect_once = [&](const char* what, Executor executor) {
    Team team(3, std::move(executor));
    for (int run = 1; run <= 20; ++run) {
      std::vector<int> done(3);
      team.Run(3, [&](size_t task) { ++done[task]; });
      EXPECT_EQ(done, std::vector<int>(3, 1)) << what;
    }
  };
  expect_once("nothing", [](size_t, const Task&) {});
  expect_once("the last only", [](size_t n, const Task& t) { t(n - 1); });
  expect_once("one after the other", [](size_t n, const Task& t) {
    for (size_t i = n; i-- > 0;) t(i);
  });
  expect_once("too many", [](size_t n, const Task& t) {
    for (size_t i = 0; i < 2 * n + 40; ++i) t(i);
  });
  expect_once("threads", [](size_t n, const Task& t) {
    std::vector<std::thread> pool;
    for (size_t i = 0; i < n; ++i) pool.emplace_back([&t, i] { t(i); });
    for (auto& thread : pool) thread.join();
  });
  // This executor returns before its threads have begun. They outlive the run, but not the team.
  std::vector<std::thread> late;
  Team team(3, [&](size_t n, const Task& t) {
    for (size_t i = 0; i < n; ++i) late.emplace_back([&t, i] { t(i); });
  });
  for (int run = 0; run < 100; ++run) {
    std::vector<int> done(3);
    team.Run(3, [&](size_t task) { ++done[task]; });
    EXPECT_EQ(done, std::vector<int>(3, 1)) << "returns too early, run " << run;
  }
  for (auto& thread : late) thread.join();
}

}  // namespace
}  // namespace wisp::team_test
