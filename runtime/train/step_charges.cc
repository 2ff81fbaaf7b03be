#include "runtime/train/step_charges.h"

#include <algorithm>
#include <utility>

#include "runtime/train/checkpoint_parts.h"

namespace wisp {

StepCharges::StepCharges(PrivacyPlan plan, const PrivateTraining& options)
    : plan_(std::move(plan)), options_(&options), run_(options.run), charged_until_(plan_.parts().size(), 0) {}

Status StepCharges::Pay(uint64_t step, uint64_t until, uint64_t end) {
  const auto is_charged = [step](uint64_t charged) { return step < charged; };
  if (std::all_of(charged_until_.begin(), charged_until_.end(), is_charged)) return OkStatus();
  const uint64_t steps = std::min<uint64_t>(options_->steps_per_charge, std::max(until, step + 1) - step);
  if (charged_until_.front() == 0) {
    WISP_ASSIGN_OR_RETURN(const auto all, plan_.ChargesTogether(std::max<uint64_t>(end, step + steps) - step));
    WISP_RETURN_IF_ERROR(options_->ledger->PlanRun(all));
  }
  WISP_ASSIGN_OR_RETURN(const auto charges, plan_.Charges(steps));
  for (size_t i = 0; i < charges.size(); ++i) {
    if (step < charged_until_[i]) continue;
    WISP_RETURN_IF_ERROR(options_->ledger->Charge(charges[i]).status());
    charged_until_[i] = step + steps;
    if (i == 0) num_charged_ += steps;
  }
  WISP_ASSIGN_OR_RETURN(receipt_, options_->ledger->ReceiptOf(run_));
  return OkStatus();
}

bool StepCharges::all_taken(uint64_t step) const {
  return std::all_of(charged_until_.begin(), charged_until_.end(), [step](uint64_t until) { return step >= until; });
}

void StepCharges::Save(Checkpoint& c) const { c.receipt = receipt_; }

Status StepCharges::Check(const Checkpoint& c) const {
  WISP_RETURN_IF_ERROR(checkpoint_parts::CheckTuning(c, run_));
  WISP_RETURN_IF_ERROR(checkpoint_parts::CheckPaid(*options_->ledger, c));
  for (const PrivacyPlan::Part& part : plan_.parts())
    WISP_RETURN_IF_ERROR(checkpoint_parts::CheckCharged(*options_->ledger, c, part.purpose, c.step * part.releases));
  return OkStatus();
}

void StepCharges::Restore(const Checkpoint& c) {
  run_ = c.run_id;
  plan_.SetRun(c.run_id);
  std::fill(charged_until_.begin(), charged_until_.end(), 0);
  num_charged_ = 0;
  receipt_ = c.receipt;
}

}  // namespace wisp
