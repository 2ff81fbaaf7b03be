// The functions of a ledger that only read.
#include <type_traits>

#include "runtime/core/hex.h"
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
  LedgerBudget after = impl_->budget;
  for (const ChargeRequest& charge : charges) after = after.AfterCharge(charge);
  WISP_ASSIGN_OR_RETURN(const LedgerFigures figures, after.Stated(delta));
  return figures.stated.epsilon;
}

Result<StatedEpsilon> Ledger::SpentByRun(const std::string& run, const Delta& delta, Fineness fineness) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  if (!impl_->asked || impl_->asked->run != run) {
    WISP_ASSIGN_OR_RETURN(const LedgerRows rows, impl_->ReadAll());
    Impl::ChargesToRun charges{.run = run};
    for (const LedgerEntry& e : rows.entries) {
      if (e.seq <= impl_->position.seq) charges.Take(e);  // another process may have written later ones meanwhile
    }
    impl_->asked = std::move(charges);
  }
  return impl_->asked->composition.State(delta, fineness);
}

Result<Receipt> Ledger::MakeReceipt(const std::string& run, ChargeId newest) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return ReadReceipt(impl_->database, run, newest);
}

Result<bool> Ledger::HasPaid(const Receipt& receipt) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return HasReceipt(impl_->database, receipt);
}

Result<uint64_t> Ledger::FindFirstCharge(const Receipt& receipt) const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return ReadFirstCharge(impl_->database, receipt);
}

Result<uint64_t> Ledger::NewestRow() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return impl_->position.seq;
}

Result<std::string> Ledger::Id() const {
  std::lock_guard lock(impl_->mutex);
  WISP_RETURN_IF_ERROR(impl_->ReadNew());
  return ToHex(impl_->random_id);
}

Result<LedgerState> Ledger::StateNow(const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  LedgerState state;
  for (;;) {
    WISP_RETURN_IF_ERROR(impl_->ReadNew());
    WISP_ASSIGN_OR_RETURN(LedgerRows rows, impl_->ReadAll());
    if (rows.end.seq != impl_->position.seq) continue;  // another process wrote in between
    state.entries = std::move(rows.entries);
    break;
  }
  state.limit = impl_->budget.limit();
  state.record = impl_->budget.record();
  if (!state.record && impl_->opened_as && !impl_->opened_as->is_any()) state.record = impl_->opened_as;
  WISP_ASSIGN_OR_RETURN(state.figures, impl_->budget.Figures(delta));
  state.anchors = impl_->anchored.noted();
  if (state.entries.empty()) return state;
  WISP_ASSIGN_OR_RETURN(const ChainValue chain, ReadChainAt(impl_->database, state.entries.back().seq));
  state.receipt.assign(chain.begin(), chain.end());
  return state;
}

Result<std::vector<LedgerState>> Ledger::StatesWith(uint64_t num_charges, const Delta& delta) const {
  std::lock_guard lock(impl_->mutex);
  WISP_ASSIGN_OR_RETURN(const LedgerRows rows, impl_->ReadAll());
  std::vector<LedgerState> states;
  if (num_charges > rows.entries.size()) return states;
  LedgerState state;
  state.entries.assign(rows.entries.begin(), rows.entries.begin() + static_cast<std::ptrdiff_t>(num_charges));
  const uint64_t first = num_charges == 0 ? 0 : state.entries.back().seq;
  const uint64_t next = num_charges < rows.entries.size() ? rows.entries[num_charges].seq : UINT64_MAX;
  if (first > 0) {
    WISP_ASSIGN_OR_RETURN(const ChainValue chain, ReadChainAt(impl_->database, first));
    state.receipt.assign(chain.begin(), chain.end());
  }
  LedgerBudget budget;
  const auto add = [&]() -> Status {
    state.limit = budget.limit();
    state.record = budget.record();
    WISP_ASSIGN_OR_RETURN(state.figures, budget.Figures(delta));
    states.insert(states.begin(), state);
    return OkStatus();
  };
  if (first == 0) WISP_RETURN_IF_ERROR(add());
  WISP_RETURN_IF_ERROR(InOrder(rows, [&](const auto& row) -> Status {
    if (row.seq >= next) return OkStatus();
    WISP_RETURN_IF_ERROR(budget.Take(row));
    if constexpr (std::is_same_v<std::decay_t<decltype(row)>, LedgerResult>) {
      if (row.entry != 0) return OkStatus();  // it changes nothing
      ++state.anchors.begun;
    }
    return row.seq < first ? OkStatus() : add();
  }));
  return states;
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
  std::vector<LedgerResult> results;
  for (LedgerResult& result : rows.results) {
    if (result.entry != 0) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace wisp::privacy
