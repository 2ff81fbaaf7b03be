// Ledgers that were crafted to harm whoever opens them: views and expressions that never end, pages that lead to each
// other. Large honest ledgers must still pass the bounds on work.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_database.h"
#include "runtime/privacy/ledger/ledger_rows.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_crafted_test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPage = 512;  // the smallest: trees grow high with few bytes

void Sql(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);  // triggers protect against mistakes only
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(handle);
}

int64_t Number(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  sqlite3_stmt* statement = nullptr;
  sqlite3_open(path.c_str(), &handle);
  sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  const int64_t number = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return number;
}

// Rows that were changed, removed or added by others are noticed.
TEST_F(LedgerTest, ChangedRowsAreNoticed) {
  for (const char* change : {"UPDATE results SET text = 'other'", "UPDATE plans SET settings = 'other'",
                             "UPDATE plans SET purpose = 'other'", "UPDATE entries SET plan = 0", "DELETE FROM results",
                             "INSERT INTO results SELECT 9, time, entry, text, chain FROM results"}) {
    fs::remove(Path());
    {
      Ledger ledger = MustOpen(Path());
      const ChargeRequest planned{.mechanism = Steps(1), .run = "a"};
      ASSERT_TRUE(ledger.WritePlan("p", "", {&planned, 1}, "{}").ok());
      ASSERT_TRUE(ledger.AddResult(*ledger.Charge(planned), "1").ok());
    }
    ASSERT_TRUE(Ledger::Open(Path(), kOptions).ok());
    Sql(Path(), change);
    EXPECT_EQ(Ledger::Open(Path(), kOptions).status().code(), StatusCode::kInvalidData) << change;
  }
}

// Makes a ledger with one limit, in small pages.
void MakeLedger(const std::string& path) {
  ASSERT_TRUE(MustOpen(path).SetLimit(MakeLimit(8)).ok());
  Sql(path, "PRAGMA page_size = " + std::to_string(kPage) + "; VACUUM");
}

// Opens the ledger to charge and to show; showing works on a copy.
void ExpectRefused(const std::string& path, const std::string& sentence) {
  const std::string shown = path + ".shown";
  fs::copy_file(path, shown, fs::copy_options::overwrite_existing);
  for (const Status& status : {Ledger::Open(path, kOptions).status(), Ledger::OpenExisting(shown).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidData) << status.message();
    EXPECT_NE(status.message().find(sentence), std::string::npos) << status.message();
  }
}

constexpr char kNotItsTables[] = "its tables are not those of a ledger";
constexpr char kTooMuchWork[] = "takes more work to open than a file of its size can need";
// Searching four million digits for two million takes some minutes in one operation of SQLite.
constexpr char kForever[] = "instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1') = 0";

TEST_F(LedgerTest, AViewInPlaceOfATableIsNotRead) {
  const std::pair<std::string, std::string> views[] = {
      {"dataset",
       "'a' AS name, 'session' AS unit, 'add_remove' AS adjacency, 'now' AS created, 1 AS unit_chosen, "
       "zeroblob(16) AS id_random"},
      {"limits", "i AS seq, 'now' AS time, 8.0 AS epsilon, 1e-6 AS delta, zeroblob(32) AS chain"},
      {"entries", "i AS id, i AS seq, 'now' AS time, 'r' AS run, '' AS purpose, 'secure' AS noise, '" +
                      Steps(1).ToText() +
                      "' AS mechanism, 0.0 AS loss_slack, 0 AS plan, 'all' AS part, '' AS record, zeroblob(32) AS "
                      "chain, 'charged' AS state"}};
  for (const auto& [table, columns] : views) {
    const std::string path = Path(table.c_str());
    // Endless, with a row each time and without any.
    for (const char* rows : {"", " WHERE i < 0"}) {
      fs::remove(path);
      MakeLedger(path);
      Sql(path, "DROP TABLE " + table + "; CREATE VIEW " + table +
                    " AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT " + columns +
                    " FROM n" + rows);
      ExpectRefused(path, kNotItsTables);
    }
  }
}

