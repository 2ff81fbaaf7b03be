#include "runtime/privacy/ledger/ledger_parts.h"

#include <algorithm>

namespace wisp::privacy {

template <typename Budgets, typename Use>
void LedgerParts::ForEach(Budgets& budgets, RecordPart part, const Use& use) {
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (part == RecordPart::kAll || budgets.size() == 1 || part == kParts[i]) use(i, budgets[i]);
  }
}

std::string LedgerParts::Name(size_t budget) const {
  if (!split_) return "the data set";
  return kParts[budget] == RecordPart::kTraining ? "the records that train" : "the evaluation records";
}

Status LedgerParts::Take(const LedgerLimit& limit) {
  for (LedgerBudget& budget : budgets_) budget.Take(limit);
  return OkStatus();
}

Status LedgerParts::Take(const LedgerSplit& split) {
  if (split_) return InvalidData("records are divided twice");
  split_ = split;
  budgets_.push_back(budgets_.front());
  return OkStatus();
}

Status LedgerParts::Take(const LedgerPlan& plan) {
  if (plan.part != RecordPart::kAll && !split_) return InvalidData("a plan of a part, and records are not divided");
  WISP_RETURN_IF_ERROR(TakeRecord(plan.record, /*is_charge=*/false));
  ForEach(budgets_, plan.part, [&](size_t, LedgerBudget& budget) { budget.Take(plan); });
  return OkStatus();
}

Status LedgerParts::Take(const LedgerEntry& entry) {
  if (entry.part != RecordPart::kAll && !split_) return InvalidData("a charge of a part, and records are not divided");
  WISP_RETURN_IF_ERROR(TakeRecord(entry.record, /*is_charge=*/true));
  ForEach(budgets_, entry.part, [&](size_t, LedgerBudget& budget) { budget.Take(entry); });
  return OkStatus();
}

Status LedgerParts::TakeRecord(const std::optional<RecordSpec>& record, bool is_charge) {
  if (!record) return OkStatus();
  if (record_is_charged_ && *record_ != *record) return InvalidData("its charges are for different kinds of records");
  record_ = record;
  record_is_charged_ = record_is_charged_ || is_charge;
  return OkStatus();
}

Result<RecordSpec> LedgerParts::FindStatedRecord(const std::string& path, const std::optional<RecordSpec>& asked,
                                                 Says who) const {
  if (!asked && !record_)
    return PrivacyRefused("ledger '", path,
                          "' does not say what one record is: nothing can be charged before a plan or a run has said "
                          "so");
  if (!asked) return *record_;
  const bool may_differ = !record_ || (who == Says::kPlan && !record_is_charged_);
  if (may_differ || *record_ == *asked) return *asked;
  return PrivacyRefused("ledger '", path, "' protects ", record_->InWords(), "; asked for was ", asked->InWords(),
                        ": costs of different records do not add up");
}

Status LedgerParts::CheckParts(std::span<const ChargeRequest> charges) const {
  for (const ChargeRequest& charge : charges) {
    if (charge.part != charges.front().part)
      return InvalidArgument("charges of different parts of the records belong in calls of their own");
    if (charge.part != RecordPart::kAll && !split_)
      return InvalidArgument("the charge reads the records of the part '", std::string(ToText(charge.part)),
                             "', and the ledger does not divide its records: write a split first");
  }
  return OkStatus();
}

