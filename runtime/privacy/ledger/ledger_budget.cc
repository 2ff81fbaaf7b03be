#include "runtime/privacy/ledger/ledger_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

// The slack of blocks adds up to that of the whole, except for rounding; Composition pays for more than this.
constexpr double kSlackRounding = 1 + 5e-10;
// The seq of hypothetical rows: after all others.
constexpr uint64_t kNotWritten = std::numeric_limits<uint64_t>::max();

// True if `smaller` has at most the delta of `larger` at every epsilon. The supports of samples shrink as items are
// taken out of them.
bool IsNoMoreThan(const Mechanism& smaller, const Mechanism& larger) {
  if (smaller.word() != larger.word() || smaller.adjacency() != larger.adjacency()) return false;
  return smaller.kind().is_no_more_than != nullptr && smaller.kind().is_no_more_than(smaller, larger);
}

bool IsAbove(const EpsilonDelta& one, const EpsilonDelta& other) {
  return one.epsilon() > other.epsilon() || one.delta() > other.delta();
}
bool IsSame(const EpsilonDelta& one, const EpsilonDelta& other) {
  return one.epsilon() == other.epsilon() && one.delta() == other.delta();
}

}  // namespace

struct LedgerBudget::PlanFigures {
  struct AtLimit {
    EpsilonDelta limit;
    bool keeps;
    std::optional<double> delta;
  };
  struct AtDelta {
    double delta;
    StatedEpsilon stated;
  };
  std::vector<AtLimit> at_limits;
  std::vector<AtDelta> at_deltas;
};

Status LedgerBudget::Take(const LedgerLimit& limit) {
  limits_.push_back(limit);
  return OkStatus();
}

Status LedgerBudget::Take(const LedgerPlan& plan) {
  WISP_RETURN_IF_ERROR(TakeRecord(plan.record, /*is_charge=*/false));
  if (!has_entries()) Use(plan);  // a plan made after a look pays for nothing
  return OkStatus();
}

Status LedgerBudget::Take(const LedgerEntry& entry) {
  WISP_RETURN_IF_ERROR(TakeRecord(entry.record, /*is_charge=*/true));
  Count(entry);
  return OkStatus();
}

void LedgerBudget::Use(const LedgerPlan& plan) {
  plan_.reset();
  planned_ = {};
  figures_ = std::make_shared<PlanFigures>();
  if (plan.mechanisms.empty()) return;
  plan_.emplace(ActivePlan{.plan = plan});
  for (const PlannedMechanism& p : plan.mechanisms) {
    plan_->steps_left.push_back(p.mechanism.steps());
    plan_->slack_left += p.loss_slack * kSlackRounding;
    planned_.Add(p.mechanism, NoiseKind::kSecure, p.loss_slack);
  }
}

Status LedgerBudget::TakeRecord(const std::optional<RecordSpec>& record, bool is_charge) {
  if (!record) return OkStatus();
  if (record_is_charged_ && *record_ != *record) return InvalidData("its charges are for different kinds of records");
  record_ = record;
  record_is_charged_ = record_is_charged_ || is_charge;
  return OkStatus();
}

