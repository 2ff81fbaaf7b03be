// The ledger: what it keeps, what it refuses, and that no crash and no second process makes it forget.
#include "runtime/privacy/ledger.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/privacy/accountant.h"
#include "runtime/privacy/ledger_composition.h"
#include "tests/unit/crash_vfs.h"

namespace wisp::privacy {
namespace {

namespace fs = std::filesystem;

// A folder of its own for every test, gone afterwards.
class LedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wisp_ledger_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const char* name = "test.ledger") const { return (folder_ / name).string(); }

  fs::path folder_;
};

const LedgerOptions kOptions{.dataset = "watch history"};

// Parameters for which the accountant is quick.
Mechanism Steps(uint64_t steps, double noise_multiplier = 20, double q = 0.1) {
  return *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = noise_multiplier, .sampling_probability = q, .steps = steps});
}
Delta AtDelta(double delta = 1e-6) { return *Delta::Create(delta); }
EpsilonDelta LimitOf(double epsilon, double delta = 1e-6) { return *EpsilonDelta::Create(epsilon, delta); }

Ledger MustOpen(const std::string& path) {
  auto ledger = Ledger::Open(path, kOptions);
  EXPECT_TRUE(ledger.ok()) << ledger.status().message();
  return *std::move(ledger);
}

std::string ReadFile(const std::string& path) {
  if (fs::is_directory(path)) return "";
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs SQL on the file as another program would; the error message, empty for success.
std::string Sql(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  sqlite3_open(path.c_str(), &handle);
  char* message = nullptr;
  sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &message);
  const std::string text = message == nullptr ? "" : message;
  sqlite3_free(message);
  sqlite3_close(handle);
  return text;
}

TEST_F(LedgerTest, ChargesSurviveReopening) {
  {
    Ledger ledger = MustOpen(Path());
    auto first = ledger.Charge({.mechanism = Steps(10), .run = "a", .purpose = "training"});
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_EQ(*first, 1);
    EXPECT_EQ(*ledger.Charge({.mechanism = Steps(5), .run = "b", .loss_slack = 0.25}), 2);
    ASSERT_TRUE(ledger.MarkReleased(1).ok());
    EXPECT_EQ(ledger.MarkReleased(7).code(), StatusCode::kInvalidArgument);
  }
  auto ledger = Ledger::OpenExisting(Path());
  ASSERT_TRUE(ledger.ok()) << ledger.status().message();
  EXPECT_EQ(ledger->dataset(), "watch history");
  EXPECT_EQ(ledger->unit(), PrivacyUnit::kSession);
  const auto entries = *ledger->Entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].run, "a");
  EXPECT_EQ(entries[0].purpose, "training");
  EXPECT_EQ(entries[0].mechanism.ToText(), Steps(10).ToText());
  EXPECT_EQ(entries[0].noise, NoiseKind::kSecure);
  EXPECT_EQ(entries[0].state, LedgerEntry::State::kReleased);
  EXPECT_EQ(entries[0].time_utc.size(), 20u);
  EXPECT_EQ(entries[0].time_utc.back(), 'Z');
  EXPECT_EQ(entries[1].noise, NoiseKind::kSecure);
  EXPECT_EQ(entries[1].loss_slack, 0.25);
  EXPECT_EQ(entries[1].state, LedgerEntry::State::kCharged);
}

TEST_F(LedgerTest, SpentIsTheAccountantsFigureForEverything) {
  Ledger ledger = MustOpen(Path());
  EXPECT_EQ(*ledger.Spent(AtDelta()), 0);
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(50, 30), .run = "b"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(200), .run = "b"}).ok());
  const std::vector<Mechanism> all = {Steps(300), Steps(50, 30)}, run_a = {Steps(100)};
  EXPECT_DOUBLE_EQ(*ledger.Spent(AtDelta()), *PldEpsilon(all, AtDelta()));
  EXPECT_DOUBLE_EQ(*ledger.SpentByRun("a", AtDelta()), *PldEpsilon(run_a, AtDelta()));
  EXPECT_EQ(*ledger.SpentByRun("nobody", AtDelta()), 0);
  EXPECT_GT(*ledger.Spent(AtDelta(1e-9)), *ledger.Spent(AtDelta()));
}

