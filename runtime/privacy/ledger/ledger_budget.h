// What a ledger's rows mean for the budget of one part of its records, or of all: which plan holds, whether everything
// is under it, whether what is to come stays within the limits, and which figure may be stated. docs/algorithms.md,
// section 10, has the proofs. ledger_parts.h has the budgets of all parts.
//
// A *look* is any charge that counts for the part. The plan that counts is the last one before the first such charge;
// where there is none, the first charge is one by itself. A plan of a part and one of what reads all records count
// together, each for its own charges. Under a limit (epsilon, delta) that the plan keeps by PLD, with delta_plan = its
// delta at epsilon:
//   - while every charge is under the plan, nothing is asked;
//   - from the first charge that is not, everything along the path, the plan's used steps too, must fit a Renyi filter
//     at epsilon with kFilterShare of delta - delta_plan. The rest of it is the odometer's.
// Histories that stay on the plan and those that leave it are disjoint, so their deltas add up to delta.
//
// What it is not: aware of files, or of which rows count for its part. LedgerParts feeds it the rows and asks.
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

// Of a limit's delta that the plan leaves over, the filter's part; the rest pays for saying how much is spent
// (OdometerEpsilon).
inline constexpr double kFilterShare = 0.875;
// The purpose of plans that a run writes for itself: the next run may write another in its place while nothing was
// charged.
inline constexpr char kRunPlan[] = "one run";

class LedgerBudget {
 public:
  // Rows, in the order of their seq.
  void Take(const LedgerLimit& limit) { limits_.push_back(limit); }
  void Take(const LedgerPlan& plan);  // one without mechanisms takes that of its part back
  void Take(const LedgerEntry& entry);

  // The seq of the plan that would pay for the charge; 0: none. Charges of a plan's part only.
  uint64_t PlanFor(const ChargeRequest& charge) const;
  // As it would be after these charges, of one part, of a run that writes a plan of its own where it `may_plan` and
  // none covers it (Ledger::PlanRun).
  LedgerBudget After(std::span<const ChargeRequest> charges, bool may_plan) const;
  // As it would be after this one, as it comes.
  LedgerBudget AfterCharge(const ChargeRequest& charge) const;
  bool Covers(std::span<const ChargeRequest> charges) const;  // all of them are under the plan

  bool has_entries() const { return first_entry_ != 0; }
  bool left_plan() const { return left_plan_; }
  const Composition& all() const { return all_; }
  std::optional<EpsilonDelta> limit() const;
  // The limit that holds however charges were chosen: set before the first of them, and none set since is above it in
  // either number.
  std::optional<EpsilonDelta> guaranteed_limit() const;
  bool limit_is_late() const;     // the first limit came after the first charge
  bool limit_was_raised() const;  // after the first charge, above the one that was to hold

  // The limit that everything taken so far passes: one that is to hold, or where `instead` is given, that one about to
  // be set.
  Result<std::optional<EpsilonDelta>> FindBreach(const std::optional<EpsilonDelta>& instead = {}) const;
  // kPrivacyRefused, of `who`, a charge or a run, with which it is `after`, beyond `limit`. `whose`: "the data set".
  Status Refusal(const std::string& who, const std::string& whose, const LedgerBudget& after,
                 const EpsilonDelta& limit) const;
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // The same without `used` and `planned_left`, which take the accountant anew after each charge.
  Result<LedgerFigures> Stated(const Delta& delta) const;

  // Whether a plan may be written now: nothing was charged.
  bool MayPlan() const { return !has_entries(); }
  // Whether a run of this part may write its own: there is none, or one of another run, which charged nothing.
  bool MayPlanRun(RecordPart part) const;

 private:
  struct PlanFigures;
  // A plan and what is left of it.
  struct ActivePlan {
    LedgerPlan plan;
    std::vector<uint64_t> steps_left;  // of each mechanism
    double slack_left = 0;             // of all of them together
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
  std::vector<ActivePlan> plans_;         // at most one of each RecordPart
  Composition planned_;                   // all of the plans
  std::shared_ptr<PlanFigures> figures_;  // of the plans, as far as they were asked for: PLD takes a while
  uint64_t first_entry_ = 0;
  bool left_plan_ = false;
  Composition all_;
  RenyiPath path_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_BUDGET_H_