Result<RecordSpec> LedgerBudget::FindStatedRecord(const std::string& path, const std::optional<RecordSpec>& asked,
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

bool LedgerBudget::MayPlanRun() const { return MayPlan() && (!plan_ || plan_->plan.purpose == kRunPlan); }

Status LedgerBudget::CheckNoise(std::span<const ChargeRequest> charges) const {
  for (const ChargeRequest& charge : charges) WISP_RETURN_IF_ERROR(all_.CheckNoise(charge.noise));
  return OkStatus();
}

std::optional<size_t> LedgerBudget::FindInPlan(const Mechanism& mechanism, double loss_slack) const {
  if (!plan_ || loss_slack > plan_->slack_left) return std::nullopt;
  for (const bool exactly : {true, false}) {
    for (size_t m = 0; m < plan_->steps_left.size(); ++m) {
      const Mechanism& planned = plan_->plan.mechanisms[m].mechanism;
      const bool matches = exactly ? planned.DiffersInStepsOnly(mechanism) : IsNoMoreThan(mechanism, planned);
      if (matches && mechanism.steps() <= plan_->steps_left[m]) return m;
    }
  }
  return std::nullopt;
}

uint64_t LedgerBudget::PlanFor(const ChargeRequest& charge) const {
  return FindInPlan(charge.mechanism, charge.loss_slack) ? plan_->plan.seq : 0;
}

void LedgerBudget::TakeCharge(const ChargeRequest& c) {
  Count(
      {.seq = kNotWritten, .mechanism = c.mechanism, .noise = c.noise, .loss_slack = c.loss_slack, .plan = PlanFor(c)});
}

LedgerBudget LedgerBudget::AfterCharge(const ChargeRequest& charge) const {
  LedgerBudget after = *this;
  after.TakeCharge(charge);
  return after;
}

bool LedgerBudget::Covers(std::span<const ChargeRequest> charges) const {
  if (!plan_) return false;
  LedgerBudget after = *this;
  for (const ChargeRequest& c : charges) {
    if (after.PlanFor(c) == 0) return false;
    after.TakeCharge(c);
  }
  return true;
}

LedgerBudget LedgerBudget::After(std::span<const ChargeRequest> charges) const {
  LedgerBudget after = *this;
  if (!charges.empty() && MayPlanRun() && !Covers(charges)) {
    LedgerPlan plan{.seq = kNotWritten};
    for (const ChargeRequest& c : charges) plan.mechanisms.push_back({c.mechanism, c.loss_slack});
    after.Use(plan);
  }
  for (const ChargeRequest& c : charges) after.TakeCharge(c);
  return after;
}

void LedgerBudget::Count(LedgerEntry e) {
  if (!has_entries() && !plan_) {
    e.plan = e.seq;
    Use({.seq = e.seq, .mechanisms = {{e.mechanism, e.loss_slack}}});
  }
  if (!has_entries()) first_entry_ = e.seq;
  const std::optional<size_t> place = FindInPlan(e.mechanism, e.loss_slack);
  if (place && plan_->plan.seq == e.plan) {
    plan_->steps_left[*place] -= e.mechanism.steps();
    plan_->slack_left -= e.loss_slack;
  } else {
    left_plan_ = true;
  }
  all_.Add(e.mechanism, e.noise, e.loss_slack);
  path_.Add(e.mechanism, e.loss_slack);
}

std::optional<EpsilonDelta> LedgerBudget::limit() const {
  return limits_.empty() ? std::nullopt : std::optional(limits_.back().limit);
}

bool LedgerBudget::limit_is_late() const {
  return has_entries() && !limits_.empty() && limits_.front().seq > first_entry_;
}

bool LedgerBudget::limit_was_raised() const { return !limits_.empty() && !limit_is_late() && !guaranteed_limit(); }

std::optional<EpsilonDelta> LedgerBudget::guaranteed_limit() const {
  if (!has_entries()) return limit();
  std::optional<EpsilonDelta> fixed;
  for (const LedgerLimit& l : limits_) {
    if (l.seq < first_entry_) {
      fixed = l.limit;
    } else if (!fixed || IsAbove(l.limit, *fixed)) {
      return std::nullopt;
    }
  }
  return fixed;
}

// The figure of the plan. It is requested at one delta again and again, and never changes.
Result<StatedEpsilon> LedgerBudget::PlanState(const Delta& delta) const {
  if (!figures_) return planned_.State(delta);
  for (const auto& known : figures_->at_deltas) {
    if (known.delta == delta.value()) return known.stated;
  }
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon stated, planned_.State(delta));
  figures_->at_deltas.push_back({delta.value(), stated});
  return stated;
}

