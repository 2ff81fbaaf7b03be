#include "runtime/privacy/ledger/ledger_rows.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "runtime/core/date.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/privacy/ledger/ledger_chain.h"
#include "runtime/privacy/ledger/ledger_tables.h"

namespace wisp::privacy {
namespace {

constexpr size_t kRandomIdBytes = 16;

std::string_view AsText(const ChainValue& chain) { return {reinterpret_cast<const char*>(chain.data()), chain.size()}; }

// nullopt for a blob of another length.
std::optional<ChainValue> AsChain(const std::string& blob) {
  ChainValue chain;
  if (blob.size() != chain.size()) return std::nullopt;
  std::copy(blob.begin(), blob.end(), chain.begin());
  return chain;
}

// ---- Hashes of rows: everything but an entry's state, which is for display ----

ChainLink MakeLink(const LedgerSubject& s) {
  return std::move(ChainLink("wisp ledger 1, data set")
                       .Text(s.dataset)
                       .Text(ToText(s.unit))
                       .Text(ToText(s.adjacency))
                       .Text(s.created_utc)
                       .Number(s.unit_chosen ? 1 : 0)
                       .Text(s.random_id));
}

ChainLink MakeLink(const LedgerLimit& l) {
  return std::move(ChainLink("limit").Number(l.seq).Text(l.time_utc).Real(l.limit.epsilon()).Real(l.limit.delta()));
}

// "" if the row does not define a record: then it costs as much as samples from weights.
std::string RecordText(const std::optional<RecordSpec>& record) { return record ? record->ToText() : ""; }

ChainLink MakeLink(const LedgerPlan& p) {
  ChainLink link("plan");
  link.Number(p.seq)
      .Text(p.time_utc)
      .Text(p.run)
      .Text(p.purpose)
      .Text(p.settings)
      .Text(RecordText(p.record))
      .Number(p.mechanisms.size());
  for (const PlannedMechanism& m : p.mechanisms) link.Text(m.mechanism.ToText()).Real(m.loss_slack);
  return link;
}

ChainLink MakeLink(const LedgerEntry& e) {
  return std::move(ChainLink("entry")
                       .Number(e.seq)
                       .Number(static_cast<uint64_t>(e.id))
                       .Text(e.time_utc)
                       .Text(e.run)
                       .Text(e.purpose)
                       .Text(ToText(e.noise))
                       .Text(e.mechanism.ToText())
                       .Real(e.loss_slack)
                       .Number(e.plan)
                       .Text(RecordText(e.record)));
}

ChainLink MakeLink(const LedgerResult& r) {
  return std::move(
      ChainLink("result").Number(r.seq).Text(r.time_utc).Number(static_cast<uint64_t>(r.entry)).Text(r.text));
}

// ---- Reading ----

// A row's place in the chain.
struct Place {
  uint64_t seq;
  ChainLink link;
  std::string stored;
};

template <typename T>
Result<T> Checked(const Database& database, const std::string& row, Result<T> value) {
  if (value.ok()) return value;
  return Damaged(database, row + ": " + value.status().message());
}

Status ReadLimits(Database& database, uint64_t after, LedgerRows& rows, std::vector<Place>& places) {
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      database.Prepare("SELECT seq, time, epsilon, delta, chain FROM limits WHERE seq > ? ORDER BY seq"));
  row.Bind(0, static_cast<int64_t>(after));
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const EpsilonDelta limit, Checked(database, "limit " + std::to_string(row.Number(0)),
                                                            EpsilonDelta::Create(row.Real(2), row.Real(3))));
    rows.limits.push_back({.seq = static_cast<uint64_t>(row.Number(0)), .time_utc = row.Text(1), .limit = limit});
    places.push_back({rows.limits.back().seq, MakeLink(rows.limits.back()), row.Blob(4)});
  }
}

