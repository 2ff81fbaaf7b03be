#include "runtime/privacy/ledger/ledger.h"

#include <mutex>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_anchored.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "runtime/privacy/ledger/ledger_database.h"
#include "runtime/privacy/ledger/ledger_parts.h"
#include "runtime/privacy/ledger/ledger_rows.h"

namespace wisp::privacy {
struct Ledger::Impl {
  Impl(Database d, const LedgerOptions& options)
      : database(std::move(d)), anchored(options.anchor, options.begin_anchor) {}

  // What the ledger is of, and all rows from the first on.
  Status Start() {
    position = {};
    WISP_ASSIGN_OR_RETURN(subject, ReadSubject(database, &position));
    random_id = subject.random_id;
    return Refresh();
  }

  // What was written since, of a ledger that may be there by now.
  Status ReadNew() {
    WISP_RETURN_IF_ERROR(Attach(/*make=*/false));
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
    return PrivacyRefused("ledger '", database.path(), "' protects ", WithArticle(there.unit), " under ",
                          std::string(ToText(there.adjacency)), ", asked for was ", WithArticle(unit), " under ",
                          std::string(ToText(adjacency)), ": costs of different units do not add up");
  }

  Status CheckDataset(const LedgerSubject& there, const std::string& dataset) const {
    if (there.dataset.empty() || dataset.empty() || there.dataset == dataset) return OkStatus();
    return PrivacyRefused(
        "ledger '", database.path(), "' is of the data set '", OneLine(there.dataset),
        "', and what is to be charged is '", OneLine(dataset),
        "': what is spent on one must not be counted for the other (the same data in a file of another name: "
        "--dataset ",
        InShell(OneLine(there.dataset)), "; in the C interface: dataset)");
  }

  // To be called before the database is read or, with `make`, written: a ledger that was not there may be by now, and
  // that of another process may be of something else. Then nothing is read from it or charged to it, now or later.
  Status Attach(bool make) {
    WISP_RETURN_IF_ERROR(mismatch);
    if (!database.is_pending()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const bool attached, database.Attach(make));
    if (!attached) return OkStatus();
    // Unless all of this succeeds.
    mismatch = InvalidData("ledger '", database.path(), "' could not be read when it was made");
    LedgerPosition start;
    WISP_ASSIGN_OR_RETURN(const LedgerSubject there, ReadSubject(database, &start));
    mismatch = CheckUnit(there, subject.unit, subject.adjacency);
    if (mismatch.ok()) mismatch = CheckDataset(there, subject.dataset);
    position = start;
    random_id = there.random_id;
    return mismatch;
  }

  // Brings what is kept here up to date with what this and other processes have written.
  Status Refresh() {
    // Before the rows: who adds rows writes the anchor after them.
    WISP_ASSIGN_OR_RETURN(const auto known, anchored.Read(database));
    WISP_ASSIGN_OR_RETURN(const LedgerRows rows, ReadRowsAfter(database, position));
    const Status taken = InOrder(rows, [&](const auto& row) { return budget.Take(row); });
    if (!taken.ok()) return Damaged(database, taken.message());
    position = rows.end;
    return anchored.Check(known, database, random_id, position);
  }

  // What can be said of a charge whatever else was charged.
  Status CheckAlone(const ChargeRequest& charge) const {
    if (charge.mechanism.adjacency() != subject.adjacency) {
      return PrivacyRefused("the mechanism is private under ", std::string(ToText(charge.mechanism.adjacency())),
                            ", the data set of ledger '", database.path(), "' is protected under ",
                            std::string(ToText(subject.adjacency)));
    }
    return CheckAccountable({&charge.mechanism, 1});
  }

  // What can be said of all charges of one part before their cost.
  Status CheckEach(std::span<const ChargeRequest> charges) const {
    WISP_RETURN_IF_ERROR(budget.CheckParts(charges));
    for (const ChargeRequest& charge : charges) WISP_RETURN_IF_ERROR(CheckAlone(charge));
    return budget.CheckNoise(charges);
  }

  // Rows, in this order and all or none, and then the anchor.
  template <typename... Rows>
  Status Write(Transaction& transaction, Rows&... rows) {
    LedgerPosition after = position;
    Status status;
    const auto append = [&](auto& row) {
      if (!status.ok()) return;
      const Result<LedgerPosition> next = Append(database, after, row);
      if (next.ok()) after = *next;
      status = next.status();
    };
    (append(rows), ...);
    WISP_RETURN_IF_ERROR(status);
    // Should the commit fail after all, the rows may or may not be there: then Refresh finds them.
    WISP_RETURN_IF_ERROR(transaction.Commit());
    num_written += sizeof...(rows);
    const auto take = [&](const auto& row) {
      if (status.ok()) status = budget.Take(row);
    };
    (take(rows), ...);
    WISP_RETURN_IF_ERROR(status);
    position = after;
    return anchored.Keep(database, random_id, position);
  }