TEST_F(LedgerTest, TablesOtherThanThoseThatWereMadeAreRefused) {
  const std::pair<const char*, std::string> changes[] = {
      {"generated",
       "DROP TABLE limits; CREATE TABLE limits (seq INTEGER PRIMARY KEY, time TEXT NOT NULL, "
       "epsilon REAL AS (seq) NOT NULL, delta REAL NOT NULL, chain BLOB NOT NULL)"},
      {"virtual", "DROP TABLE limits; CREATE VIRTUAL TABLE limits USING fts5(seq, time, epsilon, delta, chain)"},
      {"trigger", "CREATE TRIGGER more AFTER INSERT ON limits BEGIN SELECT 1; END"},
      {"no trigger", "DROP TRIGGER entries_stay"},
      {"another table", "CREATE TABLE other(x)"},
      {"index", "CREATE INDEX by_run ON entries (run)"},
      {"check",
       "DROP TABLE dataset; CREATE TABLE dataset (id INTEGER PRIMARY KEY, name TEXT, unit TEXT, adjacency TEXT, "
       "created TEXT);"
       "INSERT INTO dataset VALUES (1, 'a', 'session', 'add_remove', 'now'); PRAGMA writable_schema = 1;"
       "UPDATE sqlite_schema SET sql = 'CREATE TABLE dataset (id INTEGER PRIMARY KEY, name TEXT, unit TEXT, adjacency "
       "TEXT, created TEXT CHECK (' || " +
           std::string("\"") + kForever + "\" || '))' WHERE name = 'dataset'"}};
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    MakeLedger(Path(name));
    Sql(Path(name), change);
    ExpectRefused(Path(name), kNotItsTables);
  }
}

// Checking the pages of a ledger also computes the expressions that its tables have for each row.
TEST_F(LedgerTest, TablesAreComparedBeforeTheirRowsAreChecked) {
  ASSERT_TRUE(MustOpen(Path()).Charge({.mechanism = Steps(1), .run = "a"}).ok());
  Sql(Path(), std::string("PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (loss_slack "
                          ">= 0)', 'CHECK (' || \"") +
                  kForever + "\" || ')') WHERE name = 'entries'");
  ExpectRefused(Path(), kNotItsTables);
}

void PutNumber(std::string& page, size_t at, size_t number, int bytes) {
  for (int i = 0; i < bytes; ++i)
    page[at + static_cast<size_t>(i)] = static_cast<char>(number >> (8 * (bytes - 1 - i)));
}

// Makes a page of a table's tree that leads to `child` this many times, and once more at its end. Pages are numbered
// from 1, and so are rows.
std::string InnerPage(size_t children, size_t child, size_t header = 0) {
  constexpr size_t kCell = 5;
  std::string page(kPage, '\0');
  page[header] = 5;
  PutNumber(page, header + 3, children, 2);
  PutNumber(page, header + 5, kPage - children * kCell, 2);
  PutNumber(page, header + 8, child, 4);
  for (size_t i = 0; i < children; ++i) {
    const size_t cell = kPage - (i + 1) * kCell;
    PutNumber(page, header + 12 + 2 * i, cell, 2);
    PutNumber(page, cell, child, 4);
    page[cell + 4] = static_cast<char>(i + 1);
  }
  return page;
}

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// Writes `bytes`, a database, with more pages, which its header counts.
void WritePages(const std::string& path, std::string bytes, const std::vector<std::string>& more) {
  for (const std::string& page : more) bytes += page;
  PutNumber(bytes, 28, bytes.size() / kPage, 4);
  std::ofstream(path, std::ios::binary) << bytes;
}

// Pages above the schema all lead to the next one, sixty times each: a file of 5 KB with 10^10 tables, all of one name.
TEST_F(LedgerTest, ASchemaWithoutEndIsRefused) {
  constexpr size_t kLevels = 6, kTimes = 60;
  Sql(Path(),
      "PRAGMA page_size = 512; CREATE TABLE x(a); PRAGMA application_id = 0x77697370; PRAGMA user_version = 1; "
      "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = 'CREATE TABLE IF NOT EXISTS x(a)'");
  std::string bytes = Bytes(Path());
  ASSERT_EQ(bytes.size(), 2 * kPage);
  // The first page becomes the last, as one of a tree without the header. Nothing in it is read by an offset that the
  // header moves.
  std::string leaf = bytes.substr(0, kPage);
  leaf.replace(0, 8, leaf.substr(100, 8)).replace(8, 2, leaf.substr(108, 2));
  std::vector<std::string> inner;
  for (size_t level = 0; level < kLevels; ++level) inner.push_back(InnerPage(kTimes, 4 + level));
  inner.push_back(leaf);
  bytes.replace(100, kPage - 100, InnerPage(40, 3, 100).substr(100));
  WritePages(Path(), bytes, inner);
  ExpectRefused(Path(), kTooMuchWork);
}