Status ReadPlanMechanisms(Database& database, LedgerPlan& plan) {
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      database.Prepare("SELECT mechanism, loss_slack FROM plan_mechanisms WHERE plan_seq = ? ORDER BY position"));
  row.Bind(0, static_cast<int64_t>(plan.seq));
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const Mechanism mechanism,
                          Checked(database, "plan " + std::to_string(plan.seq), Mechanism::FromText(row.Text(0))));
    plan.mechanisms.push_back({mechanism, row.Real(1)});
  }
}

Result<Statement> PrepareAfter(Database& database, const std::string& sql, uint64_t after) {
  WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare(sql));
  row.Bind(0, static_cast<int64_t>(after));
  return row;
}

// "" is read as nullopt.
Result<std::optional<RecordSpec>> ReadRecord(const Database& database, const std::string& row,
                                             const std::string& text) {
  if (text.empty()) return std::optional<RecordSpec>();
  WISP_ASSIGN_OR_RETURN(RecordSpec record, Checked(database, row, RecordSpec::FromText(text)));
  return std::optional(std::move(record));
}

Status ReadPlans(Database& database, uint64_t after, LedgerRows& rows, std::vector<Place>& places) {
  WISP_ASSIGN_OR_RETURN(Statement row,
                        PrepareAfter(database,
                                     "SELECT seq, time, run, purpose, chain, settings, record FROM plans "
                                     "WHERE seq > ? ORDER BY seq",
                                     after));
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return OkStatus();
    LedgerPlan plan{.seq = static_cast<uint64_t>(row.Number(0)),
                    .time_utc = row.Text(1),
                    .run = row.Text(2),
                    .purpose = row.Text(3),
                    .settings = row.Text(5)};
    WISP_ASSIGN_OR_RETURN(plan.record, ReadRecord(database, "plan " + std::to_string(plan.seq), row.Text(6)));
    WISP_RETURN_IF_ERROR(ReadPlanMechanisms(database, plan));
    places.push_back({plan.seq, MakeLink(plan), row.Blob(4)});
    rows.plans.push_back(std::move(plan));
  }
}

Status ReadResults(Database& database, uint64_t after, LedgerRows& rows, std::vector<Place>& places) {
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      PrepareAfter(database, "SELECT seq, time, entry, text, chain FROM results WHERE seq > ? ORDER BY seq", after));
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return OkStatus();
    rows.results.push_back({.seq = static_cast<uint64_t>(row.Number(0)),
                            .time_utc = row.Text(1),
                            .entry = row.Number(2),
                            .text = row.Text(3)});
    places.push_back({rows.results.back().seq, MakeLink(rows.results.back()), row.Blob(4)});
  }
}

Status ReadEntries(Database& database, ChargeId after, LedgerRows& rows, std::vector<Place>& places) {
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      PrepareAfter(database,
                   "SELECT id, time, run, purpose, noise, mechanism, loss_slack, state, seq, plan, chain, record "
                   "FROM entries WHERE id > ? ORDER BY id",
                   static_cast<uint64_t>(after)));
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return OkStatus();
    const std::string name = "entry " + std::to_string(row.Number(0));
    WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, Checked(database, name, Mechanism::FromText(row.Text(5))));
    WISP_ASSIGN_OR_RETURN(const NoiseKind noise, Checked(database, name, NoiseKindFromText(row.Text(4))));
    WISP_ASSIGN_OR_RETURN(std::optional<RecordSpec> record, ReadRecord(database, name, row.Text(11)));
    rows.entries.push_back(
        {.id = row.Number(0),
         .seq = static_cast<uint64_t>(row.Number(8)),
         .time_utc = row.Text(1),
         .run = row.Text(2),
         .purpose = row.Text(3),
         .mechanism = mechanism,
         .noise = noise,
         .loss_slack = row.Real(6),
         .plan = static_cast<uint64_t>(row.Number(9)),
         .record = std::move(record),
         .state = row.Text(7) == "released" ? LedgerEntry::State::kReleased : LedgerEntry::State::kCharged});
    const LedgerEntry& entry = rows.entries.back();
    if (entry.id != ++rows.end.last_id)
      return Damaged(database, "entry " + std::to_string(rows.end.last_id) + " is missing");
    places.push_back({entry.seq, MakeLink(entry), row.Blob(10)});
  }
}

