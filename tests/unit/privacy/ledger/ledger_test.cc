// The ledger: what it keeps and what it refuses. ledger_crash_test.cc tests crashes and several processes.
#include "runtime/privacy/ledger/ledger.h"

#include <sqlite3.h>
#if !defined(_WIN32)
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_test {
namespace {

namespace fs = std::filesystem;

// Runs SQL on the file as another program would; returns the error message, empty on success.
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

// Plans, like a caller that knows all mechanisms beforehand.
void Plan(Ledger& ledger, const std::vector<Mechanism>& mechanisms) {
  std::vector<ChargeRequest> charges;
  for (const Mechanism& m : mechanisms) charges.push_back({.mechanism = m, .run = "all"});
  ASSERT_TRUE(ledger.WritePlan("all", "everything", charges).ok());
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
  EXPECT_EQ(entries[0].time_utc.size(), 27u);
  EXPECT_EQ(entries[0].time_utc.back(), 'Z');
  EXPECT_EQ(entries[1].noise, NoiseKind::kSecure);
  EXPECT_EQ(entries[1].loss_slack, 0.25);
  EXPECT_EQ(entries[1].state, LedgerEntry::State::kCharged);
}

TEST_F(LedgerTest, SpentIsTheAccountantsFigureForEverything) {
  Ledger ledger = MustOpen(Path());
  EXPECT_EQ(*ledger.Spent(AtDelta()), 0);
  Plan(ledger, {Steps(300), Steps(50, 30)});
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(50, 30), .run = "b"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(200), .run = "b"}).ok());
  const std::vector<Mechanism> all = {Steps(300), Steps(50, 30)}, run_a = {Steps(100)};
  EXPECT_DOUBLE_EQ(*ledger.Spent(AtDelta()), *PldEpsilon(all, AtDelta()));
  EXPECT_DOUBLE_EQ(ledger.SpentByRun("a", AtDelta())->epsilon, *PldEpsilon(run_a, AtDelta()));
  EXPECT_EQ(ledger.SpentByRun("nobody", AtDelta())->epsilon, 0);
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
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(1e9)).ok());
  const auto refused = ledger.Charge({.mechanism = Steps(1), .run = "a", .noise = NoiseKind::kReproducible});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(*ledger.Spent(AtDelta()), 0);
  Ledger unlimited = MustOpen(Path("other.ledger"));
  ASSERT_TRUE(unlimited.Charge({.mechanism = Steps(1), .run = "a", .noise = NoiseKind::kReproducible}).ok());
  EXPECT_EQ(*unlimited.Spent(AtDelta()), INFINITY);
  ASSERT_TRUE(unlimited.SetLimit(MakeLimit(1e9)).ok());
  EXPECT_EQ(unlimited.Charge({.mechanism = Steps(1), .run = "b"}).status().code(), StatusCode::kPrivacyRefused);
}

// One experiment would take the epsilon from everything that was charged, forever; also one in another process.
TEST_F(LedgerTest, NoiseOfTwoKindsDoesNotMix) {
  for (NoiseKind first : {NoiseKind::kSecure, NoiseKind::kReproducible}) {
    const NoiseKind second = first == NoiseKind::kSecure ? NoiseKind::kReproducible : NoiseKind::kSecure;
    const std::string path = Path(std::string(ToText(first)).c_str());
    Ledger one = MustOpen(path), other = MustOpen(path);
    ASSERT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a", .noise = first}).ok());
    const ChargeRequest mixed{.mechanism = Steps(1), .run = "b", .noise = second};
    for (const Status& refused : {other.Charge(mixed).status(), other.CheckFits({&mixed, 1})}) {
      EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
      EXPECT_NE(refused.message().find("use a ledger of its own for experiments"), std::string::npos)
          << refused.message();
    }
    EXPECT_EQ(one.Entries()->size(), 1u);
    EXPECT_TRUE(other.Charge({.mechanism = Steps(1), .run = "b", .noise = first}).ok());
  }
}

