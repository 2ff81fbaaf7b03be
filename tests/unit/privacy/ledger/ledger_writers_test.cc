// Several processes write one ledger at once: no charge is lost, none fails, and each gets turns.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_writers_test {
namespace {

// Memory that a child and its parent share.
template <typename T>
class Shared {
 public:
  Shared() : value_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T()) {}
  Shared(const Shared&) = delete;
  ~Shared() { munmap(value_, sizeof(T)); }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

pid_t Child(const auto& function) {
  const pid_t child = fork();
  if (child == 0) _exit(function());
  return child;
}

int ExitCode(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

TEST_F(LedgerTest, ManyFirstChargesAtOnceAreAllThere) {
  constexpr int kProcesses = 8, kRounds = 60;
  struct Gate {
    std::atomic<int> waiting[kRounds];
  };
  const Shared<Gate> gate;
  const auto path = [&](int round) { return Path(("first" + std::to_string(round)).c_str()); };
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(Child([&]() -> int {
      for (int round = 0; round < kRounds; ++round) {
        auto ledger = Ledger::Open(path(round), kOptions);
        if (!ledger.ok()) return Fail(ledger.status());
        // All processes have opened the missing ledger before any of them charges.
        for (++gate->waiting[round]; gate->waiting[round] < kProcesses;) std::this_thread::yield();
        const auto id = ledger->Charge({.mechanism = Steps(1), .run = std::to_string(p)});
        if (!id.ok()) return Fail(id.status());
      }
      return 0;
    }));
  }
  bool all = true;
  for (int left = kProcesses; left > 0; --left) {
    int status = 0;
    waitpid(-1, &status, 0);
    if (status == 0 || !all) continue;
    all = false;  // the others wait for it in vain
    for (const pid_t child : children) kill(child, SIGKILL);
  }
  ASSERT_TRUE(all);
  for (int round = 0; round < kRounds; ++round) {
    const auto entries = MustOpen(path(round)).Entries();
    ASSERT_TRUE(entries.ok()) << entries.status().message();
    std::vector<std::string> runs;
    for (const LedgerEntry& e : *entries) runs.push_back(e.run);
    std::sort(runs.begin(), runs.end());
    EXPECT_EQ(runs, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7"})) << "round " << round;
  }
}

// With a limit and charges outside of the plan, the accountant works while the file is locked, so writers could starve.
TEST_F(LedgerTest, FourWritersUnderALimitAllGetTurns) {
  constexpr int kWriters = 4, kCharges = 200;
  ASSERT_TRUE(MustOpen(Path()).SetLimit(MakeLimit(1e4)).ok());
  ASSERT_TRUE(MustOpen(Path()).Charge({.mechanism = Steps(1, 30), .run = "plan of itself"}).ok());
  struct Progress {
    std::atomic<int> started{0}, first_done{0};
    std::atomic<int> charged[kWriters] = {}, at_first_end[kWriters] = {};
  };
  const Shared<Progress> progress;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    children.push_back(Child([&]() -> int {
      auto ledger = Ledger::Open(Path(), kOptions);
      if (!ledger.ok()) return Fail(ledger.status());
      for (++progress->started; progress->started < kWriters;) std::this_thread::yield();
      for (int i = 0; i < kCharges; ++i) {
        const auto id = ledger->Charge({.mechanism = Steps(1), .run = std::to_string(w)});
        if (!id.ok()) return Fail(id.status());
        ++progress->charged[w];
      }
      if (progress->first_done.exchange(1) == 0) {
        for (int i = 0; i < kWriters; ++i) progress->at_first_end[i] = progress->charged[i].load();
      }
      return 0;
    }));
  }
  for (const pid_t child : children) ASSERT_EQ(ExitCode(child), 0);
  EXPECT_EQ(MustOpen(Path()).Entries()->size(), 1u + kWriters * kCharges);
  // The counts end when the first process is done. A share well below a quarter is fine, but almost nothing is not.
  int total = 0;
  for (const auto& charged : progress->at_first_end) total += charged;
  for (int w = 0; w < kWriters; ++w) {
    std::printf("writer %d: %d of %d\n", w, progress->at_first_end[w].load(), total);
    EXPECT_GE(progress->at_first_end[w] * 20, total) << "writer " << w;
  }
}

// A run asks for its cost after each charge. What others charge, and what they charge to it, is seen too.
TEST_F(LedgerTest, CostOfARun_CountsEveryChargeSinceItWasAskedFor) {
  Ledger one = MustOpen(Path()), other = MustOpen(Path());
  const auto cost = [](uint64_t steps) { return *PldEpsilon(std::vector{Steps(steps)}, AtDelta()); };
  EXPECT_EQ(one.SpentByRun("a", AtDelta())->epsilon, 0);
  ASSERT_TRUE(one.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  EXPECT_EQ(one.SpentByRun("a", AtDelta())->epsilon, cost(100));
  ASSERT_TRUE(one.Charge({.mechanism = Steps(30), .run = "b"}).ok());
  ASSERT_TRUE(one.Charge({.mechanism = Steps(50), .run = "a"}).ok());
  EXPECT_EQ(one.SpentByRun("a", AtDelta())->epsilon, cost(150));
  ASSERT_TRUE(other.Charge({.mechanism = Steps(7), .run = "a"}).ok());
  EXPECT_EQ(one.SpentByRun("a", AtDelta())->epsilon, cost(157));
  EXPECT_EQ(one.SpentByRun("b", AtDelta())->epsilon, cost(30));
  EXPECT_EQ(one.SpentByRun("a", AtDelta())->epsilon, cost(157));
  EXPECT_EQ(MustOpen(Path()).SpentByRun("a", AtDelta())->epsilon, cost(157));
}

}  // namespace
}  // namespace wisp::privacy::ledger_writers_test
