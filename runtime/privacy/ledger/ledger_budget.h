// Interprets a ledger's rows for the budget of one part of its records, or of all: which plan holds, whether everything
// is under it, whether coming charges stay within the limits, and which figure may be stated. docs/algorithms.md,
// section 10, has the proofs. ledger_parts.h has the budgets of all parts.
//
// A *look* is any charge that counts for the part. The plan that counts is the last one before the first such charge;
// without one, the first charge is a plan by itself. A plan of a part and one of all records count together, each for
// its own charges. Let the plan keep a limit (epsilon, delta) by PLD, with delta_plan = its delta at epsilon:
//   - while every charge is under the plan, nothing is checked;
//   - from the first charge that is not, everything along the path, the plan's used steps too, must fit a Renyi filter
//     at epsilon with kFilterShare of delta - delta_plan. The rest of it is the odometer's.
// Histories that stay on the plan and those that leave it are disjoint, so their deltas add up to delta.
//
// It knows nothing of files, or of which rows count for its part: LedgerParts passes the rows.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_BUDGET_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_BUDGET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/privacy_filter.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_composition.h"

namespace wisp::privacy {

// The filter's share of the limit's delta that the plan leaves over; the rest pays for stating how much is spent
// (OdometerEpsilon).
inline constexpr double kFilterShare = 0.875;
// The purpose of plans that a run writes for itself. The next run may replace such a plan while nothing was charged.
inline constexpr char kRunPlan[] = "one run";

class LedgerBudget {
 public:
  // Takes the rows in the order of their seq.
  void Take(const LedgerLimit& limit) { limits_.push_back(limit); }
  void Take(const LedgerPlan& plan);  // one without mechanisms withdraws its part's plan
  void Take(const LedgerEntry& entry);

  // The seq of the plan that would pay for the charge; 0: none. For charges of a plan's part only.
  uint64_t PlanFor(const ChargeRequest& charge) const;
  // The budget after these charges, of one part, by a run that writes a plan of its own if it `may_plan` and no plan
  // covers it (Ledger::PlanRun).
  LedgerBudget After(std::span<const ChargeRequest> charges, bool may_plan) const;
  // The budget after this single charge.
  LedgerBudget AfterCharge(const ChargeRequest& charge) const;
  bool Covers(std::span<const ChargeRequest> charges) const;  // all of them are under the plan

  bool has_entries() const { return first_entry_ != 0; }
  bool left_plan() const { return left_plan_; }
  const Composition& all() const { return all_; }
  std::optional<EpsilonDelta> limit() const;
  // The limit that holds however charges were chosen: it was set before the first of them, and no later limit is above
  // it in either number.
  std::optional<EpsilonDelta> guaranteed_limit() const;
  bool limit_is_late() const;     // the first limit came after the first charge
  bool limit_was_raised() const;  // after the first charge, above the guaranteed one

  // A limit that everything taken so far passes, or nullopt. It is a limit in force or, if `instead` is given, that
  // limit, which is about to be set.
  Result<std::optional<EpsilonDelta>> FindBreach(const std::optional<EpsilonDelta>& instead = {}) const;
  // kPrivacyRefused because `who`, a charge or a run, brings the budget to `after`, beyond `limit`. `whose`: "the data
  // set".
  Status Refusal(const std::string& who, const std::string& whose, const LedgerBudget& after,
                 const EpsilonDelta& limit) const;
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // Figures without `used` and `planned_left`, which take the accountant anew after each charge.
  Result<LedgerFigures> Stated(const Delta& delta) const;

  // True if a plan may be written now, because nothing was charged.
  bool MayPlan() const { return !has_entries(); }
  // True if a run of this part may write its own plan: none exists, or one of another run, which charged nothing.
  bool MayPlanRun(RecordPart part) const;

 private:
  struct PlanFigures;
  // A plan and what is left of it.
  struct ActivePlan {
    LedgerPlan plan;
    std::vector<uint64_t> steps_left;  // per mechanism
    double slack_left = 0;             // for all mechanisms together
  };
  struct Place {
    size_t plan, mechanism;
  };
  void TakeCharge(const ChargeRequest& charge);
  std::optional<Place> FindInPlans(const LedgerEntry& charge) const;
  void Count(LedgerEntry charge);
  Result<bool> PlanKeeps(const EpsilonDelta& limit) const;
  Result<StatedEpsilon> PlanState(const Delta& delta) const;
  Result<double> PlanDelta(const EpsilonDelta& limit) const;
  Result<bool> Keeps(const EpsilonDelta& limit) const;
  Result<double> AdaptiveEpsilon(const Delta& delta, const std::optional<EpsilonDelta>& held) const;

  std::vector<LedgerLimit> limits_;
  std::vector<ActivePlan> plans_;         // at most one per RecordPart
  Composition planned_;                   // all of the plans
  std::shared_ptr<PlanFigures> figures_;  // cached figures of the plans, because PLD takes a while
  uint64_t first_entry_ = 0;
  bool left_plan_ = false;
  Composition all_;
  RenyiPath path_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_BUDGET_H_
