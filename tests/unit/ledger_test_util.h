// What the tests of the ledger share: a fixture with a folder, and mechanisms for which the accountant is quick.
#ifndef WISP_TESTS_UNIT_LEDGER_TEST_UTIL_H_
#define WISP_TESTS_UNIT_LEDGER_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/privacy/ledger.h"
#include "tests/unit/temporary_folder.h"

namespace wisp::privacy {

// A folder of its own for every test.
class LedgerTest : public ::testing::Test {
 protected:
  std::string Path(const char* name = "test.ledger") const { return folder_ / name; }

  test::TemporaryFolder folder_;
};

inline const LedgerOptions kOptions{.dataset = "watch history"};

// Parameters for which the accountant is quick.
inline Mechanism Steps(uint64_t steps, double noise_multiplier = 20, double q = 0.1) {
  return *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = noise_multiplier, .sampling_probability = q, .steps = steps});
}
inline Delta AtDelta(double delta = 1e-6) { return *Delta::Create(delta); }
inline EpsilonDelta LimitOf(double epsilon, double delta = 1e-6) { return *EpsilonDelta::Create(epsilon, delta); }

inline Ledger MustOpen(const std::string& path) {
  auto ledger = Ledger::Open(path, kOptions);
  EXPECT_TRUE(ledger.ok()) << ledger.status().message();
  return *std::move(ledger);
}

// An empty ledger as version 1 made it, letter by letter.
inline constexpr char kVersion1[] = R"sql(
CREATE TABLE dataset (
  id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, unit TEXT NOT NULL, adjacency TEXT NOT NULL,
  created TEXT NOT NULL);
CREATE TABLE limits (
  id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, run TEXT NOT NULL, purpose TEXT NOT NULL,
  noise TEXT NOT NULL CHECK (noise IN ('secure', 'reproducible')), mechanism TEXT NOT NULL,
  loss_slack REAL NOT NULL CHECK (loss_slack >= 0),
  state TEXT NOT NULL DEFAULT 'charged' CHECK (state IN ('charged', 'released')));
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'spent budget cannot be taken back'); END;
CREATE TRIGGER entries_are_final BEFORE UPDATE OF id, time, run, purpose, noise, mechanism, loss_slack ON entries
  BEGIN SELECT RAISE(ABORT, 'spent budget cannot be changed'); END;
CREATE TRIGGER entries_release_once BEFORE UPDATE OF state ON entries WHEN NEW.state <> 'released'
  BEGIN SELECT RAISE(ABORT, 'a released charge stays released'); END;
INSERT INTO dataset VALUES (1, 'watch history', 'session', 'add_remove', '2026-05-01T12:00:00Z');
PRAGMA application_id = 0x77697370;
PRAGMA user_version = 1;
)sql";

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_LEDGER_TEST_UTIL_H_