Status LedgerParts::CheckNoise(std::span<const ChargeRequest> charges) const {
  for (const ChargeRequest& charge : charges) {
    Status status;
    ForEach(budgets_, charge.part, [&](size_t, const LedgerBudget& budget) {
      if (status.ok()) status = budget.all().CheckNoise(charge.noise);
    });
    WISP_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

uint64_t LedgerParts::PlanFor(const ChargeRequest& charge) const {
  uint64_t plan = 0;
  ForEach(budgets_, charge.part, [&](size_t, const LedgerBudget& budget) {
    if (plan == 0) plan = budget.PlanFor(charge);
  });
  return plan;
}

bool LedgerParts::Covers(std::span<const ChargeRequest> charges) const {
  bool covers = true;
  const RecordPart part = charges.empty() ? RecordPart::kAll : charges.front().part;
  ForEach(budgets_, part, [&](size_t, const LedgerBudget& budget) { covers = covers && budget.Covers(charges); });
  return covers;
}

bool LedgerParts::MayPlan(RecordPart part) const {
  bool may = true;
  ForEach(budgets_, part, [&](size_t, const LedgerBudget& budget) { may = may && budget.MayPlan(); });
  return may;
}

bool LedgerParts::MayPlanRun(RecordPart part) const {
  bool may = true;
  ForEach(budgets_, part, [&](size_t, const LedgerBudget& budget) { may = may && budget.MayPlanRun(part); });
  return may;
}

LedgerParts LedgerParts::After(std::span<const ChargeRequest> charges) const {
  LedgerParts after = *this;
  if (charges.empty()) return after;
  ForEach(after.budgets_, charges.front().part,
          [&](size_t, LedgerBudget& budget) { budget = budget.After(charges, MayPlanRun(charges.front().part)); });
  return after;
}

LedgerParts LedgerParts::AfterCharge(const ChargeRequest& charge) const {
  LedgerParts after = *this;
  ForEach(after.budgets_, charge.part, [&](size_t, LedgerBudget& budget) { budget = budget.AfterCharge(charge); });
  return after;
}

Status LedgerParts::CheckLimits(const std::string& who, const LedgerParts& after, RecordPart part,
                                const std::optional<EpsilonDelta>& instead) const {
  Status status;
  ForEach(after.budgets_, part, [&](size_t i, const LedgerBudget& budget) {
    if (!status.ok()) return;
    const auto breach = budget.FindBreach(instead);
    if (!breach.ok()) {
      status = breach.status();
    } else if (*breach) {
      status = budgets_[std::min(i, budgets_.size() - 1)].Refusal(who, Name(i), budget, **breach);
    }
  });
  return status;
}

Result<bool> LedgerParts::IsBeyond(RecordPart part, const std::optional<EpsilonDelta>& instead) const {
  Status status;
  bool beyond = false;
  ForEach(budgets_, part, [&](size_t, const LedgerBudget& budget) {
    const auto breach = budget.FindBreach(instead);
    if (!breach.ok()) {
      status = breach.status();
    } else {
      beyond = beyond || breach->has_value();
    }
  });
  if (!status.ok()) return status;
  return beyond;
}

namespace {

constexpr auto kLess = [](const StatedEpsilon& a, const StatedEpsilon& b) { return a.epsilon < b.epsilon; };

}  // namespace

// The largest epsilon is the data set's; the limit holds if it holds for each part.
LedgerFigures LedgerParts::Largest(std::span<const LedgerFigures> each) {
  LedgerFigures figures = *std::max_element(each.begin(), each.end(),
                                            [](const auto& a, const auto& b) { return kLess(a.stated, b.stated); });
  for (const LedgerFigures& f : each) {
    if (!f.held_limit) figures.held_limit.reset();
    figures.limit_is_late = figures.limit_is_late || f.limit_is_late;
    figures.limit_was_raised = figures.limit_was_raised || f.limit_was_raised;
  }
  return figures;
}

Result<LedgerFigures> LedgerParts::Stated(const Delta& delta) const {
  std::vector<LedgerFigures> each;
  for (const LedgerBudget& budget : budgets_) {
    WISP_ASSIGN_OR_RETURN(each.emplace_back(), budget.Stated(delta));
  }
  return Largest(each);
}

Result<LedgerFigures> LedgerParts::Figures(const Delta& delta) const {
  if (!split_) return budgets_.front().Figures(delta);
  std::vector<LedgerFigures> each;
  for (const LedgerBudget& budget : budgets_) {
    WISP_ASSIGN_OR_RETURN(each.emplace_back(), budget.Figures(delta));
  }
  LedgerFigures figures = Largest(each);
  if (figures.basis == LedgerFigures::Basis::kPlan) {
    const StatedEpsilon used =
        std::max(each[0].used.value_or(each[0].stated), each[1].used.value_or(each[1].stated), kLess);
    figures.used = kLess(used, figures.stated) ? std::optional(used) : std::nullopt;
  }
  for (size_t i = 0; i < each.size(); ++i) {
    figures.parts.push_back({.part = kParts[i],
                             .basis = each[i].basis,
                             .stated = each[i].stated,
                             .used = each[i].used,
                             .planned_left = each[i].planned_left});
  }
  return figures;
}

}  // namespace wisp::privacy
