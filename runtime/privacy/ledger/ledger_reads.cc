// What a ledger says of what was charged. Nothing here writes.
#include "runtime/privacy/ledger/ledger_composition.h"
#include "runtime/privacy/ledger/ledger_impl.h"

namespace wisp::privacy {

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

Result<StatedEpsilon> Ledger::SpentByRun(const std::string& run, const Delta& delta, Fineness fineness) const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(const LedgerRows rows, impl_->ReadAll());
  Composition composition;
  for (const LedgerEntry& e : rows.entries) {
    if (e.run == run) composition.Add(e.mechanism, e.noise, e.loss_slack);
  }
  return composition.State(delta, fineness);
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
