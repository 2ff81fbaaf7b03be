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
  const uint64_t left = std::max(until, step + 1) - step;
  const uint64_t steps = plan_.StepsPerCharge(std::min<uint64_t>(options_->steps_per_charge, left), left);
  if (charged_until_.front() == 0) {
    const uint64_t of_run = std::max<uint64_t>(end, step + steps) - step;
    WISP_ASSIGN_OR_RETURN(const auto all, plan_.ChargesTogether({step, of_run}));
    WISP_RETURN_IF_ERROR(options_->ledger->PlanRun(all));
  }
  for (size_t i = 0; i < plan_.parts().size(); ++i) {
    if (step < charged_until_[i]) continue;
    WISP_ASSIGN_OR_RETURN(const auto charges, plan_.Charges(plan_.parts()[i], {step, steps}));
    for (const privacy::ChargeRequest& charge : charges)
      WISP_RETURN_IF_ERROR(options_->ledger->Charge(charge).status());
    charged_until_[i] = step + steps;
    if (i == 0) num_charged_ += steps;
  }
  WISP_ASSIGN_OR_RETURN(receipt_, options_->ledger->MakeReceipt(run_));
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