Result<bool> LedgerBudget::PlanKeeps(const EpsilonDelta& limit) const {
  if (!plan_) return false;
  for (const auto& known : figures_->at_limits) {
    if (IsSame(known.limit, limit)) return known.keeps;
  }
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon plan, PlanState(delta));
  figures_->at_limits.push_back({limit, plan.epsilon <= limit.epsilon(), std::nullopt});
  return plan.epsilon <= limit.epsilon();
}

// The share of the limit's delta that histories on the plan take. A plan that does not keep the limit takes no share.
Result<double> LedgerBudget::PlanDelta(const EpsilonDelta& limit) const {
  WISP_ASSIGN_OR_RETURN(const bool keeps, PlanKeeps(limit));
  if (!keeps) return 0.0;
  for (auto& known : figures_->at_limits) {
    if (!IsSame(known.limit, limit)) continue;
    if (!known.delta) {
      WISP_ASSIGN_OR_RETURN(const double delta, planned_.DeltaAt(limit.epsilon()));
      known.delta = std::min(delta, limit.delta());
    }
    return *known.delta;
  }
  return limit.delta();  // unreachable
}

Result<bool> LedgerBudget::Keeps(const EpsilonDelta& limit) const {
  if (all_.has_reproducible()) return false;
  if (!left_plan_) {
    WISP_ASSIGN_OR_RETURN(const bool keeps, PlanKeeps(limit));
    if (keeps) return true;
  }
  WISP_ASSIGN_OR_RETURN(const double taken, PlanDelta(limit));
  return RenyiFilter({.epsilon = limit.epsilon(), .delta = kFilterShare * (limit.delta() - taken)}).Fits(path_);
}

Result<std::optional<EpsilonDelta>> LedgerBudget::FindBreach(const std::optional<EpsilonDelta>& instead) const {
  if (!has_entries()) return std::optional<EpsilonDelta>();
  std::vector<EpsilonDelta> limits;
  if (const auto newest = instead ? instead : limit()) limits.push_back(*newest);
  // A limit set later, below the guaranteed one, has other orders: both are kept. A limit set before the first charge
  // is not guaranteed yet.
  const auto guaranteed = guaranteed_limit();
  if (guaranteed && !(instead && (first_entry_ == kNotWritten || IsAbove(*instead, *guaranteed))))
    limits.push_back(*guaranteed);
  for (const EpsilonDelta& limit : limits) {
    WISP_ASSIGN_OR_RETURN(const bool keeps, Keeps(limit));
    if (!keeps) return std::optional(limit);
  }
  return std::optional<EpsilonDelta>();
}

Result<bool> LedgerBudget::IsBeyond(const std::optional<EpsilonDelta>& instead) const {
  WISP_ASSIGN_OR_RETURN(const auto breach, FindBreach(instead));
  return breach.has_value();
}

Status LedgerBudget::CheckLimits(const std::string& who, const LedgerBudget& after,
                                 const std::optional<EpsilonDelta>& instead) const {
  WISP_ASSIGN_OR_RETURN(const auto breach, after.FindBreach(instead));
  return breach ? Refusal(who, after, *breach) : OkStatus();
}

Status LedgerBudget::Refusal(const std::string& who, const LedgerBudget& after, const EpsilonDelta& passed) const {
  const std::string delta = " at delta " + DoubleText(passed.delta()), limit = DoubleText(passed.epsilon());
  WISP_ASSIGN_OR_RETURN(const Delta at, Delta::Create(passed.delta()));
  WISP_ASSIGN_OR_RETURN(const LedgerFigures figures, after.Figures(at));
  const double total = figures.stated.epsilon;
  if (figures.basis == LedgerFigures::Basis::kNoGuarantee) {
    return PrivacyRefused(
        "a charge with reproducible noise has no guarantee and passes every limit; the data set's is epsilon ", limit,
        delta, ": nothing was charged");
  }
  WISP_ASSIGN_OR_RETURN(const LedgerFigures before, Figures(at));
  std::string text = who +
                     (total > passed.epsilon() ? " would bring the data set to epsilon " + EpsilonText(total, 6) +
                                                     delta + ", the limit is " + limit
                                               : " would pass the limit of the data set, epsilon " + limit + delta) +
                     ", spent " + EpsilonText(before.stated.epsilon, 6);
  if (figures.basis == LedgerFigures::Basis::kAdaptive) {
    text +=
        "; it is under no plan that was fixed before the first charge, so it counts as chosen after looking at what "
        "came before";
  }
  return PrivacyRefused(text, "; nothing was charged");
}

