#include "runtime/privacy/ledger/ledger.h"

#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_impl.h"

namespace wisp::privacy {

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;

const std::string& Ledger::path() const { return impl_->database.path(); }
const std::string& Ledger::dataset() const { return impl_->subject.dataset; }
PrivacyUnit Ledger::unit() const { return impl_->subject.unit; }
bool Ledger::unit_chosen() const { return impl_->subject.unit_chosen; }
Adjacency Ledger::adjacency() const { return impl_->subject.adjacency; }

Result<std::optional<RecordSpec>> Ledger::Record() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  if (impl_->budget.record() || !impl_->opened_as || impl_->opened_as->is_any()) return impl_->budget.record();
  return impl_->opened_as;
}

Result<Ledger> Ledger::OpenImpl(const std::string& path, const LedgerOptions& options, bool existing) {
  Database::OpenOptions open{.path = path,
                             .missing = Database::Missing::kError,
                             .busy_timeout_ms = options.busy_timeout_ms,
                             .for_display = existing};
  if (!existing) {
    open.missing = Database::Missing::kLater;
    WISP_ASSIGN_OR_RETURN(const std::string random_id, NewRandomId());
    open.create = [o = options, random_id](Database& database) -> Status {
      LedgerSubject subject{o.dataset, o.record.unit(), o.adjacency, o.unit_chosen, UtcNow()};
      subject.random_id = random_id;
      return CreateTables(database, subject);
    };
  }
  WISP_ASSIGN_OR_RETURN(Database opened, Database::Open(open));
  auto impl = std::make_unique<Impl>(std::move(opened), options);
  WISP_RETURN_IF_ERROR(impl->Start());
  if (!existing) WISP_RETURN_IF_ERROR(impl->anchored.CheckGiven(impl->database));
  if (existing) impl->opened_as.reset();
  if (existing || options.record.is_any()) return Ledger(std::move(impl));
  WISP_RETURN_IF_ERROR(impl->CheckUnit(impl->subject, options.record.unit(), options.adjacency));
  WISP_RETURN_IF_ERROR(impl->FindStatedRecord(LedgerBudget::Says::kPlan).status());
  return Ledger(std::move(impl));
}

Result<Ledger> Ledger::Open(const std::string& path, const LedgerOptions& options) {
  return OpenImpl(path, options, /*existing=*/false);
}
Result<Ledger> Ledger::OpenExisting(const std::string& path, std::shared_ptr<LedgerAnchor> anchor, bool begin_anchor) {
  return OpenImpl(path, {.record = RecordSpec::Any({}), .anchor = std::move(anchor), .begin_anchor = begin_anchor},
                  /*existing=*/true);
}

Result<RecordSpec> Ledger::RequireRecord() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->budget.FindStatedRecord(path(), impl_->opened_as, LedgerBudget::Says::kCharge);
}

Status Ledger::CheckDataset(const std::string& dataset) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->Attach(/*make=*/false));
  return impl_->CheckDataset(impl_->subject, dataset);
}

Result<LedgerRow> Ledger::Impl::PlanRow(const PlanRequest& p, const LedgerBudget& before) const {
  if (!before.MayPlan()) {
    return PrivacyRefused(
        "ledger '", database.path(),
        "' has charges: a plan made now may follow from what they released, and would promise nothing");
  }
  LedgerPlan plan{.run = p.run, .purpose = p.purpose, .settings = p.settings};
  if (!p.charges.empty()) {
    WISP_ASSIGN_OR_RETURN(plan.record, FindStatedRecord(LedgerBudget::Says::kPlan));
  }
  for (const ChargeRequest& c : p.charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
  LedgerBudget with = before;
  WISP_RETURN_IF_ERROR(with.Take(plan));
  WISP_RETURN_IF_ERROR(before.CheckLimits("the plan", with.After(p.charges)));
  return LedgerRow(plan);
}

Status Ledger::Impl::SetUp(const LedgerSetup& setup) {
  if (setup.plan) {
    for (const ChargeRequest& charge : setup.plan->charges) WISP_RETURN_IF_ERROR(CheckAlone(charge));
  }
  WISP_ASSIGN_OR_RETURN(Transaction transaction, BeginWriting(/*make=*/true));
  if (setup.newest_row) WISP_RETURN_IF_ERROR(CheckNewest(*setup.newest_row));
  std::vector<LedgerRow> rows;
  LedgerBudget after = budget;
  if (setup.limit) {
    const LedgerLimit limit{.limit = *setup.limit};
    WISP_RETURN_IF_ERROR(after.Take(limit));
    rows.emplace_back(limit);
  }
  if (setup.plan) {
    WISP_ASSIGN_OR_RETURN(LedgerRow plan, PlanRow(*setup.plan, after));
    rows.push_back(std::move(plan));
  }
  return rows.empty() ? OkStatus() : Write(transaction, rows);
}

Status Ledger::SetUp(const LedgerSetup& setup) {
  std::lock_guard lock(impl_->mutex);
  return impl_->SetUp(setup);
}

Status Ledger::CheckLimit(const EpsilonDelta& limit) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  WISP_ASSIGN_OR_RETURN(const bool beyond, impl_->budget.IsBeyond(limit));
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
  return id.ok() ? id : Result<ChargeId>(impl_->AddPriorCharges(id.status(), charge.run));
}