  Result<ChargeId> Charge(const ChargeRequest& charge) {
    WISP_RETURN_IF_ERROR(CheckAlone(charge));
    WISP_RETURN_IF_ERROR(Attach(/*make=*/true));
    WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
    WISP_RETURN_IF_ERROR(Refresh());
    WISP_RETURN_IF_ERROR(budget.CheckParts({&charge, 1}));
    WISP_RETURN_IF_ERROR(budget.CheckNoise({&charge, 1}));
    if (budget.limit()) {
      WISP_RETURN_IF_ERROR(
          budget.CheckLimits("charging " + charge.mechanism.Describe() + " to run '" + OneLine(charge.run) + "'",
                             budget.AfterCharge(charge), charge.part));
    }
    LedgerEntry entry{.run = charge.run,
                      .purpose = charge.purpose,
                      .mechanism = charge.mechanism,
                      .noise = charge.noise,
                      .loss_slack = charge.loss_slack,
                      .plan = budget.PlanFor(charge),
                      .part = charge.part};
    WISP_RETURN_IF_ERROR(Write(transaction, entry));
    return entry.id;
  }

  // The error of a charge, and what the run was charged before: that stays spent.
  Status WithWhatWasCharged(const Status& error, const std::string& run) {
    const Result<LedgerRows> rows = ReadAll();
    uint64_t steps = 0;
    if (rows.ok()) {
      for (const LedgerEntry& e : rows->entries) steps += e.run == run ? e.mechanism.steps() : 0;
    }
    if (steps == 0) return error;
    return Status(error.code(), error.message() + "; charged to run '" + OneLine(run) +
                                    "' before, and spent: " + Counted(steps, "step"));
  }

  uint64_t num_written = 0;
  std::mutex mutex;
  Database database;
  Anchored anchored;
  std::string random_id;  // of the file, as far as it is there
  LedgerSubject subject;  // as it was opened: never changed, so read without the mutex
  Status mismatch;        // why the file that was made meanwhile is not the one wanted
  // Of the rows up to `position`, which never change.
  LedgerPosition position;
  LedgerParts budget;
};

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;

const std::string& Ledger::path() const { return impl_->database.path(); }
const std::string& Ledger::dataset() const { return impl_->subject.dataset; }
PrivacyUnit Ledger::unit() const { return impl_->subject.unit; }
bool Ledger::unit_chosen() const { return impl_->subject.unit_chosen; }
Adjacency Ledger::adjacency() const { return impl_->subject.adjacency; }

Result<Ledger> Ledger::OpenImpl(const std::string& path, const LedgerOptions& options, bool existing) {
  Database::OpenOptions open{.path = path,
                             .missing = Database::Missing::kError,
                             .busy_timeout_ms = options.busy_timeout_ms,
                             .for_display = existing};
  if (!existing) {
    open.missing = Database::Missing::kLater;
    open.create = [o = options](Database& database) -> Status {
      LedgerSubject subject{o.dataset, o.unit, o.adjacency, o.unit_chosen, UtcNow()};
      WISP_ASSIGN_OR_RETURN(subject.random_id, NewRandomId());
      return CreateTables(database, subject);
    };
  }
  WISP_ASSIGN_OR_RETURN(Database opened, Database::Open(open));
  auto impl = std::make_unique<Impl>(std::move(opened), options);
  WISP_RETURN_IF_ERROR(impl->Start());
  if (!existing && !options.any_unit)
    WISP_RETURN_IF_ERROR(impl->CheckUnit(impl->subject, options.unit, options.adjacency));
  return Ledger(std::move(impl));
}

Result<Ledger> Ledger::Open(const std::string& path, const LedgerOptions& options) {
  return OpenImpl(path, options, /*existing=*/false);
}
Result<Ledger> Ledger::OpenExisting(const std::string& path, std::shared_ptr<LedgerAnchor> anchor, bool begin_anchor) {
  return OpenImpl(path, {.anchor = std::move(anchor), .begin_anchor = begin_anchor}, /*existing=*/true);
}

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
  return impl_->Write(transaction, row);
}

Status Ledger::CheckLimit(const EpsilonDelta& limit) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  WISP_ASSIGN_OR_RETURN(const bool beyond, impl_->budget.IsBeyond(RecordPart::kAll, limit));
  if (!beyond) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  WISP_ASSIGN_OR_RETURN(const LedgerFigures figures, impl_->budget.Figures(delta));
  return PrivacyRefused(
      "the budget is to be ", DoubleText(limit.epsilon()), ", but epsilon ", EpsilonText(figures.stated.epsilon, 6),
      " at delta ", DoubleText(limit.delta()),
      " is spent on the data set already: nothing could be charged any more; the limit stays as it was");
}