// If a whole run fits, it can be charged to the last step. If not, it would have been charged in part.
TEST_F(LedgerTest, AWholeRunIsHeldAgainstTheLimit) {
  const double epsilon = *PldEpsilon(std::vector{Steps(30), Steps(20, 10)}, AtDelta());
  Ledger ledger = MustOpen(Path());
  Plan(ledger, {Steps(30), Steps(20, 10)});
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(10), .run = "before"}).ok());
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(epsilon)).ok());
  const std::vector<ChargeRequest> fits = {{.mechanism = Steps(20), .run = "a"},
                                           {.mechanism = Steps(20, 10), .run = "a"}};
  const std::vector<ChargeRequest> too_long = {{.mechanism = Steps(20), .run = "a"},
                                               {.mechanism = Steps(21, 10), .run = "a"}};
  EXPECT_TRUE(ledger.CheckFits({}).ok());
  EXPECT_EQ(ledger.CheckFits(too_long).code(), StatusCode::kPrivacyRefused);
  const std::vector<ChargeRequest> slack = {{.mechanism = Steps(20), .run = "a", .loss_slack = 0.01},
                                            {.mechanism = Steps(20, 10), .run = "a"}};
  EXPECT_EQ(ledger.CheckFits(slack).code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(ledger.CheckFits(fits).ok()) << ledger.CheckFits(fits).message();
  EXPECT_EQ(ledger.Entries()->size(), 1u);
  for (const ChargeRequest& charge : fits) EXPECT_TRUE(ledger.Charge(charge).ok());
  Ledger other = MustOpen(Path());  // has seen none of it yet
  EXPECT_EQ(other.CheckFits({fits.data(), 1}).code(), StatusCode::kPrivacyRefused);
}