Status Ledger::ChangePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                          const std::string& settings, uint64_t newest_row) {
  std::lock_guard lock(impl_->mutex);
  if (charges.empty()) return InvalidArgument("a changed plan has no charges");
  for (const ChargeRequest& charge : charges) WISP_RETURN_IF_ERROR(impl_->CheckAlone(charge));
  WISP_ASSIGN_OR_RETURN(Transaction transaction, impl_->BeginWriting(/*make=*/false));
  WISP_RETURN_IF_ERROR(impl_->CheckNewest(newest_row));
  if (impl_->budget.MayPlan())
    return PrivacyRefused("ledger '", impl_->database.path(), "' has no charges yet: its plan can still be replaced");
  WISP_RETURN_IF_ERROR(impl_->budget.CheckLimits("the changed plan", impl_->budget.After(charges)));
  LedgerPlan plan{.run = run, .purpose = purpose, .settings = settings};
  WISP_ASSIGN_OR_RETURN(plan.record, impl_->FindStatedRecord(LedgerBudget::Says::kPlan));
  for (const ChargeRequest& c : charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
  return impl_->Write(transaction, plan);
}

Status Ledger::PlanRun(std::span<const ChargeRequest> charges) {
  std::lock_guard lock(impl_->mutex);
  for (const ChargeRequest& charge : charges) {
    if (!impl_->CheckAlone(charge).ok() || charge.noise == NoiseKind::kReproducible) return OkStatus();
  }
  if (charges.empty() || !impl_->budget.MayPlanRun()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(Transaction transaction, impl_->BeginWriting(/*make=*/true));
  if (!impl_->budget.MayPlanRun()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const std::optional<RecordSpec> record, impl_->FindStatedRecord(LedgerBudget::Says::kPlan));
  if (impl_->budget.Covers(charges) && (!record || impl_->budget.record() == record)) return OkStatus();
  // A run that does not fit as a whole is charged without a plan, as far as it goes.
  WISP_ASSIGN_OR_RETURN(const bool beyond, impl_->budget.After(charges).IsBeyond());
  if (beyond) return OkStatus();
  LedgerPlan plan{.run = charges.front().run, .purpose = kRunPlan, .record = record};
  for (const ChargeRequest& c : charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
  return impl_->Write(transaction, plan);
}

Status Ledger::AddResult(ChargeId id, const std::string& text) {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(Transaction transaction, impl_->BeginWriting(/*make=*/false));
  if (id < 1 || id > impl_->position.last_id)
    return InvalidArgument("ledger '", impl_->database.path(), "' has no charge ", id);
  return impl_->Write(transaction, LedgerResult{.entry = id, .text = text});
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
  return impl_->budget.CheckLimits("this run", impl_->budget.After(charges), new_limit);
}

Result<uint64_t> Ledger::StepsThatFit(uint64_t most,
                                      const std::function<Result<std::vector<ChargeRequest>>(uint64_t)>& charges,
                                      const std::optional<EpsilonDelta>& new_limit) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  uint64_t fit = 0, too_many = most + 1, number = most;  // the first try is all of them
  while (too_many - fit > 1) {
    WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> run, charges(number));
    WISP_RETURN_IF_ERROR(impl_->CheckEach(run));
    WISP_ASSIGN_OR_RETURN(const bool beyond, impl_->budget.After(run).IsBeyond(new_limit));
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

}  // namespace wisp::privacy