TEST_F(LedgerTest, AnotherConnectionsChargesAreSeen) {
  Ledger one = MustOpen(Path()), other = MustOpen(Path());
  ASSERT_TRUE(one.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  EXPECT_GT(*other.Spent(AtDelta()), 0);
  EXPECT_DOUBLE_EQ(*other.Spent(AtDelta()), *one.Spent(AtDelta()));
}

TEST_F(LedgerTest, ReproducibleNoiseHasNoEpsilonAndPassesEveryLimit) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.SetLimit(LimitOf(1e9)).ok());
  const auto refused = ledger.Charge({.mechanism = Steps(1), .run = "a", .noise = NoiseKind::kReproducible});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(*ledger.Spent(AtDelta()), 0);
  Ledger unlimited = MustOpen(Path("other.ledger"));
  ASSERT_TRUE(unlimited.Charge({.mechanism = Steps(1), .run = "a", .noise = NoiseKind::kReproducible}).ok());
  EXPECT_EQ(*unlimited.Spent(AtDelta()), INFINITY);
  ASSERT_TRUE(unlimited.SetLimit(LimitOf(1e9)).ok());
  EXPECT_EQ(unlimited.Charge({.mechanism = Steps(1), .run = "b"}).status().code(), StatusCode::kPrivacyRefused);
}

// One experiment would take the epsilon from everything that was charged, for ever; also one by another process.
TEST_F(LedgerTest, NoiseOfTwoKindsDoesNotMix) {
  for (NoiseKind first : {NoiseKind::kSecure, NoiseKind::kReproducible}) {
    const NoiseKind second = first == NoiseKind::kSecure ? NoiseKind::kReproducible : NoiseKind::kSecure;
    const std::string path = Path(std::string(ToText(first)).c_str());
    Ledger one = MustOpen(path), other = MustOpen(path);
    ASSERT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a", .noise = first}).ok());
    const ChargeRequest mixed{.mechanism = Steps(1), .run = "b", .noise = second};
    for (const Status& refused : {other.Charge(mixed).status(), other.CheckFits({&mixed, 1})}) {
      EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
      EXPECT_NE(refused.message().find("use a ledger of its own for experiments"), std::string::npos) << refused.message();
    }
    EXPECT_EQ(one.Entries()->size(), 1u);
    EXPECT_TRUE(other.Charge({.mechanism = Steps(1), .run = "b", .noise = first}).ok());
  }
}

// What is found to fit can be charged, to the last step; what is not would have been charged in part.
TEST_F(LedgerTest, AWholeRunIsHeldAgainstTheLimit) {
  const double epsilon = *PldEpsilon(std::vector{Steps(30), Steps(20, 10)}, AtDelta());
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(10), .run = "before"}).ok());
  ASSERT_TRUE(ledger.SetLimit(LimitOf(epsilon)).ok());
  const std::vector<ChargeRequest> fits = {{.mechanism = Steps(20), .run = "a"}, {.mechanism = Steps(20, 10), .run = "a"}};
  const std::vector<ChargeRequest> too_long = {{.mechanism = Steps(20), .run = "a"}, {.mechanism = Steps(21, 10), .run = "a"}};
  EXPECT_TRUE(ledger.CheckFits({}).ok());
  EXPECT_EQ(ledger.CheckFits(too_long).code(), StatusCode::kPrivacyRefused);
  const std::vector<ChargeRequest> slack = {{.mechanism = Steps(20), .run = "a", .loss_slack = 0.01}, {.mechanism = Steps(20, 10), .run = "a"}};
  EXPECT_EQ(ledger.CheckFits(slack).code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(ledger.CheckFits(fits).ok()) << ledger.CheckFits(fits).message();
  EXPECT_EQ(ledger.Entries()->size(), 1u);
  for (const ChargeRequest& charge : fits) EXPECT_TRUE(ledger.Charge(charge).ok());
  Ledger other = MustOpen(Path());  // one that has seen none of it yet
  EXPECT_EQ(other.CheckFits({fits.data(), 1}).code(), StatusCode::kPrivacyRefused);
}