TEST_F(LedgerTest, ARefusedChargeChangesNothingAndSaysWhy) {
  Ledger ledger = MustOpen(Path());
  const double limit = *PldEpsilon(std::vector<Mechanism>{Steps(150)}, AtDelta());
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(limit)).ok());
  EXPECT_EQ((*ledger.Limit())->epsilon(), limit);
  Plan(ledger, {Steps(150)});
  ASSERT_TRUE(ledger.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  const double before = *ledger.Spent(AtDelta());
  const auto refused = ledger.Charge({.mechanism = Steps(100), .run = "second run"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  for (const char* part : {"second run", "spent", "limit", "nothing was charged"}) {
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
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(*PldEpsilon(std::vector<Mechanism>{Steps(70)}, AtDelta()))).ok());
  Plan(ledger, {Steps(70)});
  int charged = 0;
  while (charged < 200 && ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok()) ++charged;
  EXPECT_EQ(charged, 70);
}

// The number that fits shrinks when another process spends, and is computed anew when the limit changes.
TEST_F(LedgerTest, OthersChargesAndANewLimitCountAtOnce) {
  Ledger one = MustOpen(Path()), other = MustOpen(Path());
  const auto limit_of = [](uint64_t steps) {
    return MakeLimit(*PldEpsilon(std::vector<Mechanism>{Steps(steps)}, AtDelta()));
  };
  ASSERT_TRUE(one.SetLimit(limit_of(400)).ok());
  Plan(one, {Steps(400)});
  ASSERT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_TRUE(other.Charge({.mechanism = Steps(398), .run = "b"}).ok());
  EXPECT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  EXPECT_FALSE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_TRUE(one.SetLimit(limit_of(800)).ok());
  ASSERT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_TRUE(other.Charge({.mechanism = Steps(20, 10), .run = "b"}).ok());
  EXPECT_FALSE(one.Charge({.mechanism = Steps(399), .run = "a"}).ok());
  EXPECT_TRUE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_TRUE(other.SetLimit(MakeLimit(1e-3)).ok());
  EXPECT_FALSE(one.Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

TEST_F(LedgerTest, PlanThatFillsTheLimit_LeavesNothingElse) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(*PldEpsilon(std::vector<Mechanism>{Steps(400)}, AtDelta()))).ok());
  Plan(ledger, {Steps(400)});
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
  ASSERT_TRUE(ledger.Charge({.mechanism = steps[0], .run = "a", .loss_slack = 1e-3}).ok());
  for (const Ledger& paid : {MustOpen(Path()), std::move(ledger)}) {
    EXPECT_EQ(paid.Entries()->at(0).loss_slack, 1e-3);
    EXPECT_GE(*paid.Spent(AtDelta()), free + 2e-3);
  }
  ledger = MustOpen(Path());
  for (double eta : {-1e-9, 1.5, std::nan(""), double{INFINITY}}) {
    EXPECT_EQ(ledger.Charge({.mechanism = steps[0], .run = "a", .loss_slack = eta}).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(LedgerTest, AnotherUnitOrAdjacencyIsRefused) {
  ASSERT_TRUE(MustOpen(Path()).SetLimit(MakeLimit(10)).ok());
  LedgerOptions options = kOptions;
  options.record = RecordSpec::OfEvents({.unit = PrivacyUnit::kInteraction});
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
  EXPECT_TRUE(renamed->CheckDataset("watch history").ok());
  const Status other = renamed->CheckDataset("renamed");
  EXPECT_EQ(other.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(other.message().find("'watch history'"), std::string::npos) << other.message();
  const Status forged = renamed->CheckDataset("a\x1b[31m\nepsilon 0.01");
  EXPECT_NE(forged.message().find("'a?[31m?epsilon 0.01'"), std::string::npos) << forged.message();
}

TEST_F(LedgerTest, TheFileIsMadeByTheFirstChargeOrLimit) {
  Ledger ledger = MustOpen(Path());
  for (const auto& [limit, fits] : {std::pair{1e-6, false}, std::pair{50.0, true}}) {
    const std::vector<ChargeRequest> run = {{.mechanism = Steps(100), .run = "a"}};
    EXPECT_EQ(ledger.CheckFits(run, MakeLimit(limit)).ok(), fits);
    EXPECT_EQ(*ledger.Spent(AtDelta()), 0);
    EXPECT_TRUE(ledger.Entries()->empty());
    EXPECT_FALSE(*ledger.Limit());
    EXPECT_FALSE(fs::exists(Path()));
  }
  const auto elsewhere = *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = 20, .sampling_probability = 0.1, .steps = 1, .adjacency = Adjacency::kZeroOut});
  EXPECT_EQ(ledger.Charge({.mechanism = elsewhere, .run = "a"}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_FALSE(fs::exists(Path()));
  EXPECT_EQ(*ledger.Charge({.mechanism = Steps(100), .run = "a"}), 1);
  EXPECT_EQ(Ledger::OpenExisting(Path())->Entries()->size(), 1u);
}

// A program may change its folder between opening a ledger and its first charge.
TEST_F(LedgerTest, ARelativePathIsThatOfTheOpening) {
  const fs::path before = fs::current_path();
  fs::create_directories(folder_ / "a");
  fs::create_directories(folder_ / "b");
  fs::current_path(fs::path(folder_ / "a"));
  Ledger ledger = MustOpen("relative");
  fs::current_path(fs::path(folder_ / "b"));
  EXPECT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(fs::path(folder_ / "a/relative")));
  EXPECT_FALSE(fs::exists(fs::path(folder_ / "b/relative")));
}

// A ledger that was missing when it was opened may have been made since: by another instance of this program, or for
// something else.
TEST_F(LedgerTest, ALedgerMadeMeanwhileIsTheOneThatCounts) {
  Ledger early = MustOpen(Path()), checked = MustOpen(Path()), late = MustOpen(Path());
  ASSERT_TRUE(early.Charge({.mechanism = Steps(100), .run = "a"}).ok());
  const double spent = *early.Spent(AtDelta());
  EXPECT_GT(spent, 0);
  EXPECT_EQ(*checked.Spent(AtDelta()), spent);
  EXPECT_EQ(*late.Charge({.mechanism = Steps(100), .run = "b"}), 2);
  for (const bool other_unit : {false, true}) {
    const std::string path = Path(other_unit ? "unit" : "name");
    Ledger waiting = MustOpen(path);
    auto other = Ledger::Open(
        path, {.dataset = other_unit ? "watch history" : "letters",
               .record = RecordSpec::OfEvents({.unit = other_unit ? PrivacyUnit::kDay : PrivacyUnit::kSession})});
    ASSERT_TRUE(other->Charge({.mechanism = Steps(1), .run = "a"}).ok());
    for (int again = 0; again < 3; ++again) EXPECT_FALSE(waiting.Charge({.mechanism = Steps(1), .run = "b"}).ok());
    EXPECT_FALSE(waiting.Spent(AtDelta()).ok());
    EXPECT_FALSE(waiting.SetLimit(MakeLimit(10)).ok());
    EXPECT_EQ(waiting.dataset(), "watch history");
    EXPECT_EQ(Ledger::OpenExisting(path)->Entries()->size(), 1u);
  }
}

TEST_F(LedgerTest, ChargesWithoutAProofAreRefused) {
  LedgerOptions options = kOptions;
  options.adjacency = Adjacency::kReplaceOne;
  auto ledger = Ledger::Open(Path(), options);
  ASSERT_TRUE(ledger.ok());
  // The first has the data set's adjacency, but sampling under replace-one; the second has another adjacency than the
  // data set.
  const auto replace_one = *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = 1, .sampling_probability = 0.1, .steps = 1, .adjacency = Adjacency::kReplaceOne});
  EXPECT_EQ(ledger->Charge({.mechanism = replace_one, .run = "a"}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(ledger->Charge({.mechanism = Steps(1), .run = "a"}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(ledger->Entries()->size(), 0u);
}

TEST_F(LedgerTest, WhatIsNotALedgerIsLeftAlone) {
  std::ofstream(Path("text")) << std::string(5000, 'x');
  ASSERT_EQ(Sql(Path("app.db"), "CREATE TABLE t (x); INSERT INTO t VALUES (1)"), "");
  ASSERT_TRUE(MustOpen(Path("newer")).SetLimit(MakeLimit(10)).ok());
  ASSERT_EQ(Sql(Path("newer"), "PRAGMA user_version = 2"), "");
  ASSERT_TRUE(MustOpen(Path("unknown")).SetLimit(MakeLimit(10)).ok());
  ASSERT_EQ(Sql(Path("unknown"), "PRAGMA user_version = 0"), "");
  std::ofstream(Path("empty")).close();
  fs::create_directory(folder_ / "folder");
  struct Case {
    const char* name;
    StatusCode code;
    const char* part;
  };
  for (const Case& c : {Case{"text", StatusCode::kInvalidData, "not an SQLite database"},
                        Case{"app.db", StatusCode::kInvalidData, "not a privacy ledger"},
                        Case{"newer", StatusCode::kUnsupported, "newer"},
                        Case{"unknown", StatusCode::kUnsupported, "has version 0, this build reads version 1"},
                        Case{"folder", StatusCode::kInvalidData, "is not a regular file"},
                        Case{"missing/ledger", StatusCode::kIo, "cannot be made"}}) {
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
  // Removing the guard as well is still noticed, even if the newest entry is deleted.
  ASSERT_EQ(Sql(Path(), "DROP TRIGGER entries_stay; DELETE FROM entries WHERE id = 3"), "");
  EXPECT_NE(Ledger::OpenExisting(Path()).status().message().find("tables are not those of a ledger"),
            std::string::npos);
  ASSERT_EQ(Sql(Path(),
                "CREATE TRIGGER entries_stay BEFORE DELETE ON entries\n"
                "  BEGIN SELECT RAISE(ABORT, 'spent budget cannot be taken back'); END"),
            "");
  const auto opened = Ledger::OpenExisting(Path());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("missing"), std::string::npos) << opened.status().message();
}

TEST_F(LedgerTest, ResultsStayWithTheirCharges) {
  Ledger ledger = MustOpen(Path());
  const ChargeId id = *ledger.Charge({.mechanism = Steps(1), .run = "a"});
  const double spent = *ledger.Spent(AtDelta());
  ASSERT_TRUE(ledger.AddResult(id, R"({"sum":3})").ok());
  EXPECT_EQ(ledger.AddResult(id + 1, "").code(), StatusCode::kInvalidArgument);
  const std::vector<LedgerResult> results = *MustOpen(Path()).Results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].entry, id);
  EXPECT_EQ(results[0].text, R"({"sum":3})");
  EXPECT_EQ(*ledger.Spent(AtDelta()), spent);
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
TEST_F(LedgerTest, ReadOnlyFileIsAnError) {
  MustOpen(Path());
  chmod(Path().c_str(), 0444);
  chmod(folder_.path().c_str(), 0555);
  // The superuser may write anything, so the test becomes another user.
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
  chmod(folder_.path().c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST_F(LedgerTest, ExportSaysEverything) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(8)).ok());
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
}  // namespace wisp::privacy::ledger_test
