#include "runtime/privacy/ledger.h"

#include <mutex>
#include <utility>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger_composition.h"
#include "runtime/privacy/ledger_database.h"

namespace wisp::privacy {
namespace {

constexpr char kNow[] = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";
constexpr char kSelectEntries[] =
    "SELECT id, time, run, purpose, noise, mechanism, loss_slack, state FROM entries WHERE id > ? ORDER BY id";

Status Damaged(const Database& database, const std::string& what) {
  return InvalidData("ledger '" + database.path() + "' is damaged: " + what);
}

Status NotAName(const char* what, std::string_view text, const char* allowed) {
  return InvalidData(std::string(what) + " is '" + std::string(text) + "', allowed are " + allowed);
}

Result<LedgerEntry> ReadEntry(const Database& database, const Statement& row) {
  const std::string name = "entry " + std::to_string(row.Number(0));
  auto mechanism = Mechanism::FromText(row.Text(5));
  if (!mechanism.ok()) return Damaged(database, name + ": " + mechanism.status().message());
  auto noise = NoiseKindFromText(row.Text(4));
  if (!noise.ok()) return Damaged(database, name + ": " + noise.status().message());
  return LedgerEntry{.id = row.Number(0),
                     .time_utc = row.Text(1),
                     .run = row.Text(2),
                     .purpose = row.Text(3),
                     .mechanism = *std::move(mechanism),
                     .noise = *noise,
                     .loss_slack = row.Real(6),
                     .state = row.Text(7) == "released" ? LedgerEntry::State::kReleased : LedgerEntry::State::kCharged};
}

// All entries with an identifier above `after`, in order.
Result<std::vector<LedgerEntry>> ReadEntries(Database& database, ChargeId after) {
  WISP_ASSIGN_OR_RETURN(Statement rows, database.Prepare(kSelectEntries));
  rows.Bind(0, after);
  std::vector<LedgerEntry> entries;
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return entries;
    WISP_ASSIGN_OR_RETURN(LedgerEntry entry, ReadEntry(database, rows));
    entries.push_back(std::move(entry));
  }
}

Result<std::optional<EpsilonDelta>> ReadLimit(Database& database) {
  WISP_ASSIGN_OR_RETURN(Statement rows, database.Prepare("SELECT epsilon, delta FROM limits ORDER BY id DESC LIMIT 1"));
  WISP_ASSIGN_OR_RETURN(const bool row, rows.Step());
  if (!row) return std::optional<EpsilonDelta>();
  auto limit = EpsilonDelta::Create(rows.Real(0), rows.Real(1));
  if (!limit.ok()) return Damaged(database, limit.status().message());
  return std::optional<EpsilonDelta>(*limit);
}

}  // namespace

std::string_view ToText(PrivacyUnit unit) {
  switch (unit) {
    case PrivacyUnit::kUser: return "user";
    case PrivacyUnit::kSession: return "session";
    case PrivacyUnit::kDay: return "day";
    case PrivacyUnit::kInteraction: return "interaction";
  }
  return "unknown";
}

Result<PrivacyUnit> PrivacyUnitFromText(std::string_view text) {
  for (PrivacyUnit unit : {PrivacyUnit::kUser, PrivacyUnit::kSession, PrivacyUnit::kDay, PrivacyUnit::kInteraction}) {
    if (text == ToText(unit)) return unit;
  }
  return NotAName("the privacy unit", text, "user, session, day, interaction");
}

std::string_view ToText(NoiseKind noise) { return noise == NoiseKind::kSecure ? "secure" : "reproducible"; }

Result<NoiseKind> NoiseKindFromText(std::string_view text) {
  for (NoiseKind noise : {NoiseKind::kSecure, NoiseKind::kReproducible}) {
    if (text == ToText(noise)) return noise;
  }
  return NotAName("the kind of noise", text, "secure, reproducible");
}