Result<std::optional<EpsilonDelta>> Ledger::Limit() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->budget.limit();
}

Result<ChargeId> Ledger::Charge(const ChargeRequest& charge) {
  if (!(charge.loss_slack >= 0 && charge.loss_slack <= 1)) {
    return InvalidArgument("the loss slack of a charge is ", DoubleText(charge.loss_slack), ", allowed is 0 to 1");
  }
  std::lock_guard lock(impl_->mutex);
  Result<ChargeId> id = impl_->Charge(charge);
  return id.ok() ? id : Result<ChargeId>(impl_->WithWhatWasCharged(id.status(), charge.run));
}

Status Ledger::WritePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                         const std::string& settings) {
  std::lock_guard lock(impl_->mutex);
  const RecordPart part = charges.empty() ? RecordPart::kAll : charges.front().part;
  for (const ChargeRequest& charge : charges) WISP_RETURN_IF_ERROR(impl_->CheckAlone(charge));
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/true));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  WISP_RETURN_IF_ERROR(impl_->budget.CheckParts(charges));
  if (!impl_->budget.MayPlan(part)) {
    return PrivacyRefused(
        "ledger '", impl_->database.path(),
        "' has charges: a plan made now may follow from what they released, and would promise nothing");
  }
  LedgerPlan plan{.run = run, .purpose = purpose, .part = part, .settings = settings};
  for (const ChargeRequest& c : charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
  LedgerParts planned = impl_->budget;
  WISP_RETURN_IF_ERROR(planned.Take(plan));
  WISP_RETURN_IF_ERROR(impl_->budget.CheckLimits("the plan", planned.After(charges), part));
  return impl_->Write(transaction, plan);
}

Status Ledger::DropPlan(const std::string& run, RecordPart part) {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  if (!impl_->budget.MayPlan(part))
    return PrivacyRefused("ledger '", impl_->database.path(), "' has charges: its plan cannot be taken back");
  LedgerPlan none{.run = run, .purpose = "no plan", .part = part};
  return impl_->Write(transaction, none);
}

Status Ledger::ChangePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                          const std::string& settings) {
  std::lock_guard lock(impl_->mutex);
  if (charges.empty()) return InvalidArgument("a changed plan has no charges");
  const RecordPart part = charges.front().part;
  for (const ChargeRequest& charge : charges) WISP_RETURN_IF_ERROR(impl_->CheckAlone(charge));
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  WISP_RETURN_IF_ERROR(impl_->budget.CheckParts(charges));
  if (impl_->budget.MayPlan(part))
    return PrivacyRefused("ledger '", impl_->database.path(), "' has no charges yet: its plan can still be made anew");
  WISP_RETURN_IF_ERROR(impl_->budget.CheckLimits("the changed plan", impl_->budget.After(charges), part));
  LedgerPlan plan{.run = run, .purpose = purpose, .part = part, .settings = settings};
  for (const ChargeRequest& c : charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
  return impl_->Write(transaction, plan);
}

Status Ledger::PlanRun(std::span<const ChargeRequest> charges) {
  std::lock_guard lock(impl_->mutex);
  for (const ChargeRequest& charge : charges) {
    if (!impl_->CheckAlone(charge).ok() || charge.noise == NoiseKind::kReproducible) return OkStatus();
  }
  if (charges.empty() || !impl_->budget.MayPlanRun(charges.front().part)) return OkStatus();
  const RecordPart part = charges.front().part;
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/true));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  WISP_RETURN_IF_ERROR(impl_->budget.CheckParts(charges));
  if (!impl_->budget.MayPlanRun(part) || impl_->budget.Covers(charges)) return OkStatus();
  // What does not fit as a whole is charged as far as it goes, without a plan.
  WISP_ASSIGN_OR_RETURN(const bool beyond, impl_->budget.After(charges).IsBeyond(part));
  if (beyond) return OkStatus();
  LedgerPlan plan{.run = charges.front().run, .purpose = kRunPlan, .part = part};
  for (const ChargeRequest& c : charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
  return impl_->Write(transaction, plan);
}

