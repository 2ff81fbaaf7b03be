#include "runtime/privacy/ledger/ledger_tables.h"

#include <string>

#include "runtime/privacy/ledger/ledger_rows.h"

namespace wisp::privacy {
namespace {

// Triggers refuse to change or remove rows, whatever program holds the file, except that a charge may be marked as
// released. That guards against mistakes; whatever circumvents it breaks the chain. Entries count 1, 2, 3, ... without
// gaps.
constexpr char kTables[] = R"sql(
CREATE TABLE dataset (
  id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, unit TEXT NOT NULL, adjacency TEXT NOT NULL,
  created TEXT NOT NULL, unit_chosen INTEGER NOT NULL CHECK (unit_chosen IN (0, 1)), id_random BLOB NOT NULL);
CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, chain BLOB NOT NULL);
CREATE TABLE limits (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, chain BLOB NOT NULL);
CREATE TABLE plans (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, run TEXT NOT NULL, purpose TEXT NOT NULL, settings TEXT NOT NULL,
  record TEXT NOT NULL, chain BLOB NOT NULL);
CREATE TABLE plan_mechanisms (
  plan_seq INTEGER NOT NULL, position INTEGER NOT NULL, mechanism TEXT NOT NULL,
  loss_slack REAL NOT NULL CHECK (loss_slack >= 0), PRIMARY KEY (plan_seq, position)) WITHOUT ROWID;
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time TEXT NOT NULL, run TEXT NOT NULL, purpose TEXT NOT NULL,
  noise TEXT NOT NULL CHECK (noise IN ('secure', 'reproducible')), mechanism TEXT NOT NULL,
  loss_slack REAL NOT NULL CHECK (loss_slack >= 0), plan INTEGER NOT NULL DEFAULT 0, record TEXT NOT NULL,
  chain BLOB NOT NULL,
  state TEXT NOT NULL DEFAULT 'charged' CHECK (state IN ('charged', 'released')));
CREATE TABLE results (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, entry INTEGER NOT NULL, text TEXT NOT NULL, chain BLOB NOT NULL);
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'spent budget cannot be taken back'); END;
CREATE TRIGGER entries_are_final BEFORE UPDATE OF id, seq, time, run, purpose, noise, mechanism, loss_slack, plan,
  record, chain ON entries BEGIN SELECT RAISE(ABORT, 'spent budget cannot be changed'); END;
CREATE TRIGGER entries_release_once BEFORE UPDATE OF state ON entries WHEN NEW.state <> 'released'
  BEGIN SELECT RAISE(ABORT, 'a released charge stays released'); END;
CREATE TRIGGER limits_stay BEFORE DELETE ON limits
  BEGIN SELECT RAISE(ABORT, 'a limit that was set stays on record'); END;
CREATE TRIGGER limits_are_final BEFORE UPDATE ON limits
  BEGIN SELECT RAISE(ABORT, 'a limit that was set stays on record'); END;
CREATE TRIGGER results_stay BEFORE DELETE ON results
  BEGIN SELECT RAISE(ABORT, 'what was released stays on record'); END;
CREATE TRIGGER results_are_final BEFORE UPDATE ON results
  BEGIN SELECT RAISE(ABORT, 'what was released stays on record'); END;
CREATE TRIGGER plans_stay BEFORE DELETE ON plans
  BEGIN SELECT RAISE(ABORT, 'a plan stays on record'); END;
CREATE TRIGGER plans_are_final BEFORE UPDATE ON plans
  BEGIN SELECT RAISE(ABORT, 'a plan stays on record'); END;
CREATE TRIGGER plan_mechanisms_stay BEFORE DELETE ON plan_mechanisms
  BEGIN SELECT RAISE(ABORT, 'a plan stays on record'); END;
CREATE TRIGGER plan_mechanisms_are_final BEFORE UPDATE ON plan_mechanisms
  BEGIN SELECT RAISE(ABORT, 'a plan stays on record'); END;
PRAGMA application_id = 0x77697370;
PRAGMA user_version = 1;
)sql";

// The text of all tables and triggers.
constexpr char kSelectTables[] =
    "SELECT coalesce(group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, ''), char(10)), '') "
    "FROM (SELECT * FROM sqlite_master ORDER BY type, name)";

}  // namespace

Status MakeTables(Database& database) { return database.Execute(kTables); }

Status CheckTables(Database& database) {
  WISP_ASSIGN_OR_RETURN(Database expected, Database::InMemory(database.path()));
  WISP_RETURN_IF_ERROR(MakeTables(expected));
  std::string texts[2];
  Database* const both[2] = {&expected, &database};
  for (int i = 0; i < 2; ++i) {
    WISP_ASSIGN_OR_RETURN(Statement row, both[i]->Prepare(kSelectTables));
    WISP_RETURN_IF_ERROR(row.Step().status());
    texts[i] = row.Text(0);
  }
  return texts[0] == texts[1] ? OkStatus() : Damaged(database, "its tables are not those of a ledger");
}

}  // namespace wisp::privacy
