#include "runtime/privacy/ledger/ledger_upgrade.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/privacy/ledger/ledger_rows.h"

namespace wisp::privacy {
namespace {

constexpr const char* kTablesOfVersion1 = R"sql(
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
)sql";

Result<LedgerSubject> ReadSubjectOfVersion1(Database& database) {
  WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare("SELECT name, unit, adjacency, created FROM dataset"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return Damaged(database, "it names no data set");
  const auto unit = PrivacyUnitFromText(row.Text(1));
  if (!unit.ok()) return Damaged(database, unit.status().message());
  const auto adjacency = AdjacencyFromText(row.Text(2));
  if (!adjacency.ok()) return Damaged(database, adjacency.status().message());
  // Version 1 did not say who chose the unit. The default of its programs, the user, and that of its library were
  // nobody's choice.
  const bool chosen = *unit != PrivacyUnit::kUser && *unit != PrivacyUnit::kSession;
  LedgerSubject subject{row.Text(0), *unit, *adjacency, chosen, row.Text(3)};
  WISP_ASSIGN_OR_RETURN(subject.random_id, NewRandomId());
  return subject;
}

Result<std::vector<LedgerLimit>> ReadLimitsOfVersion1(Database& database) {
  WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare("SELECT time, epsilon, delta FROM limits ORDER BY id"));
  std::vector<LedgerLimit> limits;
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return limits;
    const auto limit = EpsilonDelta::Create(row.Real(1), row.Real(2));
    if (!limit.ok()) return Damaged(database, limit.status().message());
    limits.push_back({.time_utc = row.Text(0), .limit = *limit});
  }
}

Result<std::vector<LedgerEntry>> ReadEntriesOfVersion1(Database& database) {
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      database.Prepare("SELECT id, time, run, purpose, noise, mechanism, loss_slack, state FROM entries ORDER BY id"));
  std::vector<LedgerEntry> entries;
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return entries;
    const std::string name = "entry " + std::to_string(row.Number(0));
    if (row.Number(0) != static_cast<int64_t>(entries.size()) + 1)
      return Damaged(database, "entry " + std::to_string(entries.size() + 1) + " is missing");
    const auto mechanism = Mechanism::FromText(row.Text(5));
    if (!mechanism.ok()) return Damaged(database, name + ": " + mechanism.status().message());
    const auto noise = NoiseKindFromText(row.Text(4));
    if (!noise.ok()) return Damaged(database, name + ": " + noise.status().message());
    entries.push_back(
        {.time_utc = row.Text(1),
         .run = row.Text(2),
         .purpose = row.Text(3),
         .mechanism = *mechanism,
         .noise = *noise,
         .loss_slack = row.Real(6),
         .state = row.Text(7) == "released" ? LedgerEntry::State::kReleased : LedgerEntry::State::kCharged});
  }
}

// Version 1 remembered the last identifier it gave, so entries that are missing at the end are known too.
Status CheckLastEntry(Database& database, size_t num_entries) {
  WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare("SELECT seq FROM sqlite_sequence WHERE name = 'entries'"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found || row.Number(0) <= static_cast<int64_t>(num_entries)) return OkStatus();
  return Damaged(database, "entry " + std::to_string(row.Number(0)) + " is missing");
}

template <typename Row>
bool Earlier(const Row& a, const Row& b) {
  return a.time_utc < b.time_utc;
}

// Version 1 has times, in seconds, and no order between limits and entries. In doubt a limit came later: then nothing
// holds by it that was charged before. Only the first one and the first charge may share a second, as a run sets its
// limit right before.
bool WasBefore(const LedgerLimit& limit, bool first_limit, const LedgerEntry& entry, bool first_entry) {
  return limit.time_utc < entry.time_utc || (first_limit && first_entry && limit.time_utc == entry.time_utc);
}

Status UpgradeFromVersion1(Database& database) {
  WISP_ASSIGN_OR_RETURN(const LedgerSubject subject, ReadSubjectOfVersion1(database));
  WISP_ASSIGN_OR_RETURN(std::vector<LedgerLimit> limits, ReadLimitsOfVersion1(database));
  WISP_ASSIGN_OR_RETURN(std::vector<LedgerEntry> entries, ReadEntriesOfVersion1(database));
  WISP_RETURN_IF_ERROR(CheckLastEntry(database, entries.size()));
  // The triggers of a table go with it.
  WISP_RETURN_IF_ERROR(database.Execute("DROP TABLE entries; DROP TABLE limits; DROP TABLE dataset"));
  WISP_RETURN_IF_ERROR(CreateTables(database, subject));
  LedgerPosition at;
  WISP_RETURN_IF_ERROR(ReadSubject(database, &at).status());
  auto limit = limits.begin();
  const bool in_order = std::is_sorted(entries.begin(), entries.end(), Earlier<LedgerEntry>) &&
                        std::is_sorted(limits.begin(), limits.end(), Earlier<LedgerLimit>);
  for (LedgerEntry& entry : entries) {
    for (; limit != limits.end() && in_order &&
           WasBefore(*limit, limit == limits.begin(), entry, &entry == entries.data());
         ++limit) {
      WISP_ASSIGN_OR_RETURN(at, Append(database, at, *limit));
    }
    WISP_ASSIGN_OR_RETURN(at, Append(database, at, entry));
  }
  for (; limit != limits.end(); ++limit) {
    WISP_ASSIGN_OR_RETURN(at, Append(database, at, *limit));
  }
  return OkStatus();
}

Status UpgradeFromVersion2(Database& database) {
  LedgerPosition at;
  WISP_ASSIGN_OR_RETURN(const LedgerSubject subject, ReadSubject(database, &at));
  WISP_ASSIGN_OR_RETURN(LedgerRows rows, ReadRowsAfter(database, at, 2));
  WISP_RETURN_IF_ERROR(
      database.Execute("DROP TABLE entries; DROP TABLE plan_mechanisms; DROP TABLE plans; DROP TABLE limits; "
                       "DROP TABLE head; DROP TABLE dataset"));
  WISP_RETURN_IF_ERROR(CreateTables(database, subject));
  WISP_RETURN_IF_ERROR(InOrder(rows, [&](auto& row) -> Status {
    WISP_ASSIGN_OR_RETURN(at, Append(database, at, row));
    return OkStatus();
  }));
  return at == rows.end ? OkStatus() : Damaged(database, "its rows could not be written as they were");
}

}  // namespace

Status CheckTablesOf(Database& database, int64_t version) {
  if (version == kLedgerVersion) return CheckTables(database);
  return CheckTables(database, version == 1 ? kTablesOfVersion1 : kTablesOfVersion2);
}

Status Upgrade(Database& database, int64_t version) {
  WISP_RETURN_IF_ERROR(CheckTablesOf(database, version));
  return version == 1 ? UpgradeFromVersion1(database) : UpgradeFromVersion2(database);
}

}  // namespace wisp::privacy