TEST_F(LedgerTest, ARefusedChargeChangesNothingAndSaysWhy) {
  Ledger ledger = MustOpen(Path());
  const double limit = *PldEpsilon(std::vector<Mechanism>{Steps(150)}, AtDelta());
  ASSERT_TRUE(ledger.SetLimit(LimitOf(limit)).ok());
  EXPECT_EQ((*ledger.Limit())->epsilon(), limit);
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  const double before = *ledger.Spent(AtDelta());
  const auto refused = ledger.Charge({.mechanism = Steps(100), .run = "second run"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  for (const char* part : {"second run", "spent is", "limit", "nothing was charged"}) {
    EXPECT_NE(refused.status().message().find(part), std::string::npos) << refused.status().message();
  }
  EXPECT_EQ(ledger.Entries()->size(), 1u);
  EXPECT_EQ(*ledger.Spent(AtDelta()), before);
  EXPECT_TRUE(ledger.Charge({.mechanism = Steps(50), .run = "third"}).ok());  // exactly up to the limit
  EXPECT_LE(*ledger.Spent(AtDelta()), limit);
  EXPECT_FALSE(ledger.Charge({.mechanism = Steps(1), .run = "fourth"}).ok());
}

TEST_F(LedgerTest, StepByStepNeverPassesTheLimitNorStopsEarly) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.SetLimit(LimitOf(*PldEpsilon(std::vector<Mechanism>{Steps(70)}, AtDelta()))).ok());
  int charged = 0;
  while (charged < 200 && ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok()) ++charged;
  EXPECT_EQ(charged, 70);
}

// What was proved to fit must shrink when another process spends, and be forgotten when the limit falls.
TEST_F(LedgerTest, LookAheadDoesNotSurviveOthersChargesOrANewLimit) {
  Ledger one = MustOpen(Path()), other = MustOpen(Path());
  const auto limit_of = [](uint64_t steps) {
    return LimitOf(*PldEpsilon(std::vector<Mechanism>{Steps(steps)}, AtDelta()));
  };
  ASSERT_TRUE(one.SetLimit(limit_of(400)).ok());
  ASSERT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());  // proves that 399 more fit
  ASSERT_TRUE(other.Charge({.mechanism = Steps(398), .run = "b"}).ok());
  EXPECT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  EXPECT_FALSE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_TRUE(one.SetLimit(limit_of(800)).ok());
  ASSERT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());  // proves 399 more
  ASSERT_TRUE(other.Charge({.mechanism = Steps(20, 10), .run = "b"}).ok());
  const double left = (*one.Limit())->epsilon() - *one.Spent(AtDelta());
  ASSERT_GT(left, 0);
  EXPECT_FALSE(one.Charge({.mechanism = Steps(399), .run = "a"}).ok());
  EXPECT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_TRUE(other.SetLimit(LimitOf(1e-3)).ok());
  EXPECT_FALSE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

