// The ledger among threads and processes, and after a crash at every operation: no charge is forgotten or spent twice.
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/privacy/ledger/crash_vfs.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_crash_test {
namespace {

TEST_F(LedgerTest, BusyIsAnErrorNotACharge) {
  LedgerOptions impatient = kOptions;
  impatient.busy_timeout_ms = 1;
  auto ledger = Ledger::Open(Path(), impatient);
  ASSERT_TRUE(ledger.ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(Path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto refused = ledger->Charge({.mechanism = Steps(1), .run = "a"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kIo);
  EXPECT_NE(refused.status().message().find("another process"), std::string::npos);
  sqlite3_close(other);
  EXPECT_TRUE(ledger->Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

TEST_F(LedgerTest, ThreadsShareOneLedger) {
  Ledger ledger = MustOpen(Path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ledger, t] {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = std::to_string(t)}).ok());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger.Entries()->size(), 40u);
}

// Processes charge until they are refused: together they reach the limit and do not exceed it.
TEST_F(LedgerTest, ProcessesCannotSpendTheSameBudget) {
  constexpr int kProcesses = 4;
  constexpr uint64_t kFits = 90;
  {
    Ledger ledger = MustOpen(Path());
    ASSERT_TRUE(ledger.SetLimit(MakeLimit(*PldEpsilon(std::vector<Mechanism>{Steps(kFits)}, AtDelta()))).ok());
    // Under a plan PLD holds the limit; charges outside of it meet the filter, which allows fewer.
    ASSERT_TRUE(
        ledger.WritePlan("all processes", "a test", std::vector<ChargeRequest>{{.mechanism = Steps(kFits)}}).ok());
  }
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      auto ledger = Ledger::Open(Path(), kOptions);
      int charged = 0;
      while (ledger.ok()) {
        const auto id = ledger->Charge({.mechanism = Steps(3), .run = std::to_string(p)});
        if (!id.ok() && id.status().code() != StatusCode::kPrivacyRefused) _exit(255);
        if (!id.ok()) break;
        ++charged;
      }
      _exit(ledger.ok() ? charged : 255);
    }
    children.push_back(child);
  }
  int charged = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_NE(WEXITSTATUS(status), 255);
    charged += WEXITSTATUS(status);
  }
  EXPECT_EQ(charged, static_cast<int>(kFits / 3));
  EXPECT_EQ(MustOpen(Path()).Entries()->size(), kFits / 3);
}

// ---- Crashes ----

constexpr int kChargesPerDeployment = 4;

// Two lifetimes of an app: open, charge, report each charge that returned (where noise would be drawn), close.
[[noreturn]] void ChargeAndReport(const std::string& path, int pipe_end, const CrashPlan& plan) {
  if (!InstallCrashVfs(plan)) _exit(3);
  for (int deployment = 0; deployment < 2; ++deployment) {
    auto ledger = Ledger::Open(path, kOptions);
    if (!ledger.ok()) _exit(4);
    for (int i = 0; i < kChargesPerDeployment; ++i) {
      const auto id = ledger->Charge({.mechanism = Steps(1), .run = std::string(700, 'r')});
      if (!id.ok()) _exit(5);
      if (write(pipe_end, &*id, sizeof *id) != sizeof *id) _exit(6);
    }
  }
  _exit(0);
}

// Runs that in a child; returns the reported identifiers and the child's exit code.
std::pair<std::vector<ChargeId>, int> RunToCrash(const std::string& path, const CrashPlan& plan) {
  int ends[2];
  if (pipe(ends) != 0) return {{}, -1};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    ChargeAndReport(path, ends[1], plan);
  }
  close(ends[1]);
  std::vector<ChargeId> reported;
  for (ChargeId id; read(ends[0], &id, sizeof id) == sizeof id;) reported.push_back(id);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {reported, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

// Counts the entries that SQLite finds by itself, without what Ledger does about a leftover journal.
size_t NumEntriesForSqlite(const std::string& path) {
  sqlite3* handle = nullptr;
  sqlite3_stmt* count = nullptr;
  size_t entries = 0;
  if (sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      sqlite3_prepare_v2(handle, "SELECT count(*) FROM entries", -1, &count, nullptr) == SQLITE_OK &&
      sqlite3_step(count) == SQLITE_ROW) {
    entries = static_cast<size_t>(sqlite3_column_int64(count, 0));
  }
  sqlite3_finalize(count);
  sqlite3_close(handle);
  return entries;
}

enum class FirstReader { kLedger, kSqlite };

// Crashes at every single operation, one after the other. After each crash the reported charges are there, and the
// ledger works. Returns the number of operations of a run without a crash.
int64_t CrashEverywhere(const test::TemporaryFolder& folder, CrashKind kind, bool torn, uint64_t seed,
                        FirstReader reader = FirstReader::kLedger) {
  for (int64_t k = 1; k < 5000; ++k) {
    const std::string path = folder / ("crash" + std::to_string(k));
    const auto [reported, code] = RunToCrash(path, {.kind = kind, .at_operation = k, .torn = torn, .seed = seed});
    EXPECT_TRUE(code == kCrashExitCode || code == 0) << "child at operation " << k << " ended with " << code;
    if (reader == FirstReader::kSqlite) {
      EXPECT_GE(NumEntriesForSqlite(path), reported.size())
          << "operation " << k << ": a journal that came back undid a charge";
    }
    auto ledger = Ledger::Open(path, kOptions);
    EXPECT_TRUE(ledger.ok()) << "operation " << k << ": " << ledger.status().message();
    if (!ledger.ok()) return -1;
    const auto entries = ledger->Entries();
    EXPECT_TRUE(entries.ok()) << "operation " << k;
    if (!entries.ok()) return -1;
    EXPECT_GE(entries->size(), reported.size()) << "operation " << k << ": noise was drawn on a charge that is gone";
    EXPECT_LE(entries->size(), reported.size() + 1) << "operation " << k;
    EXPECT_TRUE(ledger->Charge({.mechanism = Steps(1), .run = "after"}).ok()) << "operation " << k;
    std::filesystem::remove(path);
    if (code == 0) {
      EXPECT_EQ(reported.size(), 2u * kChargesPerDeployment);
      return k - 1;
    }
    if (::testing::Test::HasFailure()) return -1;
  }
  return -1;
}

TEST_F(LedgerTest, KilledAtEveryWriteForgetsNoCharge) {
  EXPECT_GT(CrashEverywhere(folder_, CrashKind::kKill, false, 0), 50);
}

TEST_F(LedgerTest, KilledInsideEveryWriteForgetsNoCharge) {
  EXPECT_GT(CrashEverywhere(folder_, CrashKind::kKill, true, 0), 50);
}

TEST_F(LedgerTest, PowerLossAtEveryWriteForgetsNoCharge) {
  for (uint64_t seed : {1, 2, 3}) {
    RecordProperty("seed", std::to_string(seed));
    EXPECT_GT(CrashEverywhere(folder_, CrashKind::kPowerLoss, false, seed), 50);
  }
}

// An unsynced deletion of a journal may be undone; whoever opens the file then goes back to before the charge.
TEST_F(LedgerTest, PowerLossAfterACommitBringsNoJournalBack) {
  for (uint64_t seed : {1, 2}) {
    RecordProperty("seed", std::to_string(seed));
    EXPECT_GT(CrashEverywhere(folder_, CrashKind::kPowerLoss, false, seed, FirstReader::kSqlite), 50);
  }
}

TEST_F(LedgerTest, KilledFromOutsideForgetsNoCharge) {
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      auto ledger = Ledger::Open(Path(), kOptions);
      for (;;) {
        const auto id = ledger->Charge({.mechanism = Steps(1), .run = "a"});
        if (!id.ok() || write(ends[1], &*id, sizeof *id) != sizeof *id) _exit(1);
      }
    }
    close(ends[1]);
    ChargeId last = 0;
    for (int i = 0; i <= round % 4 && read(ends[0], &last, sizeof last) == sizeof last; ++i) {}
    kill(child, SIGKILL);
    for (ChargeId id; read(ends[0], &id, sizeof id) == sizeof id;) last = id;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    const auto entries = MustOpen(Path()).Entries();
    ASSERT_TRUE(entries.ok());
    ASSERT_GE(static_cast<ChargeId>(entries->size()), last);
  }
}

}  // namespace
}  // namespace wisp::privacy::ledger_crash_test