struct Ledger::Impl {
  explicit Impl(Database d) : database(std::move(d)) {}

  struct Subject {
    std::string dataset;
    PrivacyUnit unit = PrivacyUnit::kSession;
    Adjacency adjacency = Adjacency::kAddRemove;
  };

  // What the ledger is of.
  Result<Subject> ReadSubject() {
    WISP_ASSIGN_OR_RETURN(Statement row, database.Prepare("SELECT name, unit, adjacency FROM dataset"));
    WISP_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (!found) return Damaged(database, "it names no data set");
    auto unit = PrivacyUnitFromText(row.Text(1));
    if (!unit.ok()) return Damaged(database, unit.status().message());
    auto adjacency = AdjacencyFromText(row.Text(2));
    if (!adjacency.ok()) return Damaged(database, adjacency.status().message());
    return Subject{row.Text(0), *unit, *adjacency};
  }

  Status CheckUnit(const Subject& there, PrivacyUnit unit, Adjacency adjacency) const {
    if (there.unit == unit && there.adjacency == adjacency) return OkStatus();
    return InvalidData("ledger '" + database.path() + "' protects a " + std::string(ToText(there.unit)) + " under " + std::string(ToText(there.adjacency)) +
                       ", asked for was a " + std::string(ToText(unit)) + " under " + std::string(ToText(adjacency)) + ": costs of different units do not add up");
  }

  Status CheckDataset(const Subject& there, const std::string& dataset) const {
    if (there.dataset.empty() || dataset.empty() || there.dataset == dataset) return OkStatus();
    return PrivacyRefused("ledger '" + database.path() + "' is of the data set '" + there.dataset + "', and what is to be charged is '" + dataset +
                          "': what is spent on one must not be counted for the other");
  }

  // To be called before the database is read or, with `make`, written: a ledger that was not there may be by now, and that of
  // another process may be of something else. Then nothing is read from it or charged to it, now or later.
  Status Attach(bool make) {
    WISP_RETURN_IF_ERROR(mismatch);
    if (!database.is_pending()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const bool attached, database.Attach(make));
    if (!attached) return OkStatus();
    mismatch = InvalidData("ledger '" + database.path() + "' could not be read when it was made");  // unless all of this succeeds
    WISP_ASSIGN_OR_RETURN(const Subject there, ReadSubject());
    mismatch = CheckUnit(there, subject.unit, subject.adjacency);
    if (mismatch.ok()) mismatch = CheckDataset(there, subject.dataset);
    return mismatch;
  }

  // Brings `composition` up to date with what this and other processes have written.
  Status Refresh() {
    WISP_ASSIGN_OR_RETURN(const std::vector<LedgerEntry> entries, ReadEntries(database, last_id));
    for (const LedgerEntry& e : entries) {
      composition.Add(e.mechanism, e.noise, e.loss_slack);
      check.Recorded(e.mechanism, e.noise, e.loss_slack);
      last_id = e.id;
    }
    return OkStatus();
  }

  // What can be said of a charge whatever else was charged.
  Status CheckAlone(const ChargeRequest& charge) const {
    if (charge.mechanism.adjacency() != subject.adjacency) {
      return PrivacyRefused("the mechanism is private under " + std::string(ToText(charge.mechanism.adjacency())) +
                            ", the data set of ledger '" + database.path() + "' is protected under " +
                            std::string(ToText(subject.adjacency)));
    }
    return CheckAccountable({&charge.mechanism, 1});
  }

  std::mutex mutex;
  Database database;
  Subject subject;   // as it was opened: never changed, so read without the mutex
  Status mismatch;   // why the file that was made meanwhile is not the one wanted
  // Of the entries 1 .. last_id, which never change.
  Composition composition;
  ChargeId last_id = 0;
  LimitCheck check;
};

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;

const std::string& Ledger::dataset() const { return impl_->subject.dataset; }
PrivacyUnit Ledger::unit() const { return impl_->subject.unit; }
Adjacency Ledger::adjacency() const { return impl_->subject.adjacency; }