TEST_F(LedgerTest, LookAheadCoversOnlyWhatItProved) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.SetLimit(LimitOf(*PldEpsilon(std::vector<Mechanism>{Steps(400)}, AtDelta()))).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  EXPECT_FALSE(ledger.Charge({.mechanism = Steps(400), .run = "a"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  EXPECT_FALSE(ledger.Charge({.mechanism = Steps(1, 0.5), .run = "a"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  EXPECT_FALSE(ledger.Charge({.mechanism = Steps(1), .run = "a", .loss_slack = 0.5}).ok());
  EXPECT_EQ(ledger.Charge({.mechanism = Steps(1), .run = "a", .noise = NoiseKind::kReproducible}).status().code(),
            StatusCode::kPrivacyRefused);
  EXPECT_TRUE(ledger.Charge({.mechanism = Steps(397), .run = "a"}).ok());
  EXPECT_FALSE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

TEST_F(LedgerTest, ManyBlocksAreOneMechanism) {
  Composition composition;
  for (int i = 0; i < 5000; ++i) composition.Add(Steps(2, i % 2 == 0 ? 20 : 30), NoiseKind::kSecure, 1e-12);
  ASSERT_EQ(composition.mechanisms().size(), 2u);
  EXPECT_EQ(composition.mechanisms()[0].steps(), 5000u);
  EXPECT_NEAR(composition.loss_slack(), 5e-9, 1e-15);
}

TEST_F(LedgerTest, LossSlackIsPaidFor) {
  const std::vector<Mechanism> steps = {Steps(1000)};
  const double free = *PldEpsilon(steps, AtDelta());
  for (double eta : {1e-9, 1e-6, 1e-3, 0.1}) {
    Composition composition;
    composition.Add(*steps[0].WithSteps(400), NoiseKind::kSecure, eta / 4);
    composition.Add(*steps[0].WithSteps(600), NoiseKind::kSecure, eta * 3 / 4);
    const double epsilon = *composition.Epsilon(AtDelta());
    EXPECT_GE(epsilon, *PldEpsilon(steps, AtDelta(1e-6 * std::exp(-eta))) + 2 * eta) << eta;
    EXPECT_LE(epsilon, free + 2.2 * eta + 1e-6) << eta;
  }
  Composition tiny_delta;
  tiny_delta.Add(steps[0], NoiseKind::kSecure, 1e-9);
  EXPECT_EQ(*tiny_delta.Epsilon(AtDelta(1e-70)), INFINITY);
  Ledger ledger = MustOpen(Path());
  for (double eta : {-1e-9, 1.5, std::nan(""), double{INFINITY}}) {
    EXPECT_EQ(ledger.Charge({.mechanism = steps[0], .run = "a", .loss_slack = eta}).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(LedgerTest, AnotherUnitOrAdjacencyIsRefused) {
  MustOpen(Path());
  LedgerOptions options = kOptions;
  options.unit = PrivacyUnit::kInteraction;
  const auto opened = Ledger::Open(Path(), options);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("session"), std::string::npos);
  EXPECT_NE(opened.status().message().find("interaction"), std::string::npos);
  options = kOptions;
  options.adjacency = Adjacency::kZeroOut;
  EXPECT_FALSE(Ledger::Open(Path(), options).ok());
  options = kOptions;
  options.dataset = "renamed";
  auto renamed = Ledger::Open(Path(), options);
  ASSERT_TRUE(renamed.ok());
  EXPECT_EQ(renamed->dataset(), "watch history");
}

TEST_F(LedgerTest, ChargesWithoutAProofAreRefused) {
  LedgerOptions options = kOptions;
  options.adjacency = Adjacency::kReplaceOne;
  auto ledger = Ledger::Open(Path(), options);
  ASSERT_TRUE(ledger.ok());
  // The data set's adjacency, but sampling under replace-one; and another adjacency than the data set's.
  const auto replace_one = *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = 1, .sampling_probability = 0.1, .steps = 1, .adjacency = Adjacency::kReplaceOne});
  EXPECT_EQ(ledger->Charge({.mechanism = replace_one, .run = "a"}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(ledger->Charge({.mechanism = Steps(1), .run = "a"}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(ledger->Entries()->size(), 0u);
}

TEST_F(LedgerTest, WhatIsNotALedgerIsLeftAlone) {
  std::ofstream(Path("text")) << std::string(5000, 'x');
  ASSERT_EQ(Sql(Path("app.db"), "CREATE TABLE t (x); INSERT INTO t VALUES (1)"), "");
  MustOpen(Path("newer"));
  ASSERT_EQ(Sql(Path("newer"), "PRAGMA user_version = 2"), "");
  std::ofstream(Path("empty")).close();
  fs::create_directory(folder_ / "folder");
  struct Case {
    const char* name;
    StatusCode code;
    const char* part;
  };
  for (const Case& c :
       {Case{"text", StatusCode::kInvalidData, "not an SQLite database"},
        Case{"app.db", StatusCode::kInvalidData, "not a privacy ledger"},
        Case{"newer", StatusCode::kUnsupported, "newer"}, Case{"folder", StatusCode::kIo, "cannot be opened"},
        Case{"missing/ledger", StatusCode::kIo, "cannot be opened"}}) {
    const std::string before = ReadFile(Path(c.name));
    const auto opened = Ledger::Open(Path(c.name), kOptions);
    ASSERT_FALSE(opened.ok()) << c.name;
    EXPECT_EQ(opened.status().code(), c.code) << opened.status().message();
    EXPECT_NE(opened.status().message().find(c.part), std::string::npos) << opened.status().message();
    EXPECT_NE(opened.status().message().find(c.name), std::string::npos) << opened.status().message();
    EXPECT_EQ(ReadFile(Path(c.name)), before) << c.name;
  }
  EXPECT_FALSE(Ledger::OpenExisting(Path("nothing")).ok());
  EXPECT_FALSE(Ledger::OpenExisting(Path("empty")).ok());
  EXPECT_TRUE(Ledger::Open(Path("empty"), kOptions).ok());
  EXPECT_FALSE(Ledger::Open(":memory:", kOptions).ok());
}

// Every page of the file in turn is overwritten: the ledger must say that it is damaged, or still hold every charge.
TEST_F(LedgerTest, DamageIsNoticedOrHarmless) {
  {
    Ledger ledger = MustOpen(Path());
    for (int i = 0; i < 120; ++i)
      ASSERT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "run " + std::to_string(i)}).ok());
  }
  const std::string whole = ReadFile(Path());
  ASSERT_EQ(whole.size() % 4096, 0u);
  int noticed = 0;
  for (size_t page = 0; page < whole.size() / 4096; ++page) {
    std::string damaged = whole;
    for (size_t i = 0; i < 4096; i += 3) damaged[page * 4096 + i] = static_cast<char>(damaged[page * 4096 + i] ^ 0x5a);
    std::ofstream(Path("damaged"), std::ios::binary) << damaged;
    fs::remove(Path("damaged-wal"));
    fs::remove(Path("damaged-shm"));
    auto opened = Ledger::OpenExisting(Path("damaged"));
    const bool intact = opened.ok() && opened->Entries().ok() && opened->Entries()->size() == 120;
    noticed += !intact;
    if (opened.ok() && !intact) {
      EXPECT_FALSE(opened->Spent(AtDelta()).ok());
    }
  }
  EXPECT_GE(noticed, 4);
  std::ofstream(Path("damaged"), std::ios::binary) << whole.substr(0, whole.size() / 2);
  EXPECT_FALSE(Ledger::OpenExisting(Path("damaged")).ok());
}

TEST_F(LedgerTest, EntriesCannotBeChangedOrRemovedByOthers) {
  {
    Ledger ledger = MustOpen(Path());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
    ASSERT_TRUE(ledger.MarkReleased(2).ok());
  }
  EXPECT_NE(Sql(Path(), "DELETE FROM entries"), "");
  EXPECT_NE(Sql(Path(), "DELETE FROM entries WHERE id = 3"), "");
  EXPECT_NE(Sql(Path(), "UPDATE entries SET mechanism = ''"), "");
  EXPECT_NE(Sql(Path(), "UPDATE entries SET state = 'charged' WHERE id = 2"), "");
  EXPECT_EQ(MustOpen(Path()).Entries()->size(), 3u);
  // Whoever removes the guard as well is still noticed, also when it is the newest entry that goes.
  ASSERT_EQ(Sql(Path(), "DROP TRIGGER entries_stay; DELETE FROM entries WHERE id = 3"), "");
  const auto opened = Ledger::OpenExisting(Path());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("missing"), std::string::npos) << opened.status().message();
}

TEST_F(LedgerTest, ReadOnlyFileIsAnError) {
  MustOpen(Path());
  chmod(Path().c_str(), 0444);
  chmod(folder_.c_str(), 0555);
  // The superuser may write anything: ask as somebody else.
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
    const auto opened = Ledger::Open(Path(), kOptions);
    _exit(!opened.ok() && opened.status().code() == StatusCode::kIo &&
                  opened.status().message().find(Path()) != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  chmod(folder_.c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

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

// Processes that charge until they are refused: together they reach the limit and do not pass it.
TEST_F(LedgerTest, ProcessesCannotSpendTheSameBudget) {
  constexpr int kProcesses = 4;
  constexpr uint64_t kFits = 90;
  {
    Ledger ledger = MustOpen(Path());
    ASSERT_TRUE(ledger.SetLimit(LimitOf(*PldEpsilon(std::vector<Mechanism>{Steps(kFits)}, AtDelta()))).ok());
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

constexpr int kChargesPerLife = 4;

// Two lives of an app: open, charge, report each charge that returned (where noise would be drawn), close.
[[noreturn]] void ChargeAndReport(const std::string& path, int pipe_end, const CrashPlan& plan) {
  if (!InstallCrashVfs(plan)) _exit(3);
  for (int life = 0; life < 2; ++life) {
    auto ledger = Ledger::Open(path, kOptions);
    if (!ledger.ok()) _exit(4);
    for (int i = 0; i < kChargesPerLife; ++i) {
      const auto id = ledger->Charge({.mechanism = Steps(1), .run = std::string(700, 'r')});
      if (!id.ok()) _exit(5);
      if (write(pipe_end, &*id, sizeof *id) != sizeof *id) _exit(6);
    }
  }
  _exit(0);
}

// Runs that in a child; the identifiers reported and the child's exit code.
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

// After the crash at every single operation, one after the other: what was reported is there, the ledger works on.
// Returns the number of operations that a run without a crash makes.
int64_t CrashEverywhere(const fs::path& folder, CrashKind kind, bool torn, uint64_t seed) {
  for (int64_t k = 1; k < 5000; ++k) {
    const std::string path = (folder / ("crash" + std::to_string(k))).string();
    const auto [reported, code] = RunToCrash(path, {.kind = kind, .at_operation = k, .torn = torn, .seed = seed});
    EXPECT_TRUE(code == kCrashExitCode || code == 0) << "child at operation " << k << " ended with " << code;
    auto ledger = Ledger::Open(path, kOptions);
    EXPECT_TRUE(ledger.ok()) << "operation " << k << ": " << ledger.status().message();
    if (!ledger.ok()) return -1;
    const auto entries = ledger->Entries();
    EXPECT_TRUE(entries.ok()) << "operation " << k;
    if (!entries.ok()) return -1;
    EXPECT_GE(entries->size(), reported.size()) << "operation " << k << ": noise was drawn on a charge that is gone";
    EXPECT_LE(entries->size(), reported.size() + 1) << "operation " << k;
    EXPECT_TRUE(ledger->Charge({.mechanism = Steps(1), .run = "after"}).ok()) << "operation " << k;
    fs::remove(path);
    if (code == 0) {
      EXPECT_EQ(reported.size(), 2u * kChargesPerLife);
      return k - 1;
    }
    if (testing::Test::HasFailure()) return -1;
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
    for (int i = 0; i <= round % 4 && read(ends[0], &last, sizeof last) == sizeof last; ++i) {
    }
    kill(child, SIGKILL);
    for (ChargeId id; read(ends[0], &id, sizeof id) == sizeof id;) last = id;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    const auto entries = MustOpen(Path()).Entries();
    ASSERT_TRUE(entries.ok());
    ASSERT_GE(static_cast<ChargeId>(entries->size()), last);
  }
}

TEST_F(LedgerTest, ExportSaysEverything) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.SetLimit(LimitOf(8)).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(10), .run = "a \"quoted\" run", .purpose = "training"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(10), .run = "b"}).ok());
  const auto json = nlohmann::json::parse(*ledger.ExportJson(AtDelta()));
  EXPECT_EQ(json["dataset"], "watch history");
  EXPECT_EQ(json["privacy_unit"], "session");
  EXPECT_EQ(json["limit"]["epsilon"], 8.0);
  EXPECT_EQ(json["epsilon"].get<double>(), *ledger.Spent(AtDelta()));
  EXPECT_EQ(json["entries"].size(), 2u);
  EXPECT_EQ(json["entries"][0]["run"], "a \"quoted\" run");
  EXPECT_EQ(json["composition"].size(), 1u);
  EXPECT_EQ(json["composition"][0], Steps(20).ToText());

  Ledger reproducible = MustOpen(Path("other"));
  ASSERT_TRUE(reproducible.Charge({.mechanism = Steps(10), .run = "a", .noise = NoiseKind::kReproducible}).ok());
  const auto without = nlohmann::json::parse(*reproducible.ExportJson(AtDelta()));
  EXPECT_TRUE(without["epsilon"].is_null());
  EXPECT_EQ(without["note"], "noise: reproducible, no guarantee");
}

}  // namespace
}  // namespace wisp::privacy