// A chain of pages, each below the one before it: a recursive reader would need a stack as high.
TEST_F(LedgerTest, ATreeAsHighAsTheFileIsLongIsRefused) {
  constexpr size_t kHeight = 20000;
  const std::string path = Path();
  MakeLedger(path);
  const auto root = static_cast<size_t>(Number(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'entries'"));
  std::string bytes = Bytes(path);
  const size_t pages = bytes.size() / kPage;
  const std::string leaf = bytes.substr((root - 1) * kPage, kPage);
  bytes.replace((root - 1) * kPage, kPage, InnerPage(0, pages + 1));
  std::vector<std::string> chain;
  for (size_t i = 1; i < kHeight; ++i) chain.push_back(InnerPage(0, pages + 1 + i));
  chain.push_back(leaf);
  WritePages(path, bytes, chain);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit stack{1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &stack);
    const Status status = Ledger::OpenExisting(path).status();
    _exit(status.message().find("is damaged") != std::string::npos ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(LedgerTest, WhatAFileSaysIsQuotedInOneLineThatNoTerminalActsOn) {
  const std::string escape = "\x1b]0;owned\x07 \n";
  MakeLedger(Path("schema"));
  Sql(Path("schema"), "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET name = '" + escape +
                          "', sql = 'CREATE TABLE \"" + escape + "\" oops'");
  ExpectRefused(Path("schema"), "malformed database schema (?]0;owned? ?)");
  MakeLedger(Path("row"));
  Sql(Path("row"),
      "INSERT INTO entries (id, seq, time, run, purpose, noise, mechanism, loss_slack, record, chain) VALUES "
      "(1, 2, '', '', '', 'secure', '" +
          escape + "', 0, '', '')");
  ExpectRefused(Path("row"), "entry 1: mechanism '?]0;owned? ?' is not one");
}

TEST_F(LedgerTest, TextMovedToTheNextColumnIsNoticed) {
  ASSERT_TRUE(MustOpen(Path()).Charge({.mechanism = Steps(1), .run = "ab", .purpose = "c"}).ok());
  Sql(Path(), "UPDATE entries SET run = 'a', purpose = 'bc'");
  ExpectRefused(Path(), "row 1 is not what was written");
}

// Its own link holds, because it was made on the same ledger; the next one's does not.
TEST_F(LedgerTest, ARowOfACopyThatWentAnotherWayIsNoticed) {
  ASSERT_TRUE(MustOpen(Path()).SetLimit(MakeLimit(8)).ok());
  fs::copy_file(Path(), Path("copy"));
  for (const char* run : {"a", "b"}) ASSERT_TRUE(MustOpen(Path()).Charge({.mechanism = Steps(10), .run = run}).ok());
  ASSERT_TRUE(MustOpen(Path("copy")).Charge({.mechanism = Steps(1), .run = "a"}).ok());
  Sql(Path(), "ATTACH '" + Path("copy") +
                  "' AS copy; UPDATE entries SET (time, mechanism, chain) = "
                  "(SELECT time, mechanism, chain FROM copy.entries) WHERE id = 1");
  ExpectRefused(Path(), "row 3 is not what was written");
}

// More rows than a ledger of years holds, as short as they can be.
TEST_F(LedgerTest, ALongHonestLedgerIsOpened) {
  constexpr size_t kEntries = 20000;
  ASSERT_TRUE(MustOpen(Path()).Charge({.mechanism = Steps(1), .run = ""}).ok());
  {
    auto database = Database::Open({.path = Path()});
    ASSERT_TRUE(database.ok()) << database.status().message();
    auto transaction = Transaction::Begin(*database);
    LedgerPosition at;
    ASSERT_TRUE(ReadSubject(*database, &at).ok());
    at = ReadRowsAfter(*database, at)->end;
    for (size_t i = 1; i < kEntries; ++i) {
      LedgerEntry entry{.mechanism = Steps(1)};
      at = *Append(*database, at, entry);
    }
    ASSERT_TRUE(transaction->Commit().ok());
  }
  const auto shown = Ledger::OpenExisting(Path());
  ASSERT_TRUE(shown.ok()) << shown.status().message();
  EXPECT_EQ(shown->Entries()->size(), kEntries);
  EXPECT_TRUE(MustOpen(Path()).Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

TEST_F(LedgerTest, APlanOfManyShortRowsIsOpened) {
  constexpr size_t kMechanisms = 5000;
  const Mechanism shortest = *Mechanism::Gaussian({.noise_multiplier = 9, .count = 1});
  ASSERT_TRUE(
      MustOpen(Path()).WritePlan("", "", std::vector<ChargeRequest>(kMechanisms, {.mechanism = shortest})).ok());
  const auto plans = MustOpen(Path()).Plans();
  ASSERT_TRUE(plans.ok()) << plans.status().message();
  EXPECT_EQ(plans->at(0).mechanisms.size(), kMechanisms);
}

}  // namespace
}  // namespace wisp::privacy::ledger_crafted_test
