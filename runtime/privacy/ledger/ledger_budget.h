// Interprets a ledger's rows for its budget: which plan holds, whether everything is under it, whether coming charges
// stay within the limits, and which figure may be stated. docs/algorithms.md, section 10, has the proofs.
//
// A *look* is any charge. The plan that counts is the last one before the first charge; without one, the first charge
// is a plan by itself. Let the plan keep a limit (epsilon, delta) by PLD, with delta_plan = its delta at epsilon:
//   - while every charge is under the plan, nothing is checked;
//   - from the first charge that is not, everything along the path, the plan's used steps too, must fit a Renyi filter
//     at epsilon with kFilterShare of delta - delta_plan. The rest of it is the odometer's.
// Histories that stay on the plan and those that leave it are disjoint, so their deltas add up to delta.
//
// It knows nothing of files: ledger.cc passes the rows.
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
  Status Take(const LedgerLimit& limit);
  Status Take(const LedgerPlan& plan);  // one without mechanisms withdraws the plan
  Status Take(const LedgerEntry& entry);
  Status Take(const LedgerResult&) { return OkStatus(); }  // its entry has paid for it

  // The definition of one record, from the first charge that has one or, before it, the newest plan; nullopt if none
  // does.
  const std::optional<RecordSpec>& record() const { return record_; }
  // The definition that a charge, or a plan, must state: `asked` or, if that is empty, the earlier one. kPrivacyRefused
  // if these differ, or if there is neither; a plan may differ from an earlier plan that nothing was charged under.
  // `path` names the ledger.
  enum class Says { kCharge, kPlan };
  Result<RecordSpec> FindStatedRecord(const std::string& path, const std::optional<RecordSpec>& asked, Says who) const;

  // kPrivacyRefused if the noise of these charges and that of earlier ones do not go together.
  Status CheckNoise(std::span<const ChargeRequest> charges) const;
  // The seq of the plan that would pay for the charge; 0: none.
  uint64_t PlanFor(const ChargeRequest& charge) const;
  // The budget after these charges by a run, which writes a plan of its own if it may and no plan covers it
  // (Ledger::PlanRun).
  LedgerBudget After(std::span<const ChargeRequest> charges) const;
  // The budget after this single charge.
  LedgerBudget AfterCharge(const ChargeRequest& charge) const;
  bool Covers(std::span<const ChargeRequest> charges) const;  // all of them are under the plan

  bool has_entries() const { return first_entry_ != 0; }
  bool left_plan() const { return left_plan_; }
  std::optional<EpsilonDelta> limit() const;
  // The limit that holds however charges were chosen: it was set before the first of them, and no later limit is above
  // it in either number.
  std::optional<EpsilonDelta> guaranteed_limit() const;
  bool limit_is_late() const;     // the first limit came after the first charge
  bool limit_was_raised() const;  // after the first charge, above the guaranteed one

  // A limit that everything taken so far passes, or nullopt. It is a limit in force or, if `instead` is given, that
  // limit, which is about to be set.
  Result<std::optional<EpsilonDelta>> FindBreach(const std::optional<EpsilonDelta>& instead = {}) const;
  Result<bool> IsBeyond(const std::optional<EpsilonDelta>& instead = {}) const;  // FindBreach finds one
  // kPrivacyRefused if `after`, to which `who`, a charge or a run, brings this budget, passes a limit.
  Status CheckLimits(const std::string& who, const LedgerBudget& after,
                     const std::optional<EpsilonDelta>& instead = {}) const;
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // Figures without `used` and `planned_left`, which take the accountant anew after each charge.
  Result<LedgerFigures> Stated(const Delta& delta) const;

  // True if a plan may be written now, because nothing was charged.
  bool MayPlan() const { return !has_entries(); }
  // True if a run may write its own plan: none exists, or one of another run, which charged nothing.
  bool MayPlanRun() const;

 private:
  struct PlanFigures;
  // A plan and what is left of it.
  struct ActivePlan {
    LedgerPlan plan;
    std::vector<uint64_t> steps_left;  // per mechanism
    double slack_left = 0;             // for all mechanisms together
  };
  void TakeCharge(const ChargeRequest& charge);
  void Use(const LedgerPlan& plan);
  Status TakeRecord(const std::optional<RecordSpec>& record, bool is_charge);
  // The planned mechanism that pays for a charge; nullopt: none.
  std::optional<size_t> FindInPlan(const Mechanism& mechanism, double loss_slack) const;
  void Count(LedgerEntry charge);
  Status Refusal(const std::string& who, const LedgerBudget& after, const EpsilonDelta& passed) const;
  Result<bool> PlanKeeps(const EpsilonDelta& limit) const;
  Result<StatedEpsilon> PlanState(const Delta& delta) const;
  Result<double> PlanDelta(const EpsilonDelta& limit) const;
  Result<bool> Keeps(const EpsilonDelta& limit) const;
  Result<double> AdaptiveEpsilon(const Delta& delta, const std::optional<EpsilonDelta>& held) const;

  std::vector<LedgerLimit> limits_;
  std::optional<ActivePlan> plan_;
  Composition planned_;                   // all of the plan
  std::shared_ptr<PlanFigures> figures_;  // cached figures of the plan, because PLD takes a while
  std::optional<RecordSpec> record_;
  bool record_is_charged_ = false;  // a charge states the record, not only a plan
  uint64_t first_entry_ = 0;
  bool left_plan_ = false;
  Composition all_;
  RenyiPath path_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_BUDGET_H_