Result<double> LedgerBudget::AdaptiveEpsilon(const Delta& delta, const std::optional<EpsilonDelta>& held) const {
  if (held && held->delta() <= delta.value()) {
    // Histories on the plan have the limit's epsilon, those off it the budget below the limit that they fit, or the
    // limit.
    WISP_ASSIGN_OR_RETURN(const double taken, PlanDelta(*held));
    const double left = delta.value() - held->delta() + (1 - kFilterShare) * (held->delta() - taken);
    return std::min(held->epsilon(), left > 0 ? OdometerEpsilon(path_, left) : kInfinity);
  }
  // Half of delta is for histories on the plan, with the figure that it gives; half is for those off it, with no
  // smaller figure. (On the plan the figure is at all of delta: docs/algorithms.md, section 10, says at what delta both
  // hold together.)
  WISP_ASSIGN_OR_RETURN(const Delta half, Delta::Create(delta.value() / 2));
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon plan, PlanState(half));
  return std::max(plan.epsilon, OdometerEpsilon(path_, half.value()));
}

Result<LedgerFigures> LedgerBudget::Stated(const Delta& delta) const {
  using Basis = LedgerFigures::Basis;
  LedgerFigures figures{.limit_is_late = limit_is_late(), .limit_was_raised = limit_was_raised()};
  if (!has_entries()) {
    figures.held_limit = limit();
    return figures;
  }
  if (all_.has_reproducible()) {
    figures.basis = Basis::kNoGuarantee;
    figures.stated.epsilon = kInfinity;
    return figures;
  }
  bool plan_counts = true;  // a plan that is too large for the limit is checked against it like everything else
  if (const auto guaranteed = guaranteed_limit()) {
    // This is checked, not assumed: a program that knew no filter may have charged.
    WISP_ASSIGN_OR_RETURN(const bool keeps, Keeps(*guaranteed));
    WISP_ASSIGN_OR_RETURN(plan_counts, PlanKeeps(*guaranteed));
    if (keeps) figures.held_limit = guaranteed;
    if (!keeps) plan_counts = true;
  }
  if (plan_counts) {
    WISP_ASSIGN_OR_RETURN(figures.stated, PlanState(delta));
  }
  if (left_plan_ || !plan_counts) {
    figures.basis = Basis::kAdaptive;
    WISP_ASSIGN_OR_RETURN(const double adaptive, AdaptiveEpsilon(delta, figures.held_limit));
    figures.stated = {std::max(adaptive, figures.stated.epsilon), Accountant::kRdp};
    return figures;
  }
  figures.basis = Basis::kPlan;
  return figures;
}

Result<LedgerFigures> LedgerBudget::Figures(const Delta& delta) const {
  WISP_ASSIGN_OR_RETURN(LedgerFigures figures, Stated(delta));
  if (figures.basis != LedgerFigures::Basis::kPlan) return figures;
  for (size_t i = 0; plan_ && i < plan_->steps_left.size(); ++i) {
    if (plan_->steps_left[i] == 0) continue;
    WISP_ASSIGN_OR_RETURN(const Mechanism left, plan_->plan.mechanisms[i].mechanism.WithSteps(plan_->steps_left[i]));
    figures.planned_left.push_back(left);
  }
  if (!figures.planned_left.empty()) {
    WISP_ASSIGN_OR_RETURN(figures.used, all_.State(delta));
  }
  return figures;
}

}  // namespace wisp::privacy