struct Head {
  uint64_t seq;
  std::optional<ChainValue> chain;
};

Result<Head> ReadHead(Database& database) {
  WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare("SELECT seq, chain FROM head"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return Damaged(database, "it does not say how many rows it has");
  return Head{static_cast<uint64_t>(row.Number(0)), AsChain(row.Blob(1))};
}

// Sorts `places` and follows the chain over them, from `end` on.
Status Follow(const Database& database, std::vector<Place>& places, LedgerPosition& end) {
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.seq < b.seq; });
  for (const Place& place : places) {
    if (place.seq != end.seq + 1) return Damaged(database, "row " + std::to_string(end.seq + 1) + " is missing");
    end.chain = place.link.After(end.chain);
    end.seq = place.seq;
    if (place.stored != AsText(end.chain))
      return Damaged(database, "row " + std::to_string(end.seq) + " is not what was written");
  }
  return OkStatus();
}

Status MoveHead(Database& database, const LedgerPosition& from, const LedgerPosition& to) {
  WISP_ASSIGN_OR_RETURN(Statement update,
                        database.Prepare("UPDATE head SET seq = ?, chain = ? WHERE seq = ? AND chain = ?"));
  WISP_RETURN_IF_ERROR(update.Bind(0, static_cast<int64_t>(to.seq))
                           .BindBlob(1, AsText(to.chain))
                           .Bind(2, static_cast<int64_t>(from.seq))
                           .BindBlob(3, AsText(from.chain))
                           .Run());
  return database.changes() == 1 ? OkStatus() : Damaged(database, "its head is not where its rows end");
}

// The position after a row that is about to be written.
template <typename Row>
LedgerPosition Advance(const LedgerPosition& at, Row& row) {
  row.seq = at.seq + 1;
  if (row.time_utc.empty()) row.time_utc = UtcNow();
  return {.seq = row.seq, .last_id = at.last_id};
}

}  // namespace

std::string UtcNow() {
  timespec now{};
  // C11's timespec_get is missing on Android before version 10.
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return "";
  std::string text = UtcTime(now.tv_sec) + ".";
  date_parts::Append(text, static_cast<int>(now.tv_nsec / 1000), 6);
  return text + "Z";
}

Result<std::string> NewRandomId() {
  std::string id(kRandomIdBytes, '\0');
  if (platform::GetEntropy(id.data(), id.size()) == 0) return id;
  return IoError("the operating system gave no random bytes to name a new ledger with");
}

Status Damaged(const Database& database, const std::string& what) {
  return InvalidData("ledger '", database.path(), "' is damaged: ", OneLine(what),
                     "; what was spent cannot be told, restore it from a copy");
}

