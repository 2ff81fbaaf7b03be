#include "runtime/privacy/ledger.h"

#include <mutex>
#include <utility>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger_composition.h"
#include "runtime/privacy/ledger_database.h"
#include "runtime/privacy/ledger_rows.h"

namespace wisp::privacy {
namespace {

Status NotAName(const char* what, std::string_view text, const char* allowed) {
  return InvalidData(std::string(what) + " is '" + std::string(text) + "', allowed are " + allowed);
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

  // What the ledger is of, and all rows from the first on.
  Status Start() {
    position = {};
    WISP_ASSIGN_OR_RETURN(subject, ReadSubject(database, &position));
    return Refresh();
  }

  // All rows, checked anew.
  Result<LedgerRows> ReadAll() {
    WISP_RETURN_IF_ERROR(Attach(/*make=*/false));
    LedgerPosition start;
    WISP_RETURN_IF_ERROR(ReadSubject(database, &start).status());
    return ReadRowsAfter(database, start);
  }

  Status CheckUnit(const LedgerSubject& there, PrivacyUnit unit, Adjacency adjacency) const {
    if (there.unit == unit && there.adjacency == adjacency) return OkStatus();
    return InvalidData("ledger '" + database.path() + "' protects a " + std::string(ToText(there.unit)) + " under " + std::string(ToText(there.adjacency)) +
                       ", asked for was a " + std::string(ToText(unit)) + " under " + std::string(ToText(adjacency)) + ": costs of different units do not add up");
  }

  Status CheckDataset(const LedgerSubject& there, const std::string& dataset) const {
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
    LedgerPosition start;
    WISP_ASSIGN_OR_RETURN(const LedgerSubject there, ReadSubject(database, &start));
    mismatch = CheckUnit(there, subject.unit, subject.adjacency);
    if (mismatch.ok()) mismatch = CheckDataset(there, subject.dataset);
    position = start;
    return mismatch;
  }

  // Brings what is kept here up to date with what this and other processes have written.
  Status Refresh() {
    WISP_ASSIGN_OR_RETURN(const LedgerRows rows, ReadRowsAfter(database, position));
    for (const LedgerEntry& e : rows.entries) Take(e);
    if (!rows.limits.empty()) limit = rows.limits.back().limit;
    position = rows.end;
    return OkStatus();
  }

  void Take(const LedgerEntry& e) {
    composition.Add(e.mechanism, e.noise, e.loss_slack);
    check.Recorded(e.mechanism, e.noise, e.loss_slack);
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
  LedgerSubject subject;  // as it was opened: never changed, so read without the mutex
  Status mismatch;        // why the file that was made meanwhile is not the one wanted
  // Of the rows up to `position`, which never change.
  LedgerPosition position;
  Composition composition;
  std::optional<EpsilonDelta> limit;  // the newest
  LimitCheck check;
};

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;

const std::string& Ledger::dataset() const { return impl_->subject.dataset; }
PrivacyUnit Ledger::unit() const { return impl_->subject.unit; }
bool Ledger::unit_chosen() const { return impl_->subject.unit_chosen; }
Adjacency Ledger::adjacency() const { return impl_->subject.adjacency; }

Result<Ledger> Ledger::OpenImpl(const std::string& path, const LedgerOptions* options) {
  Database::OpenOptions open{
      .path = path, .missing = Database::Missing::kError, .busy_timeout_ms = LedgerOptions().busy_timeout_ms};
  if (options != nullptr) {
    open.missing = Database::Missing::kLater;
    open.create = [o = *options](Database& database) -> Status {
      LedgerSubject subject{o.dataset, o.unit, o.adjacency, o.unit_chosen, UtcNow()};
      WISP_ASSIGN_OR_RETURN(subject.random_id, NewRandomId());
      return CreateTables(database, subject);
    };
    open.busy_timeout_ms = options->busy_timeout_ms;
  }
  WISP_ASSIGN_OR_RETURN(Database opened, Database::Open(open));
  auto impl = std::make_unique<Impl>(std::move(opened));
  WISP_RETURN_IF_ERROR(impl->Start());
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
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  LedgerLimit row{.limit = limit};
  WISP_ASSIGN_OR_RETURN(const LedgerPosition after, Append(impl_->database, impl_->position, row));
  // Should the commit fail after all, the row may or may not be there: then Refresh finds it.
  WISP_RETURN_IF_ERROR(transaction.Commit());
  impl_->position = after;
  impl_->limit = limit;
  return OkStatus();
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
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  return impl_->limit;
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
  if (impl_->limit) WISP_RETURN_IF_ERROR(impl_->check.Check(impl_->composition, charge, *impl_->limit));
  LedgerEntry entry{.run = charge.run, .purpose = charge.purpose, .mechanism = charge.mechanism, .noise = charge.noise, .loss_slack = charge.loss_slack};
  WISP_ASSIGN_OR_RETURN(const LedgerPosition after, Append(impl_->database, impl_->position, entry));
  // Should the commit fail after all, the entry may or may not be there: then Refresh finds it.
  WISP_RETURN_IF_ERROR(transaction.Commit());
  impl_->Take(entry);
  impl_->position = after;
  return entry.id;
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
  return impl_->limit ? CheckRunFits(impl_->composition, after, *impl_->limit) : OkStatus();
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
  WISP_ASSIGN_OR_RETURN(const LedgerRows rows, impl_->ReadAll());
  Composition composition;
  for (const LedgerEntry& e : rows.entries) {
    if (e.run == run) composition.Add(e.mechanism, e.noise, e.loss_slack);
  }
  return composition.Epsilon(delta);
}

Result<std::vector<LedgerEntry>> Ledger::Entries() const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(LedgerRows rows, impl_->ReadAll());
  return std::move(rows.entries);
}

Result<std::vector<LedgerLimit>> Ledger::Limits() const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(LedgerRows rows, impl_->ReadAll());
  return std::move(rows.limits);
}

Result<std::vector<LedgerPlan>> Ledger::Plans() const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(LedgerRows rows, impl_->ReadAll());
  return std::move(rows.plans);
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