Result<Ledger> Ledger::OpenImpl(const std::string& path, const LedgerOptions* options) {
  Database::OpenOptions open{
      .path = path, .missing = Database::Missing::kError, .busy_timeout_ms = LedgerOptions().busy_timeout_ms};
  if (options != nullptr) {
    open.missing = Database::Missing::kLater;
    open.dataset = options->dataset;
    open.unit = ToText(options->unit);
    open.adjacency = ToText(options->adjacency);
    open.busy_timeout_ms = options->busy_timeout_ms;
  }
  WISP_ASSIGN_OR_RETURN(Database opened, Database::Open(open));
  auto impl = std::make_unique<Impl>(std::move(opened));
  WISP_ASSIGN_OR_RETURN(impl->subject, impl->ReadSubject());
  if (options != nullptr && !options->any_unit) WISP_RETURN_IF_ERROR(impl->CheckUnit(impl->subject, options->unit, options->adjacency));
  return Ledger(std::move(impl));
}

Result<Ledger> Ledger::Open(const std::string& path, const LedgerOptions& options) { return OpenImpl(path, &options); }
Result<Ledger> Ledger::OpenExisting(const std::string& path) { return OpenImpl(path, nullptr); }

Status Ledger::CheckDataset(const std::string& dataset) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  return impl_->CheckDataset(impl_->subject, dataset);
}

Status Ledger::SetLimit(const EpsilonDelta& limit) {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/true));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_ASSIGN_OR_RETURN(
      Statement insert,
      impl_->database.Prepare(std::string("INSERT INTO limits (time, epsilon, delta) VALUES (") + kNow + ", ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, limit.epsilon()).Bind(1, limit.delta()).Run());
  return transaction.Commit();
}

Status Ledger::CheckLimit(const EpsilonDelta& limit) const {
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  WISP_ASSIGN_OR_RETURN(const double spent, Spent(delta));
  if (spent <= limit.epsilon()) return OkStatus();
  return PrivacyRefused("the budget is to be " + ShortText(limit.epsilon(), 6) + ", but epsilon " + ShortText(spent, 6) + " at delta " + ShortText(limit.delta(), 6) +
                        " is spent on the data set already: nothing could be charged any more; the limit stays as it was");
}

Result<std::optional<EpsilonDelta>> Ledger::Limit() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  return ReadLimit(impl_->database);
}

Result<ChargeId> Ledger::Charge(const ChargeRequest& charge) {
  if (!(charge.loss_slack >= 0 && charge.loss_slack <= 1)) {
    return InvalidArgument("the loss slack of a charge is " + DoubleText(charge.loss_slack) + ", allowed is 0 to 1");
  }
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->CheckAlone(charge));
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/true));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  WISP_RETURN_IF_ERROR(impl_->composition.CheckNoise(charge.noise));
  WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> limit, ReadLimit(impl_->database));
  if (limit) WISP_RETURN_IF_ERROR(impl_->check.Check(impl_->composition, charge, *limit));
  WISP_ASSIGN_OR_RETURN(
      Statement insert,
      impl_->database.Prepare(
          std::string("INSERT INTO entries (time, run, purpose, noise, mechanism, loss_slack) VALUES (") + kNow +
          ", ?, ?, ?, ?, ?)"));
  WISP_RETURN_IF_ERROR(insert.Bind(0, charge.run)
                           .Bind(1, charge.purpose)
                           .Bind(2, ToText(charge.noise))
                           .Bind(3, charge.mechanism.ToText())
                           .Bind(4, charge.loss_slack)
                           .Run());
  const ChargeId id = impl_->database.last_insert_id();
  // Should the commit fail after all, the entry may or may not be there: then Refresh finds it by its identifier.
  WISP_RETURN_IF_ERROR(transaction.Commit());
  impl_->composition.Add(charge.mechanism, charge.noise, charge.loss_slack);
  impl_->last_id = id;
  impl_->check.Recorded(charge.mechanism, charge.noise, charge.loss_slack);
  return id;
}