Status CreateTables(Database& database, const LedgerSubject& s) {
  WISP_RETURN_IF_ERROR(MakeTables(database));
  WISP_ASSIGN_OR_RETURN(Statement insert, database.Prepare("INSERT INTO dataset VALUES (1, ?, ?, ?, ?, ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, s.dataset)
                           .Bind(1, ToText(s.unit))
                           .Bind(2, ToText(s.adjacency))
                           .Bind(3, s.created_utc)
                           .Bind(4, int64_t{s.unit_chosen})
                           .BindBlob(5, s.random_id)
                           .Run());
  WISP_ASSIGN_OR_RETURN(Statement head, database.Prepare("INSERT INTO head VALUES (1, 0, ?)"));
  return head.BindBlob(0, AsText(MakeLink(s).After({}))).Run();
}

Result<LedgerSubject> ReadSubject(Database& database, LedgerPosition* start) {
  WISP_ASSIGN_OR_RETURN(Statement row,
                        database.Prepare("SELECT name, unit, adjacency, created, unit_chosen, id_random FROM dataset"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return Damaged(database, "it names no data set");
  WISP_ASSIGN_OR_RETURN(const PrivacyUnit unit, Checked(database, "its unit", PrivacyUnitFromText(row.Text(1))));
  WISP_ASSIGN_OR_RETURN(const Adjacency adjacency, Checked(database, "its adjacency", AdjacencyFromText(row.Text(2))));
  LedgerSubject subject{row.Text(0), unit, adjacency, row.Number(4) != 0, row.Text(3), row.Blob(5)};
  if (start != nullptr) *start = {.chain = MakeLink(subject).After({})};
  return subject;
}

Result<LedgerRows> ReadRowsAfter(Database& database, const LedgerPosition& after) {
  WISP_ASSIGN_OR_RETURN(const Snapshot snapshot, Snapshot::Begin(database));
  WISP_ASSIGN_OR_RETURN(const Head head, ReadHead(database));
  LedgerRows rows{.end = after};
  // Usually there is nothing new. From the start on everything is read, because a row after the head must not go
  // unnoticed.
  if (after.seq != 0 && head.seq == after.seq && head.chain == after.chain) return rows;
  std::vector<Place> places;
  WISP_RETURN_IF_ERROR(ReadLimits(database, after.seq, rows, places));
  WISP_RETURN_IF_ERROR(ReadPlans(database, after.seq, rows, places));
  WISP_RETURN_IF_ERROR(ReadEntries(database, after.last_id, rows, places));
  WISP_RETURN_IF_ERROR(ReadResults(database, after.seq, rows, places));
  WISP_RETURN_IF_ERROR(Follow(database, places, rows.end));
  if (head.seq == rows.end.seq && head.chain == rows.end.chain) return rows;
  return Damaged(database, "rows are missing, it has " + std::to_string(rows.end.seq) + " where " +
                               std::to_string(head.seq) + " were written");
}

Result<ChainValue> ReadChainAt(Database& database, uint64_t seq) {
  LedgerPosition start;
  WISP_RETURN_IF_ERROR(ReadSubject(database, &start).status());
  if (seq == 0) return start.chain;
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      database.Prepare(
          "SELECT chain FROM limits WHERE seq = ?1 UNION ALL SELECT chain FROM plans WHERE seq = ?1 "
          "UNION ALL SELECT chain FROM entries WHERE seq = ?1 UNION ALL SELECT chain FROM results WHERE seq = ?1"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Bind(0, static_cast<int64_t>(seq)).Step());
  const std::optional<ChainValue> chain = found ? AsChain(row.Blob(0)) : std::nullopt;
  if (!chain) return Damaged(database, "row " + std::to_string(seq) + " is missing");
  return *chain;
}

Result<Receipt> ReadReceipt(Database& database, const std::string& run, ChargeId newest) {
  WISP_ASSIGN_OR_RETURN(
      Statement row, database.Prepare("SELECT chain FROM entries WHERE run = ? AND id <= ? ORDER BY id DESC LIMIT 1"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.Bind(0, run).Bind(1, static_cast<int64_t>(newest)).Step());
  return found ? row.Blob(0) : Receipt();
}

Result<bool> HasReceipt(Database& database, const Receipt& receipt) {
  WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare("SELECT 1 FROM entries WHERE chain = ?"));
  return row.BindBlob(0, receipt).Step();
}

Result<uint64_t> ReadFirstCharge(Database& database, const Receipt& receipt) {
  WISP_ASSIGN_OR_RETURN(
      Statement row,
      database.Prepare(
          "SELECT seq FROM entries WHERE run = (SELECT run FROM entries WHERE chain = ?) ORDER BY id LIMIT 1"));
  WISP_ASSIGN_OR_RETURN(const bool found, row.BindBlob(0, receipt).Step());
  return found ? static_cast<uint64_t>(row.Number(0)) : 0;
}

Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerLimit& limit) {
  LedgerPosition next = Advance(at, limit);
  next.chain = MakeLink(limit).After(at.chain);
  WISP_ASSIGN_OR_RETURN(
      Statement insert,
      database.Prepare("INSERT INTO limits (seq, time, epsilon, delta, chain) VALUES (?, ?, ?, ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, static_cast<int64_t>(limit.seq))
                           .Bind(1, limit.time_utc)
                           .Bind(2, limit.limit.epsilon())
                           .Bind(3, limit.limit.delta())
                           .BindBlob(4, AsText(next.chain))
                           .Run());
  WISP_RETURN_IF_ERROR(MoveHead(database, at, next));
  return next;
}

Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerResult& result) {
  LedgerPosition next = Advance(at, result);
  next.chain = MakeLink(result).After(at.chain);
  WISP_ASSIGN_OR_RETURN(Statement insert,
                        database.Prepare("INSERT INTO results (seq, time, entry, text, chain) VALUES (?, ?, ?, ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, static_cast<int64_t>(result.seq))
                           .Bind(1, result.time_utc)
                           .Bind(2, result.entry)
                           .Bind(3, result.text)
                           .BindBlob(4, AsText(next.chain))
                           .Run());
  WISP_RETURN_IF_ERROR(MoveHead(database, at, next));
  return next;
}

Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerPlan& plan) {
  LedgerPosition next = Advance(at, plan);
  next.chain = MakeLink(plan).After(at.chain);
  WISP_ASSIGN_OR_RETURN(Statement insert, database.Prepare("INSERT INTO plans (seq, time, run, purpose, chain, "
                                                           "settings, record) VALUES (?, ?, ?, ?, ?, ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, static_cast<int64_t>(plan.seq))
                           .Bind(1, plan.time_utc)
                           .Bind(2, plan.run)
                           .Bind(3, plan.purpose)
                           .BindBlob(4, AsText(next.chain))
                           .Bind(5, plan.settings)
                           .Bind(6, RecordText(plan.record))
                           .Run());
  for (size_t i = 0; i < plan.mechanisms.size(); ++i) {
    WISP_ASSIGN_OR_RETURN(
        Statement mechanism,
        database.Prepare(
            "INSERT INTO plan_mechanisms (plan_seq, position, mechanism, loss_slack) VALUES (?, ?, ?, ?)"));
    WISP_RETURN_IF_ERROR(mechanism.Bind(0, static_cast<int64_t>(plan.seq))
                             .Bind(1, static_cast<int64_t>(i))
                             .Bind(2, plan.mechanisms[i].mechanism.ToText())
                             .Bind(3, plan.mechanisms[i].loss_slack)
                             .Run());
  }
  WISP_RETURN_IF_ERROR(MoveHead(database, at, next));
  return next;
}

Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerEntry& entry) {
  LedgerPosition next = Advance(at, entry);
  entry.id = next.last_id = at.last_id + 1;
  next.chain = MakeLink(entry).After(at.chain);
  WISP_ASSIGN_OR_RETURN(
      Statement insert,
      database.Prepare(
          "INSERT INTO entries (id, seq, time, run, purpose, noise, mechanism, loss_slack, plan, chain, state, "
          "record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, entry.id)
                           .Bind(1, static_cast<int64_t>(entry.seq))
                           .Bind(2, entry.time_utc)
                           .Bind(3, entry.run)
                           .Bind(4, entry.purpose)
                           .Bind(5, ToText(entry.noise))
                           .Bind(6, entry.mechanism.ToText())
                           .Bind(7, entry.loss_slack)
                           .Bind(8, static_cast<int64_t>(entry.plan))
                           .BindBlob(9, AsText(next.chain))
                           .Bind(10, entry.state == LedgerEntry::State::kReleased ? "released" : "charged")
                           .Bind(11, RecordText(entry.record))
                           .Run());
  WISP_RETURN_IF_ERROR(MoveHead(database, at, next));
  return next;
}

}  // namespace wisp::privacy