Status Ledger::Split(double judging_share) {
  if (!(judging_share > 0 && judging_share < 1))
    return InvalidArgument("the share of records that judge is ", DoubleText(judging_share),
                           ", allowed is above 0 and below 1");
  std::lock_guard lock(impl_->mutex);
  if (impl_->subject.adjacency != Adjacency::kAddRemove)
    return Unsupported(
        "the data set of ledger '", impl_->database.path(), "' is protected under ",
        std::string(ToText(impl_->subject.adjacency)),
        ": a record that is replaced may leave one part and enter the other, so their costs add up; only "
        "under add_remove are records divided");
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/true));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  if (const auto& there = impl_->budget.split()) {
    if (there->judging_share == judging_share) return OkStatus();
    return PrivacyRefused("ledger '", impl_->database.path(), "' divides its records already, with a share of ",
                          DoubleText(there->judging_share),
                          " that judges; records are divided once, as one that changed sides would count for both");
  }
  LedgerSplit split{.judging_share = judging_share};
  WISP_ASSIGN_OR_RETURN(split.salt, NewRandomId());
  return impl_->Write(transaction, split);
}

Result<std::optional<LedgerSplit>> Ledger::TheSplit() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->budget.split();
}

Status Ledger::AddResult(ChargeId id, const std::string& text) {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(impl_->database));
  WISP_RETURN_IF_ERROR(impl_->Refresh());
  if (id < 1 || id > impl_->position.last_id)
    return InvalidArgument("ledger '", impl_->database.path(), "' has no charge ", id);
  LedgerResult result{.entry = id, .text = text};
  return impl_->Write(transaction, result);
}

Result<bool> Ledger::Covers(std::span<const ChargeRequest> charges) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->budget.Covers(charges);
}

Status Ledger::CheckFits(std::span<const ChargeRequest> charges, const std::optional<EpsilonDelta>& new_limit) const {
  if (charges.empty()) return OkStatus();
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  WISP_RETURN_IF_ERROR(impl_->CheckEach(charges));
  if (!new_limit && !impl_->budget.limit()) return OkStatus();
  return impl_->budget.CheckLimits("this run", impl_->budget.After(charges), charges.front().part, new_limit);
}

Result<uint64_t> Ledger::StepsThatFit(uint64_t most,
                                      const std::function<Result<std::vector<ChargeRequest>>(uint64_t)>& charges,
                                      const std::optional<EpsilonDelta>& new_limit) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  uint64_t fit = 0, too_many = most + 1, number = most;  // all of them first
  while (too_many - fit > 1) {
    WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> run, charges(number));
    WISP_RETURN_IF_ERROR(impl_->CheckEach(run));
    const RecordPart part = run.empty() ? RecordPart::kAll : run.front().part;
    WISP_ASSIGN_OR_RETURN(const bool beyond, impl_->budget.After(run).IsBeyond(part, new_limit));
    (beyond ? too_many : fit) = number;
    number = fit + (too_many - fit) / 2;
  }
  return fit;
}

uint64_t Ledger::num_written() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->num_written;
}

Status Ledger::MarkReleased(ChargeId id) {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  WISP_ASSIGN_OR_RETURN(Statement update,
                        impl_->database.Prepare("UPDATE entries SET state = 'released' WHERE id = ?"));
  WISP_RETURN_IF_ERROR(update.Bind(0, id).Run());
  if (impl_->database.changes() == 1) return OkStatus();
  return InvalidArgument("ledger '", impl_->database.path(), "' has no charge ", id);
}

Result<LedgerFigures> Ledger::Figures(const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->budget.Figures(delta);
}

Result<LedgerFigures> Ledger::Stated(const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->budget.Stated(delta);
}

Result<double> Ledger::Spent(const Delta& delta) const {
  WISP_ASSIGN_OR_RETURN(const LedgerFigures figures, Stated(delta));
  return figures.stated.epsilon;
}

Result<double> Ledger::SpentAfter(std::span<const ChargeRequest> charges, const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  LedgerParts after = impl_->budget;
  for (const ChargeRequest& charge : charges) {
    WISP_RETURN_IF_ERROR(after.CheckParts({&charge, 1}));
    after = after.AfterCharge(charge);
  }
  WISP_ASSIGN_OR_RETURN(const LedgerFigures figures, after.Stated(delta));
  return figures.stated.epsilon;
}

Result<StatedEpsilon> Ledger::SpentByRun(const std::string& run, const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(const LedgerRows rows, impl_->ReadAll());
  Composition composition;
  for (const LedgerEntry& e : rows.entries) {
    if (e.run == run) composition.Add(e.mechanism, e.noise, e.loss_slack);
  }
  return composition.State(delta);
}

Result<Receipt> Ledger::ReceiptOf(const std::string& run) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return ReadReceipt(impl_->database, run);
}

Result<bool> Ledger::HasPaid(const Receipt& receipt) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return HasReceipt(impl_->database, receipt);
}

Result<uint64_t> Ledger::FirstChargeOf(const Receipt& receipt) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return ReadFirstCharge(impl_->database, receipt);
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

Result<std::vector<LedgerResult>> Ledger::Results() const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(LedgerRows rows, impl_->ReadAll());
  return std::move(rows.results);
}

}  // namespace wisp::privacy
