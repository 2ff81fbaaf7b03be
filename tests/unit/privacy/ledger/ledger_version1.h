// A ledger of version 1, for tests and the fuzzer.
#ifndef WISP_TESTS_UNIT_PRIVACY_LEDGER_LEDGER_VERSION1_H_
#define WISP_TESTS_UNIT_PRIVACY_LEDGER_LEDGER_VERSION1_H_

namespace wisp::privacy {

// SQL that makes it, letter by letter as that version did, without limits and entries.
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

#endif  // WISP_TESTS_UNIT_PRIVACY_LEDGER_LEDGER_VERSION1_H_