Status Ledger::CheckFits(std::span<const ChargeRequest> charges, const std::optional<EpsilonDelta>& new_limit) const {
  if (charges.empty()) return OkStatus();
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  Composition after = impl_->composition;
  for (const ChargeRequest& charge : charges) {
    WISP_RETURN_IF_ERROR(impl_->CheckAlone(charge));
    WISP_RETURN_IF_ERROR(after.CheckNoise(charge.noise));
    after.Add(charge.mechanism, charge.noise, charge.loss_slack);
  }
  if (new_limit) return CheckRunFits(impl_->composition, after, *new_limit);
  WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> limit, ReadLimit(impl_->database));
  return limit ? CheckRunFits(impl_->composition, after, *limit) : OkStatus();
}

Status Ledger::MarkReleased(ChargeId id) {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_ASSIGN_OR_RETURN(Statement update,
                        impl_->database.Prepare("UPDATE entries SET state = 'released' WHERE id = ?"));
  WISP_RETURN_IF_ERROR(update.Bind(0, id).Run());
  if (impl_->database.changes() == 1) return OkStatus();
  return InvalidArgument("ledger '" + impl_->database.path() + "' has no charge " + std::to_string(id));
}

Result<double> Ledger::Spent(const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  return impl_->composition.Epsilon(delta);
}

Result<double> Ledger::SpentByRun(const std::string& run, const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_ASSIGN_OR_RETURN(const std::vector<LedgerEntry> entries, ReadEntries(impl_->database, 0));
  Composition composition;
  for (const LedgerEntry& e : entries) {
    if (e.run == run) composition.Add(e.mechanism, e.noise, e.loss_slack);
  }
  return composition.Epsilon(delta);
}

Result<std::vector<LedgerEntry>> Ledger::Entries() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  return ReadEntries(impl_->database, 0);
}

Result<std::string> Ledger::ExportJson(const Delta& delta) const {
  WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> limit, Limit());
  WISP_ASSIGN_OR_RETURN(const std::vector<LedgerEntry> entries, Entries());
  Composition composition;
  for (const LedgerEntry& e : entries) composition.Add(e.mechanism, e.noise, e.loss_slack);
  JsonWriter json;
  json.BeginObject();
  json.Key("dataset").Value(dataset());
  json.Key("privacy_unit").Value(ToText(unit()));
  json.Key("adjacency").Value(ToText(adjacency()));
  json.Key("limit");
  if (limit) {
    json.BeginObject().Key("epsilon").Value(limit->epsilon()).Key("delta").Value(limit->delta()).EndObject();
  } else {
    json.Null();
  }
  json.Key("delta").Value(delta.value());
  json.Key("epsilon");
  if (composition.has_reproducible()) {
    json.Null().Key("note").Value("noise: reproducible, no guarantee");
  } else {
    WISP_ASSIGN_OR_RETURN(const double epsilon, composition.Epsilon(delta));
    json.Value(epsilon);
  }
  json.Key("composition").BeginArray();
  for (const Mechanism& m : composition.mechanisms()) json.Value(m.ToText());
  json.EndArray().Key("entries").BeginArray();
  for (const LedgerEntry& e : entries) {
    json.BeginObject();
    json.Key("id").Value(static_cast<uint64_t>(e.id)).Key("time").Value(e.time_utc).Key("run").Value(e.run);
    json.Key("purpose")
        .Value(e.purpose)
        .Key("noise")
        .Value(ToText(e.noise))
        .Key("mechanism")
        .Value(e.mechanism.ToText());
    json.Key("loss_slack").Value(e.loss_slack);
    json.Key("state").Value(e.state == LedgerEntry::State::kReleased ? "released" : "charged");
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace wisp::privacy
